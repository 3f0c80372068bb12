"""What the recipes are made of, besides what the direct path packs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from release.pins.model import Profile, Variant


@dataclass(frozen=True, kw_only=True)
class Library:
    """The host libraries: what is in ``folder`` is laid as it is into the folder of libraries of the recipes."""

    name: str
    version: str
    summary: str
    license: str
    folder: Path


@dataclass(frozen=True, kw_only=True)
class Linking:
    """How the side module is linked.

    ``names`` are objects and archives in their order, as the linker is given them. Their first parts are either keys of
    ``objects``, whose values are files and folders, or of ``libraries``, whose values say where that is in the library
    (``.`` for all of it). ``output`` is the name of the module's file, ``init`` its ``PyInit_…``. ``variant`` is the
    rung of the optimiser's ladder that the direct path has chosen.
    """

    names: tuple[str, ...]
    objects: Mapping[str, Path]
    libraries: Mapping[str, str]
    init: str
    output: str
    profile: Profile
    variant: Variant


@dataclass(frozen=True, kw_only=True)
class Parts:
    """The host libraries and the link that takes them."""

    library: Library
    linking: Linking
