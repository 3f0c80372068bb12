"""The walk of a release: toolchain, link, ladder, package, check, manifest; each stands on the folder before it."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import TypeAdapter

import release
from release import assembly
from release.artifacts import Artifact, replacing_folder, sha256_of, sha256_of_tree, write_atomically
from release.check.cases import load_cases
from release.check.node import check_package
from release.errors import Finding, WrongUsage
from release.manifest.checksums import NAME as CHECKSUMS
from release.manifest.checksums import verify
from release.manifest.models import CasesReport, Manifest, SizesReport, StageRecord, to_json
from release.manifest.reports import assets, toolchain_record, variant_sizes
from release.module.audit import audit
from release.module.ladder import choose, climb
from release.module.model import AuditReport, Rung, SideModule
from release.package import archive
from release.package.build import build_package
from release.package.model import Package
from release.pins.model import PinSet, Profile, Variant
from release.places import CHECKOUT
from release.products import Linked, Packed, Product
from release.progress import Progress
from release.stage import RECORD, Stage, Stages, recipe
from release.toolchain import prepare
from release.toolchain.model import Toolchain

# What only some commands need is imported where it is used: an unchanged release takes no longer than Python's start.
if TYPE_CHECKING:
    from release.check.oracle.model import OracleReport
    from release.fidelity import OracleChoice
    from release.package.recipe import Difference

_RUNG = TypeAdapter(Rung)
_CHECK, _PREPARED, _RELEASE = "check", "prepared", "release"
_LATER = (_CHECK, _PREPARED, _RELEASE)


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is asked for: which pins and flags, where to work, and how strict to be."""

    pins: PinSet
    profile: Profile
    cache: Path
    work: Path
    allow_mismatch: bool = False
    force: bool = False


class Pipeline:
    """The stages of one request, in order; each method runs those before it, which do nothing when nothing changed."""

    def __init__(self, request: Request, product: Product, progress: Progress) -> None:
        self._request = request
        self._product = product
        self._progress = progress
        self._stages = Stages(request.work, progress, force=request.force)
        self._packed: Packed | None = None

    @property
    def work(self) -> Path:
        """The folder that holds a folder of each stage."""
        return self._request.work

    def toolchain(self) -> Toolchain:
        """Find or install the tools, and prove them."""
        request = self._request
        return prepare(
            request.pins,
            cache=request.cache,
            allow_mismatch=request.allow_mismatch,
            progress=self._progress,
            bind=[CHECKOUT, request.work, *self._product.visible],
        )

    def module(self, toolchain: Toolchain) -> SideModule:
        """Compile, link, climb the ladder and choose."""
        linked = self._product.link(self._stages, toolchain)
        profile = self._request.profile
        rungs = [self._rung(variant, linked, toolchain) for variant in profile.optimise.variants]
        best, why = choose([rung for _, rung in rungs], profile.optimise.choose)
        path = next(folder / linked.path.name for folder, rung in rungs if rung is best)
        return SideModule(path=path, variant=best.variant, why=why, ladder=tuple(rung for _, rung in rungs))

    def package(self, toolchain: Toolchain, module: SideModule) -> Package:
        """Lay the module and its Python files into a wheel, a zip and a lock entry."""
        request = self._request
        packed = self._pack(module)
        stage = self._stages.run(
            "package",
            inputs={
                **packed.inputs,
                "module": sha256_of(module.path),
                "pyodide": request.pins.pyodide.model_dump(mode="json"),
                "archive": archive.identity(),
                "recipe": recipe("package"),
            },
            build=lambda folder: _discard(
                build_package(packed.contents, request.pins, pyodide=toolchain.pyodide, folder=folder)
            ),
        )
        return Package(
            wheel=next(stage.folder.glob("*.whl")),
            zip=next(stage.folder.glob("*.zip")),
            lock=stage.folder / "pyodide-lock.json",
        )

    def check(self, toolchain: Toolchain, package: Package) -> CasesReport:
        """Run every case with every loader in fresh Node processes. Raises Finding when one fails."""
        return assembly.read_check(self._check(toolchain, package).folder)

    def _check(self, toolchain: Toolchain, package: Package) -> Stage:
        digests = {path.name: sha256_of(path) for path in (package.wheel, package.zip, package.lock)}
        cases = self._product.cases(self._stages)
        return self._stages.run(
            _CHECK,
            inputs={
                "package": digests,
                "cases": sha256_of_tree(cases),
                "node": toolchain.node_version,
                "pyodide": self._request.pins.pyodide.integrity,
                "recipe": recipe("check"),
            },
            build=partial(self._check_into, cases=cases, toolchain=toolchain, package=package, digests=digests),
        )

    def compare(self, choice: OracleChoice, toolchain: Toolchain) -> OracleReport:
        """Compare what the checked cases wrote with an oracle's texts. Raises Finding for an unexplained difference."""
        return self._product.compare(choice, self._stages, toolchain)

    def write_recipe(self, out: Path) -> None:
        """Make the module and write its Pyodide recipes into ``out``; raises WrongUsage for somebody else's folder."""
        from release.package.recipe import write_recipes

        if out.exists() and (not out.is_dir() or any(path.name != "packages" for path in out.iterdir())):
            raise WrongUsage(f"{out} holds more than recipes.", remedy="Give --out an empty or a new folder.")
        toolchain = self.toolchain()
        module = self.module(toolchain)
        parts = self._product.recipe(self._stages, toolchain, module.variant)
        contents = self._pack(module).contents
        write_recipes(parts, contents, self._request.pins, out, pyodide=toolchain.pyodide)

    def build_recipe(self) -> tuple[Difference, ...]:
        """Make the package, build the recipes with pyodide-build, and say in what the two differ."""
        from release.package.recipe import BuiltRecipe, build_recipes, compare, prepare_tools, write_recipes

        request, product = self._request, self._product
        toolchain = self.toolchain()
        module = self.module(toolchain)
        package = self.package(toolchain, module)
        parts = product.recipe(self._stages, toolchain, module.variant)
        contents = self._pack(module).contents
        tools = prepare_tools(request.pins, toolchain, cache=request.cache, progress=self._progress)

        def build(folder: Path) -> None:
            recipes = folder / "recipes"
            write_recipes(parts, contents, request.pins, recipes, pyodide=toolchain.pyodide, copy=False)
            log = self.work / "recipe-build.log"  # outside: the folder of a stage that fails is removed
            build_recipes(recipes, contents.name, tools, folder=folder, progress=self._progress, log=log)
            shutil.rmtree(recipes)

        stage = self._stages.run(
            "recipe",
            inputs={
                "package": {path.name: sha256_of(path) for path in (package.wheel, package.lock)},
                "tools": tools.identity,
                "toolchain": toolchain.identity(),
                "link": request.profile.link.flags,
                "variant": module.variant,
                "recipe": recipe("package/recipe"),
            },
            build=build,
        )
        dist = stage.folder / "dist"
        return compare(package, BuiltRecipe(wheel=next(dist.glob("*.whl")), lock=dist / package.lock.name))

    def prepare(self, toolchain: Toolchain, module: SideModule, package: Package) -> Stage:
        """Lay the package out with its reports and cases: all that checking it and releasing it take."""
        cases = self._product.cases(self._stages)
        contents = self._pack(module).contents
        released = assets([Artifact.of(path) for path in (package.wheel, package.zip, package.lock)])
        variants = variant_sizes(module.ladder, module.variant)
        origins = self._product.origins()
        manifest = Manifest(
            name=contents.name,
            version=contents.version,
            toolkit_version=release.__version__,
            pins=self._request.pins,
            profile=self._request.profile,
            toolchain=toolchain_record(toolchain),
            sources=origins.sources,
            fixups=origins.fixups,
            accepted=origins.accepted,
            variant=module.variant,
            why=module.why,
            ladder=variants,
            assets=released,
            stages=tuple(
                StageRecord.model_validate(stage, from_attributes=True)
                for stage in self._stages.done
                if stage.name not in _LATER  # of an earlier call
            ),
        )
        sizes = SizesReport(module=module.path.name, why=module.why, variants=variants, assets=released)
        return self._stages.run(
            _PREPARED,
            inputs={
                "manifest": manifest.model_dump(mode="json"),
                "cases": sha256_of_tree(cases),
                "recipe": recipe("manifest", "trust/sbom.py", "assembly.py"),
            },
            build=lambda folder: assembly.prepare(package, manifest, sizes, cases, folder),
        )

    def release(self, out: Path, *, oracle: OracleChoice | None = None) -> Manifest:
        """Run everything and put the assets, the reports and their checksums into ``out``; compare with ``oracle``."""
        _refuse_foreign(out)
        toolchain = self.toolchain()
        module = self.module(toolchain)
        package = self.package(toolchain, module)
        prepared = self.prepare(toolchain, module, package)
        checked = self._check(toolchain, package)
        more: dict[str, str] = {}
        if oracle:
            from release.check.oracle.markdown import to_markdown

            compared = self.compare(oracle, toolchain)
            more = {"oracle.json": to_json(compared), "oracle.md": to_markdown(compared)}
        stage = self._stages.run(
            _RELEASE,
            inputs={
                "prepared": sha256_of_tree(prepared.folder),
                "checked": sha256_of(checked.folder / assembly.TESTS),
                "more": more,
                "recipe": recipe("manifest", "assembly.py"),
            },
            build=lambda folder: assembly.assemble(prepared.folder, [checked.folder], folder, more=more),
        )
        _mirror(stage.folder, out)
        return assembly.read_manifest(prepared.folder)

    def _pack(self, module: SideModule) -> Packed:
        if self._packed is None or self._packed.contents.module != module.path:
            self._packed = self._product.pack(self._stages, module.path)
        return self._packed

    def _rung(self, variant: Variant, linked: Linked, toolchain: Toolchain) -> tuple[Path, Rung]:
        ladder = self._request.profile.optimise

        def build(folder: Path) -> None:
            rung = climb(
                linked.path,
                variant,
                ladder,
                toolchain,
                output=folder / linked.path.name,
                audit=partial(self._audit, linked=linked, toolchain=toolchain),
            )
            write_atomically(folder / "rung.json", _RUNG.dump_json(rung, indent=2))

        stage = self._stages.run(
            f"ladder-{variant}",
            inputs={
                "linked": sha256_of(linked.path),
                "variant": variant,
                "flags": ladder.flags,
                "features": ladder.features,
                "timeout": ladder.timeout_seconds,
                "binaryen": toolchain.binaryen.digest,
                "pyodide": self._request.pins.pyodide.integrity,
                "bounds": [linked.size_floor, linked.size_budget],
                # Not the whole room: an hour of the optimiser hangs on it.
                "recipe": recipe("module/ladder.py", "module/sizes.py", "module/audit.py", "module/wasm.py"),
            },
            build=build,
        )
        return stage.folder, _RUNG.validate_json((stage.folder / "rung.json").read_bytes())

    def _audit(self, wasm: Path, *, linked: Linked, toolchain: Toolchain) -> AuditReport:
        places = (CHECKOUT, self._request.cache, self._request.work, *self._product.visible, Path.home())
        return audit(
            wasm,
            init=linked.init,
            pyodide=toolchain.pyodide,
            node=toolchain.node,
            floor=linked.size_floor,
            budget=linked.size_budget,
            forbidden_paths=[str(path) for path in places],
        )

    def _check_into(
        self, folder: Path, *, cases: Path, toolchain: Toolchain, package: Package, digests: Mapping[str, str]
    ) -> None:
        report = check_package(
            package,
            load_cases(cases),
            imports=self._product.imports,
            toolchain=toolchain,
            keep=folder / "files",
            progress=self._progress,
            expected_sha256=digests,
        )
        cases_found = assembly.write_check(report, digests[package.wheel.name], folder)
        if cases_found.passed:
            return
        # A failed check is not a finished stage: it runs again next time. Its report is kept beside.
        failed = self._request.work / "failed-check"
        with replacing_folder(failed) as kept:
            shutil.copytree(folder, kept, dirs_exist_ok=True)
        assembly.require_passed(cases_found, failed)


def _discard(_: object) -> None:
    """For a builder whose result is its files."""


def _refuse_foreign(out: Path) -> None:
    if out.exists() and not out.is_dir():
        raise WrongUsage(f"{out} is a file.", remedy="Give --out a folder.")
    if out.is_dir() and any(out.iterdir()) and not (out / CHECKSUMS).is_file():
        raise WrongUsage(
            f"{out} holds files that no release of ours put there.", remedy="Give --out an empty or a new folder."
        )


def _mirror(source: Path, out: Path) -> None:
    try:
        verify(out)
        if (out / CHECKSUMS).read_bytes() == (source / CHECKSUMS).read_bytes():
            return
    except (Finding, WrongUsage):
        pass  # nothing there yet, or no longer what we put there
    with replacing_folder(out) as temporary:
        for path in source.iterdir():
            if path.name != RECORD:
                shutil.copyfile(path, temporary / path.name)
