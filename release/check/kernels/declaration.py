"""How a kernel is declared: the function, what it is compiled with and for, and what its text must hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

AMPERE, HOPPER, BLACKWELL = "cuda:80:32", "cuda:90:32", "cuda:100:32"
CDNA3, CDNA4, RDNA3, GFX1250 = "hip:gfx942:64", "hip:gfx950:64", "hip:gfx1100:32", "hip:gfx1250:32"

EVERYWHERE = (AMPERE, HOPPER, CDNA3, CDNA4)
"""The targets that every kernel of Triton proper is compiled for."""


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """One kernel; ``signature``, ``constexprs``, ``options`` and ``attrs`` are as ``compile_text`` takes them.

    ``options_for`` has more options by target. ``expect`` gives regular expressions that the text of a stage must
    match, by ``STAGE`` or, for one target, ``TARGET/STAGE``.
    """

    name: str
    function: Any
    signature: Mapping[str, str]
    constexprs: Mapping[str, Any] = field(default_factory=dict)
    targets: tuple[str, ...] = EVERYWHERE
    options: Mapping[str, Any] = field(default_factory=dict)
    options_for: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    attrs: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    expect: Mapping[str, str] = field(default_factory=dict)

    def arguments(self, target: str) -> dict[str, Any]:
        """Return the keyword arguments of ``compile_text``."""
        return {
            "signature": self.signature,
            "constexprs": self.constexprs,
            "target": target,
            "options": {**self.options, **self.options_for.get(target, {})},
            "attrs": self.attrs,
        }
