"""What is asked of an LLVM build, and the key of its outcome: everything that changes the bits, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from release.llvm.components import roots
from release.llvm.tablegen import given_digest
from release.pins.model import FixupPin, LLVMProfile
from release.stage import key_of
from release.toolchain.model import Toolchain

RECIPE = 1
"""Counts the changes of this room that change the bits. Its code is no part of the key: a comment costs no hour."""


@dataclass(frozen=True, kw_only=True)
class LLVMRequest:
    """Which LLVM is built, for which Triton, and how.

    ``source`` is the LLVM tree with its ``fixups`` made, ``digest`` that of the tree without them; ``version`` is what
    the tree says of itself. ``triton`` is the tree whose CMake files name the libraries.
    """

    source: Path
    version: str
    digest: str
    triton: Path
    profile: LLVMProfile
    fixups: Sequence[FixupPin] = ()

    def roots(self) -> tuple[str, ...]:
        """Name the libraries that Triton asks for."""
        return roots(self.triton, self.source, self.profile.targets)


def key_inputs(request: LLVMRequest, toolchain: Toolchain) -> dict[str, Any]:
    """Return what the key is a digest of.

    Left out on purpose, since no bit depends on it: where the trees and the work dir are, the number of jobs, the name
    of the profile, CMake and ninja, Binaryen and Python's headers, and table generators of the very release that is
    built, for they write what LLVM's own would.
    """
    profile = request.profile
    return {
        "recipe": RECIPE,
        "source": request.digest,
        "fixups": [fixup.model_dump(mode="json", include={"file", "edits"}) for fixup in request.fixups],
        "projects": sorted(profile.projects),
        "targets": sorted(profile.targets),
        "flags": [*profile.compile.flags, *profile.compile.optimise],
        "cmake": profile.cmake,
        "components": [*request.roots(), *sorted(profile.extras)],
        "tablegen": given_digest(request.version),
        "emscripten": toolchain.emscripten.digest,
    }


def llvm_key(request: LLVMRequest, toolchain: Toolchain) -> str:
    """Return the key as 64 hex digits; it is that of the stage too."""
    return key_of(key_inputs(request, toolchain))
