"""The release for humans: one screen of Markdown."""

from __future__ import annotations

from release.manifest.models import CasesReport, Manifest


def summary(manifest: Manifest, tests: CasesReport) -> str:
    """Return the Markdown summary of a release."""
    pins, tools = manifest.pins, manifest.toolchain
    passed = sum(case.passed for case in tests.cases)
    lines = [
        f"# {manifest.name} {manifest.version}",
        "",
        f"Pin set `{pins.name}`, profile `{manifest.profile.name}`, for Pyodide {pins.pyodide.version} "
        f"(Python {pins.pyodide.python}, ABI {pins.pyodide.abi}).",
        f"Built with Emscripten {tools.emscripten} and Binaryen {tools.binaryen} (provider: {tools.provider}).",
        *(f"**Accepted mismatch:** {mismatch.rstrip('.')}." for mismatch in (*tools.mismatches, *manifest.accepted)),
        *_sources(manifest),
        "",
        f"{passed} of {len(tests.cases)} checks passed:",
        *(
            f"- {run.runtime}, Pyodide {run.pyodide}: {sum(case.passed for case in run.cases)} of {len(run.cases)} "
            f"in {run.seconds:.1f} s"
            for run in tests.runs
        ),
        "",
        f"Released variant: `{manifest.variant}`, because {manifest.why}.",
        "",
        "| variant | raw | gzip -9 | brotli -q 11 | zstd -19 | seconds | peak memory | audit |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for rung in manifest.ladder:
        name = f"**{rung.variant}**" if rung.chosen else rung.variant
        if rung.failure is not None:
            lines.append(f"| {name} | | | | | {rung.seconds:.1f} | {_mega(rung.peak_memory)} | {rung.failure} |")
            continue
        broken = [rule.rule for rule in rung.audit if not rule.passed]
        audit = f"broken: {', '.join(broken)}" if broken else f"{len(rung.audit)} rules passed"
        sizes = " | ".join(f"{size or 0:,}" for size in (rung.raw, rung.gzip, rung.brotli, rung.zstd))
        lines.append(f"| {name} | {sizes} | {rung.seconds:.1f} | {_mega(rung.peak_memory)} | {audit} |")
    lines += ["", "| asset | bytes | SHA-256 |", "| --- | ---: | --- |"]
    lines += [f"| `{asset.name}` | {asset.size:,} | `{asset.sha256}` |" for asset in manifest.assets]
    return "\n".join(lines) + "\n"


def _sources(manifest: Manifest) -> list[str]:
    lines = [""] if manifest.sources else []
    for source in manifest.sources:
        commit = f" at `{source.commit}`" if source.commit else ""
        changed = f", {source.changed} files changed" if source.changed else ""
        lines.append(f"- {source.name} {source.version}{commit}{changed}")
    lines += [f"- fix-up `{fixup.name}` of `{fixup.file}`: {fixup.reason}" for fixup in manifest.fixups]
    return lines


def _mega(size: int) -> str:
    return f"{size / 1e6:,.0f} MB" if size else ""
