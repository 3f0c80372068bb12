"""What can be compiled for, and how a target is written: ``cuda:80:32``, ``hip:gfx942:64``."""

from __future__ import annotations

from dataclasses import dataclass

# Triton cannot be asked: LLVM compiles for a processor it has never heard of, and only mutters.
# Of NVIDIA's, the PTX version that brought them, 88 for 8.8 (PTX ISA, "Release Notes").
_CUDA = {75: 63, 80: 70, 86: 71, 87: 74, 88: 90, 89: 78, 90: 80, 100: 86, 101: 86, 103: 88, 110: 90, 120: 87, 121: 88}
_HIP_64 = ("gfx908", "gfx90a", "gfx942", "gfx950")
_HIP_32 = ("gfx1030", "gfx1100", "gfx1101", "gfx1102", "gfx1151", "gfx1200", "gfx1201", "gfx1250")

PTX_VERSION = 87
"""The PTX version of targets that need no newer one: what Triton makes of the CUDA 12.8 that its wheels ship."""


class UnknownTarget(ValueError):  # noqa: N818 - it names what is wrong, as Triton's own errors do
    """A target that does not exist; the message lists those that do."""


@dataclass(frozen=True)
class Target:
    """A GPU to compile for; ``warp_size`` is the number of threads that run in step."""

    backend: str
    arch: int | str
    warp_size: int

    def __str__(self) -> str:
        return f"{self.backend}:{self.arch}:{self.warp_size}"

    @property
    def ptx_version(self) -> int:
        """The PTX version for which Triton would ask ``ptxas``; for NVIDIA only."""
        return max(PTX_VERSION, _CUDA.get(int(self.arch), 0))


def targets() -> tuple[Target, ...]:
    """Return all targets: NVIDIA's by compute capability, then AMD's by name."""
    return (
        *(Target("cuda", arch, 32) for arch in _CUDA),
        *(Target("hip", arch, 64) for arch in _HIP_64),
        *(Target("hip", arch, 32) for arch in _HIP_32),
    )


def parse_target(text: str) -> Target:
    """Return the target written as ``BACKEND:ARCH:WARP_SIZE``. Raises UnknownTarget."""
    known = {str(target): target for target in targets()}
    if text in known:
        return known[text]
    names = list(known)
    raise UnknownTarget(f"There is no target {text!r}. {_advice(text, names)}The targets are {', '.join(names)}.")


def _advice(text: str, names: list[str]) -> str:
    """Return the target that somebody meant who got the warp size wrong or left it out."""
    start = ":".join(text.split(":")[:2])
    meant = next((name for name in names if name.startswith(f"{start}:")), "")
    return f"Did you mean {meant!r}? " if meant else ""
