"""Whether the module prints what a native Triton prints: the texts of a check, compared with an oracle's."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from release.artifacts import sha256_of, sha256_of_tree, write_atomically
from release.check.kernels import MODULES
from release.check.kernels.contract import OUTPUT
from release.check.kernels.programs import kernels_program, supplied_program
from release.check.kernels.supplied import Supplied
from release.check.oracle.compare import compare
from release.check.oracle.known import known_differences
from release.check.oracle.markdown import to_markdown
from release.check.oracle.model import OracleReport
from release.check.oracle.native import NativeRequest, NativeTriton, build_native
from release.check.oracle.texts import TEXTS, compile_texts
from release.check.oracle.validity import Assemblers, assemble, find_ptxas, installed_ptxas, llvm_mc_of
from release.check.oracle.wheel import PublishedWheel, published_wheel
from release.errors import Finding, WrongUsage
from release.manifest.models import to_json
from release.package.tree import PYTHON_TREE
from release.pins.model import PinSet
from release.pins.upstream import MAIN
from release.sources import TRITON, Sources
from release.stage import Stages, recipe
from release.toolchain.model import Toolchain

REPORT = "oracle.json"


@dataclass(frozen=True, kw_only=True)
class OracleChoice:
    """What the module is compared with: a native build, or where ``python`` is given the wheel installed for it.

    ``ptxas`` is the program, or a wheel that holds it; by default the one among our development packages. Without any
    no PTX is assembled.
    """

    python: Path | None = None
    ptxas: Path | None = None


def compare_with_oracle(
    choice: OracleChoice,
    pins: PinSet,
    sources: Sources,
    stages: Stages,
    toolchain: Toolchain,
    *,
    cache: Path,
    supplied: Supplied | None,
    jobs: int | None,
) -> OracleReport:
    """Compare the texts of the check stage with the oracle's, and let the assemblers judge ours.

    Raises Finding for a text that differs without an explanation or that an assembler refuses, WrongUsage where there
    can be no native build, and what building it raises.
    """
    oracle: NativeTriton | PublishedWheel = (
        published_wheel(choice.python) if choice.python else _native(pins, sources, stages, toolchain, cache, jobs)
    )
    programs = {f"{module}.py": kernels_program(module) for module in MODULES}
    if supplied:
        programs[f"{OUTPUT.replace('-', '_')}.py"] = supplied_program(supplied)
    place = choice.ptxas or installed_ptxas()
    ptxas = find_ptxas(place, cache) if place else None
    llvm_mc = llvm_mc_of(oracle.root) if isinstance(oracle, NativeTriton) else None
    ours = stages.work / "check" / TEXTS

    def build(folder: Path) -> None:
        faults = compile_texts(oracle, folder / "native", programs=programs, progress=stages.progress)
        assembled = assemble(ours, Assemblers(ptxas=ptxas, llvm_mc=llvm_mc), progress=stages.progress)
        known = known_differences(pins.name) if oracle.kind == "native" else None
        report = compare(
            ours,
            folder / "native",
            kind=oracle.kind,
            what=oracle.what,
            known=known,
            faults=faults,
            assembled=assembled,
        )
        write_atomically(folder / REPORT, to_json(report))
        write_atomically(folder / "oracle.md", to_markdown(report))

    stage = stages.run(
        "fidelity",
        inputs={
            "texts": sha256_of_tree(ours),
            "oracle": oracle.what,
            "native": oracle.key if isinstance(oracle, NativeTriton) else None,
            "programs": programs,
            "ptxas": sha256_of(Path(ptxas[0])) if ptxas else None,
            "recipe": recipe("check/oracle"),
        },
        build=build,
    )
    report = OracleReport.model_validate_json((stage.folder / REPORT).read_bytes())
    if report.passed:
        return report
    differing = [text for text in report.texts if not text.accepted]
    refused = [one for one in report.assembled if not one.passed]
    raise Finding(
        f"{len(differing)} of {len(report.texts)} texts differ from the oracle's without an explanation,"
        f" the assemblers refuse {len(refused)}, and {len(report.faults)} programs failed in the oracle itself.",
        remedy=f"Read {stage.folder / 'oracle.md'}.",
    )


def _native(
    pins: PinSet, sources: Sources, stages: Stages, toolchain: Toolchain, cache: Path, jobs: int | None
) -> NativeTriton:
    llvm = next(pin for pin in pins.llvm if pin.name == MAIN)
    if llvm.release is None:
        raise WrongUsage(
            f"Nobody packages LLVM {llvm.what} natively, so there is nothing to build the oracle with.",
            remedy="Give --oracle-python a Python with Triton's published wheel: a weaker oracle.",
        )
    request = NativeRequest(
        source=sources.fixed(TRITON, stages.work),
        digest=sources.triton.digest,
        fixups=tuple(fixup for fixup in sources.fixups if fixup.source == TRITON),
        llvm=llvm.release,
        python_minor=pins.pyodide.python_minor,
        python=stages.work / "tree" / PYTHON_TREE,
    )
    return build_native(request, toolchain, work=stages.work, cache=cache, jobs=jobs, progress=stages.progress)
