"""From what the stages hand on to what the files of a release say."""

from __future__ import annotations

from collections.abc import Sequence

from release.artifacts import Artifact
from release.check.model import CheckReport
from release.manifest.models import Asset, AuditRule, CaseReport, CasesReport, RunReport, ToolchainRecord, VariantSizes
from release.module.model import Rung
from release.toolchain.model import Toolchain


def cases_report(report: CheckReport, package: str) -> CasesReport:
    """Return ``tests.json`` for a check of the wheel with the digest ``package``."""
    run = RunReport(
        package=package,
        where=report.where,
        runtime=report.runtime,
        pyodide=report.pyodide_version,
        passed=report.passed,
        seconds=report.seconds,
        cases=tuple(CaseReport.model_validate(result, from_attributes=True) for result in report.results),
    )
    return CasesReport(passed=run.passed, runs=(run,))


def variant_sizes(ladder: Sequence[Rung], chosen: str) -> tuple[VariantSizes, ...]:
    """Return the rungs of a ladder as the reports show them."""
    return tuple(
        VariantSizes(
            variant=rung.variant,
            chosen=rung.variant == chosen,
            failure=rung.failure,
            raw=rung.raw,
            gzip=rung.gzip,
            brotli=rung.brotli,
            zstd=rung.zstd,
            seconds=rung.seconds,
            peak_memory=rung.peak_memory,
            audit=tuple(AuditRule.model_validate(result) for result in rung.audit.results) if rung.audit else (),
        )
        for rung in ladder
    )


def toolchain_record(toolchain: Toolchain) -> ToolchainRecord:
    """Return the tools as the manifest names them."""
    return ToolchainRecord(
        provider=toolchain.provider,
        emscripten=toolchain.emscripten.version,
        emscripten_digest=toolchain.emscripten.digest,
        binaryen=toolchain.binaryen.version,
        binaryen_digest=toolchain.binaryen.digest,
        node=toolchain.node_version,
        python_include_digest=toolchain.python_include_digest,
        mismatches=toolchain.mismatches,
    )


def assets(artifacts: Sequence[Artifact]) -> tuple[Asset, ...]:
    """Return released files as the reports list them."""
    return tuple(Asset.model_validate(artifact) for artifact in artifacts)
