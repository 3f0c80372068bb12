"""The sample as a product: its few files go through every step that Triton goes through."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from release.artifacts import sha256_of, sha256_of_tree
from release.errors import WrongUsage
from release.module.build import STEPS, build_sample
from release.module.sample import SAMPLE, load_sample
from release.package.licenses import license_of
from release.package.model import Contents
from release.pins.model import Profile, Variant
from release.places import CHECKOUT
from release.products import Linked, Origins, Packed
from release.stage import Stages, recipe
from release.toolchain.model import Toolchain

if TYPE_CHECKING:
    from release.check.oracle.model import OracleReport
    from release.fidelity import OracleChoice
    from release.package.recipe.model import Parts


class SampleProduct:
    """See ``samples/exprc``."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._sample = load_sample()
        self.name = self._sample.name
        self.extension = self._sample.extension
        self.imports = self._sample.imports

    @property
    def visible(self) -> list[Path]:
        """The sample is in the checkout."""
        return []

    def link(self, stages: Stages, toolchain: Toolchain) -> Linked:
        """Compile, archive, link."""
        sample, profile = self._sample, self._profile
        name = f"{sample.extension.rsplit('.', 1)[-1]}.wasm"

        def build(folder: Path) -> None:
            objects = folder / "objects"
            objects.mkdir()
            total = STEPS + len(sample.archive) + len(sample.objects)
            with stages.progress.steps("link", total) as steps:
                build_sample(sample, SAMPLE, profile, toolchain, output=folder / name, objects=objects, steps=steps)
            shutil.rmtree(objects)

        stage = stages.run("link", inputs=self._inputs(toolchain), build=build)
        return Linked(
            path=stage.folder / name,
            init=sample.init,
            size_floor=sample.size_floor,
            size_budget=sample.size_budget,
        )

    def pack(self, stages: Stages, module: Path) -> Packed:
        """Take the Python files as they are."""
        sample = self._sample
        contents = Contents(
            name=sample.name,
            version=sample.version,
            summary=sample.summary,
            license=sample.license,
            license_files={"LICENSE": CHECKOUT / "LICENSE", "LICENSE.pybind11": license_of("pybind11")},
            module=module,
            extension=sample.extension,
            python=SAMPLE / "python",
            imports=sample.imports,
        )
        inputs = {
            "sample": sample.model_dump(mode="json"),
            "python": sha256_of_tree(contents.python),
            "licenses": {name: sha256_of(path) for name, path in contents.license_files.items()},
        }
        return Packed(contents=contents, inputs=inputs)

    def cases(self, stages: Stages) -> Path:
        """Return those beside the sample."""
        return SAMPLE / "cases"

    def compare(self, choice: OracleChoice, stages: Stages, toolchain: Toolchain) -> OracleReport:
        """Refuse: the sample has no native build."""
        raise WrongUsage("The sample has no oracle.", remedy="Leave out --oracle, or leave out --sample.")

    def recipe(self, stages: Stages, toolchain: Toolchain, variant: Variant) -> Parts:
        """Compile the sample's archive and objects for the recipes."""
        from release.package.recipe.parts import build_sample_parts, sample_parts

        sample, profile = self._sample, self._profile

        def build(folder: Path) -> None:
            with stages.progress.steps("parts", STEPS + len(sample.archive) + len(sample.objects)) as steps:
                build_sample_parts(sample, SAMPLE, profile, toolchain, folder=folder, steps=steps)

        stage = stages.run("parts", inputs=self._inputs(toolchain), build=build)
        return sample_parts(sample, stage.folder, profile, variant)

    def origins(self) -> Origins:
        """The sample has no sources but the checkout."""
        return Origins()

    def _inputs(self, toolchain: Toolchain) -> dict[str, Any]:
        profile = self._profile
        return {
            "sources": sha256_of_tree(SAMPLE / "src"),
            "sample": self._sample.model_dump(mode="json"),
            "compile": profile.compile.flags,
            "link": profile.link.flags,
            "toolchain": toolchain.identity(),
            "recipe": recipe("module"),
        }
