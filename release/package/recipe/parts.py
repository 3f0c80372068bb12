"""The parts of what there is a recipe of: the sample and Triton."""

from __future__ import annotations

from pathlib import Path

from release.llvm import LLVMLibraries
from release.module.build import build_sample
from release.module.sample import Sample
from release.module.triton import INIT, LINKED, LLVM, link_names, link_places
from release.package.recipe.model import Library, Linking, Parts
from release.pins.model import Profile, Variant
from release.progress import Steps
from release.toolchain.model import Toolchain

_OBJECTS, _LIBRARY = "objects", "library"
_LLVM_LICENSE = "Apache-2.0 WITH LLVM-exception"


def build_sample_parts(
    sample: Sample, sources: Path, profile: Profile, toolchain: Toolchain, *, folder: Path, steps: Steps
) -> None:
    """Compile the sample into ``folder``, for ``sample_parts``. Raises what ``build_sample`` raises."""
    objects, library = folder / _OBJECTS, folder / _LIBRARY / "lib"
    objects.mkdir(parents=True)
    library.mkdir(parents=True)
    build_sample(sample, sources, profile, toolchain, output=folder / _output(sample), objects=objects, steps=steps)
    (objects / _archive(sample)).rename(library / _archive(sample))


def sample_parts(sample: Sample, folder: Path, profile: Profile, variant: Variant) -> Parts:
    """Return the sample's archive as the library, and the link of the rest; both were compiled into ``folder``."""
    archive = _archive(sample)
    return Parts(
        library=Library(
            name=archive.removesuffix(".a"),
            version=sample.version,
            summary=f"What {sample.name} is linked with",
            license=sample.license,
            folder=folder / _LIBRARY,
        ),
        linking=Linking(
            names=(*(f"{Path(source).stem}.o" for source in sample.objects), archive),
            objects={path.name: path for path in (folder / _OBJECTS).iterdir()},
            libraries={archive: f"lib/{archive}"},
            init=sample.init,
            output=_output(sample),
            profile=profile,
            variant=variant,
        ),
    )


def triton_parts(objects: Path, host: Path, libraries: LLVMLibraries, profile: Profile, variant: Variant) -> Parts:
    """Return the installed LLVM as the library, and the link of ``objects`` and ``host`` with it.

    They are what ``compile_triton`` and ``compile_host`` made.
    """
    places = link_places(objects, host, libraries)
    return Parts(
        library=Library(
            name="libllvm",
            version=libraries.version,
            summary="LLVM, MLIR and LLD as bitcode, for linking into a side module",
            license=_LLVM_LICENSE,
            folder=places.pop(LLVM),
        ),
        linking=Linking(
            names=link_names(objects),
            objects=places,
            libraries={LLVM: "."},
            init=INIT,
            output=LINKED,
            profile=profile,
            variant=variant,
        ),
    )


def _archive(sample: Sample) -> str:
    return f"lib{sample.name}.a"


def _output(sample: Sample) -> str:
    return f"{sample.extension.rsplit('.', 1)[-1]}.wasm"
