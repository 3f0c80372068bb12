"""What a release is made of: Triton, or the sample that goes the same way in seconds."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from release.manifest.models import Fixup, SourceRecord
from release.package.model import Contents
from release.pins.model import Variant
from release.stage import Stages
from release.toolchain.model import Toolchain

if TYPE_CHECKING:  # what is never used by most commands is not loaded for them
    from release.check.oracle.model import OracleReport
    from release.fidelity import OracleChoice
    from release.package.recipe.model import Parts


@dataclass(frozen=True, kw_only=True)
class Linked:
    """The module as the linker left it, and how large the module of a release may be, in bytes."""

    path: Path
    init: str
    size_floor: int
    size_budget: int


@dataclass(frozen=True, kw_only=True)
class Origins:
    """What the manifest says of the sources; ``accepted`` are disagreements that were let pass."""

    sources: tuple[SourceRecord, ...] = ()
    fixups: tuple[Fixup, ...] = ()
    accepted: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Packed:
    """What goes into the package, and all that it depends on, for the stage's record."""

    contents: Contents
    inputs: dict[str, Any] = field(default_factory=dict)


class Product(Protocol):
    """What differs between products; all else is the pipeline's."""

    name: str
    extension: str
    imports: tuple[str, ...]

    @property
    def visible(self) -> list[Path]:
        """Name folders that the tools must see besides the checkout, the cache and the work dir."""

    def link(self, stages: Stages, toolchain: Toolchain) -> Linked:
        """Compile and link the side module."""

    def pack(self, stages: Stages, module: Path) -> Packed:
        """Gather what the package holds; ``module`` is the side module that was chosen."""

    def cases(self, stages: Stages) -> Path:
        """Return the folder with ``cases.toml``."""

    def compare(self, choice: OracleChoice, stages: Stages, toolchain: Toolchain) -> OracleReport:
        """Compare what the cases wrote with what an oracle writes."""

    def recipe(self, stages: Stages, toolchain: Toolchain, variant: Variant) -> Parts:
        """Return what the Pyodide recipes are made of, for the variant that was chosen."""

    def origins(self) -> Origins:
        """Say what the sources are."""
