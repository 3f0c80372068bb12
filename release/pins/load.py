"""Finding and reading the pin sets and flag profiles of the project.

>>> load_pins("preview").emscripten.version
'6.0.5'
"""

from __future__ import annotations

from pathlib import Path

from release.errors import WrongUsage
from release.pins.model import KnownBad, LLVMProfile, PinSet, Profile
from release.places import CHECKOUT
from release.toml import parse_toml

PINS = CHECKOUT / "pins"
"""Where the pin sets of the project live; a name without a slash is looked up here."""

DEFAULT = "preview"
"""The pin set that is meant where none is named: the one that can be built anywhere."""

_HELP = "docs/pins.md"


def available() -> list[str]:
    """Name the pin sets of the project."""
    return sorted(path.stem for path in PINS.glob("*.toml"))


def load_pins(name_or_path: str) -> PinSet:
    """Read a pin set by name (``preview``) or path (``./my.toml``).

    Raises WrongUsage, with the line, for anything the schema does not allow and for a profile that does not exist.
    """
    path = _find(name_or_path)
    pins = parse_toml(path, PinSet, help_page=_HELP)
    for profile in pins.profiles:
        load_profile(profile, pins)
    return pins


def load_profile(name: str, pins: PinSet) -> Profile:
    """Read the flag profile ``name``, which must be one of those that ``pins`` lists."""
    if name not in pins.profiles:
        raise WrongUsage(
            f"Pin set {pins.name} has no profile {name!r}.", remedy=f"Choose one of: {', '.join(pins.profiles)}."
        )
    return parse_toml(_profile(PINS / "profiles", name), Profile, help_page=_HELP)


def load_llvm_profile(name: str = "full-lto") -> LLVMProfile:
    """Read the LLVM profile ``name``: how LLVM is configured, whatever the pin set."""
    return parse_toml(_profile(PINS / "llvm", name), LLVMProfile, help_page="docs/llvm.md")


def load_known_bad() -> dict[str, str]:
    """Return the LLVM commits that must not be built, each with the reason."""
    found = parse_toml(PINS / "known-bad" / "llvm.toml", KnownBad, help_page=_HELP)
    return {bad.commit: bad.reason for bad in found.llvm}


def _profile(folder: Path, name: str) -> Path:
    path = folder / f"{name}.toml"
    if not path.is_file():
        known = ", ".join(sorted(other.stem for other in folder.glob("*.toml")))
        raise WrongUsage(f"There is no flag profile {name!r}.", remedy=f"Write {path}, or name one of: {known}.")
    return path


def _find(name_or_path: str) -> Path:
    is_path = "/" in name_or_path or name_or_path.endswith(".toml")
    path = Path(name_or_path) if is_path else PINS / f"{name_or_path}.toml"
    if not path.is_file():
        raise WrongUsage(
            f"There is no pin set {name_or_path!r}.",
            remedy=f"Choose one of: {', '.join(available())}; or give the path of a TOML file.",
        )
    return path
