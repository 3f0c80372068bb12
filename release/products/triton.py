"""Triton as a product: its sources, the host libraries, its objects, the full link, its Python tree and its kernels."""

from __future__ import annotations

import shutil
from dataclasses import asdict
from pathlib import Path

from release.artifacts import sha256_of
from release.check.kernels.programs import write_cases
from release.check.kernels.supplied import Supplied
from release.check.oracle.model import OracleReport
from release.fidelity import OracleChoice, compare_with_oracle
from release.libraries import HostLibraries
from release.llvm import LLVMLibraries
from release.manifest.models import Fixup, SourceRecord
from release.module.triton import (
    EXTENSION,
    INIT,
    LINKED,
    TritonRequest,
    compile_host,
    compile_triton,
    host_inputs,
    link_inputs,
    link_triton,
    needs,
)
from release.package.layer import ENTRY_POINTS
from release.package.licenses import LICENSE, license_files
from release.package.model import Contents
from release.package.recipe.model import Parts
from release.package.recipe.parts import triton_parts
from release.package.tree import NAME, SUMMARY, lay_out_tree, version_of
from release.pins.model import PinSet, Profile, Variant
from release.pins.upstream import MAIN
from release.products import Linked, Origins, Packed
from release.progress import Progress
from release.sources import TRITON, Sources
from release.stage import Stage, Stages, recipe
from release.toolchain.model import Toolchain

# A link that lost its libraries comes to a few kilobytes, one that forgot a backend to some tens of megabytes less.
SIZE_FLOOR, SIZE_BUDGET = 40_000_000, 100_000_000

_OBJECTS = "objects"


class TritonProduct:
    """Triton and its compiler for one pin set.

    ``supplied`` is a kernel that is compiled among the cases. ``jobs`` is the number of compilers at once.
    """

    name = NAME
    extension = EXTENSION
    imports: tuple[str, ...] = ("triton", "triton_compile_only")

    def __init__(
        self,
        pins: PinSet,
        profile: Profile,
        sources: Sources,
        *,
        cache: Path,
        progress: Progress,
        supplied: Supplied | None = None,
        jobs: int | None = None,
    ) -> None:
        self._pins, self._profile, self._sources = pins, profile, sources
        self._cache, self._progress = cache, progress
        self._supplied, self._jobs = supplied, jobs
        self._host = HostLibraries(pins, profile.llvm, sources, cache=cache, progress=progress)

    @property
    def visible(self) -> list[Path]:
        """Name the trees and the folder of the libraries."""
        return [self._sources.triton.path, *self._host.visible]

    def link(self, stages: Stages, toolchain: Toolchain) -> Linked:
        """Provide LLVM, compile Triton against it, link both."""
        if not (stages.work / "link").is_dir():
            needs(self._profile, stages.work, self._progress)  # now, and not after the hours before
        libraries = self._host.provide(toolchain, jobs=self._jobs)
        stages.remember(libraries.stage)
        objects, host = self._compile(stages, toolchain, libraries), self._compile_host(stages, toolchain)
        stage = stages.run(
            "link",
            inputs=link_inputs(objects.key, host.key, libraries, self._profile, toolchain),
            build=lambda folder: link_triton(
                objects.folder,
                host.folder,
                libraries,
                self._profile,
                toolchain,
                output=folder / LINKED,
                progress=self._progress,
            ),
        )
        return Linked(path=stage.folder / LINKED, init=INIT, size_floor=SIZE_FLOOR, size_budget=SIZE_BUDGET)

    def pack(self, stages: Stages, module: Path) -> Packed:
        """Lay out Triton's Python tree with the layer of ours beside it."""
        triton, llvm = self._sources.triton, self._sources.llvm[MAIN]
        tree = stages.run(
            "tree",
            inputs={
                "source": triton.digest,
                "fixups": [fixup.model_dump(mode="json") for fixup in self._sources.fixups if fixup.source == TRITON],
                "recipe": recipe("package/tree.py", "package/imports.py", "package/layer"),
            },
            build=lambda folder: lay_out_tree(self._sources.fixed(TRITON, stages.work), folder),
        )
        python = tree.folder / "python"
        licenses = license_files(triton.path, llvm.path)
        contents = Contents(
            name=NAME,
            version=version_of(self._sources.triton_tree.version, self._pins.triton.commit),
            summary=SUMMARY,
            license=LICENSE,
            license_files=licenses,
            module=module,
            extension=EXTENSION,
            python=python,
            imports=self.imports,
            entry_points=ENTRY_POINTS,
        )
        inputs = {
            "tree": tree.key,
            "version": contents.version,
            "licenses": {name: sha256_of(path) for name, path in licenses.items()},
        }
        return Packed(contents=contents, inputs=inputs)

    def cases(self, stages: Stages) -> Path:
        """Write the kernels as programs."""
        stage = stages.run(
            "cases",
            inputs={
                "kernels": recipe("check/kernels"),
                "supplied": asdict(self._supplied) if self._supplied else None,
            },
            build=lambda folder: _discard(write_cases(folder / "cases", self._supplied)),
        )
        return stage.folder / "cases"

    def recipe(self, stages: Stages, toolchain: Toolchain, variant: Variant) -> Parts:
        """Return LLVM as the library, and the link of Triton's objects with it."""
        libraries = self._host.provide(toolchain, jobs=self._jobs)
        objects, host = self._compile(stages, toolchain, libraries), self._compile_host(stages, toolchain)
        return triton_parts(objects.folder, host.folder, libraries, self._profile, variant)

    def origins(self) -> Origins:
        """Name the trees and what was changed in copies of them."""
        sources = self._sources
        trees = {TRITON: (sources.triton, sources.triton_tree.version)}
        trees |= {name: (source, sources.llvm_trees[name].version) for name, source in sources.llvm.items()}
        return Origins(
            sources=tuple(
                SourceRecord(
                    name=name,
                    version=version,
                    commit=source.commit,
                    digest=source.digest,
                    changed=len(source.changed),
                )
                for name, (source, version) in trees.items()
            ),
            fixups=tuple(Fixup.model_validate(fixup, from_attributes=True) for fixup in sources.fixups),
            accepted=sources.accepted,
        )

    def compare(self, choice: OracleChoice, stages: Stages, toolchain: Toolchain) -> OracleReport:
        """Compare what the cases wrote with an oracle's; raises as ``compare_with_oracle`` does."""
        return compare_with_oracle(
            choice,
            self._pins,
            self._sources,
            stages,
            toolchain,
            cache=self._cache,
            supplied=self._supplied,
            jobs=self._jobs,
        )

    def _compile(self, stages: Stages, toolchain: Toolchain, libraries: LLVMLibraries) -> Stage:
        request = TritonRequest(
            source=self._sources.fixed(TRITON, stages.work),
            digest=self._sources.triton.digest,
            bindings=self._sources.triton_tree.bindings,
            fixups=tuple(fixup for fixup in self._sources.fixups if fixup.source == TRITON),
            libraries=libraries,
            profile=self._profile,
        )
        tree = stages.work / f"{_OBJECTS}-build-{request.key(toolchain)[:12]}"

        def build(folder: Path) -> None:
            for other in stages.work.glob(f"{_OBJECTS}-build-*"):
                if other != tree:
                    shutil.rmtree(other)
            compile_triton(
                request,
                toolchain,
                tree=tree,
                folder=folder,
                cache=self._cache,
                jobs=self._jobs,
                progress=self._progress,
            )

        stage = stages.run(_OBJECTS, inputs=request.inputs(toolchain), build=build)
        if tree.exists() and not stage.reused:
            shutil.rmtree(tree)
        return stage

    def _compile_host(self, stages: Stages, toolchain: Toolchain) -> Stage:
        return stages.run(
            "host",
            inputs=host_inputs(self._profile, toolchain),
            build=lambda folder: compile_host(self._profile, toolchain, folder),
        )


def _discard(_: object) -> None:
    """For a builder whose result is its files."""
