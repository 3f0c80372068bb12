"""What a pin set and a flag profile may say. Everything that is built is named here, exactly, or not at all."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

Commit = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")]
"""A full git commit: 40 hex digits, because a short one can come to mean another commit."""

Repository = Annotated[str, StringConstraints(pattern=r"^https://\S+[^/\s]$")]
Version = Annotated[str, StringConstraints(pattern=r"^\d+(\.\d+)*$")]
Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9.-]*$")]
Sentence = Annotated[str, StringConstraints(pattern=r"^\S.*\.$")]

Variant = Literal["none", "O2", "O3", "O4", "Oz"]
"""A rung of the optimiser ladder: what wasm-opt is asked for after the link, or ``none`` for the link's own output."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class TritonPin(_Strict):
    """The Triton sources."""

    repository: Repository
    commit: Commit


class LLVMPin(_Strict):
    """One LLVM: a commit, or the name of a release.

    Where it is not the one that Triton's own build takes, ``stands_for`` is that one's commit and ``reason`` says why.
    """

    name: Name
    repository: Repository
    commit: Commit | None = None
    release: Version | None = None
    stands_for: Commit | None = None
    reason: Sentence | None = None

    @model_validator(mode="after")
    def _one_of_commit_and_release(self) -> Self:
        if (self.commit is None) == (self.release is None):
            raise ValueError("an LLVM is named by either `commit` or `release`")
        if (self.stands_for is None) != (self.reason is None):
            raise ValueError("`stands_for` and `reason` belong together")
        return self

    @property
    def tag(self) -> str | None:
        """The git tag of a release."""
        return self.release and f"llvmorg-{self.release}"

    @property
    def what(self) -> str:
        """The commit, or the release with that word."""
        return self.commit or f"release {self.release}"


class PyodidePin(_Strict):
    """The Pyodide that loads the package: npm's ``integrity`` of it, and the Python and ABI its lock file names."""

    version: Annotated[str, StringConstraints(pattern=r"^\d+\.\d+\.\d+(-[a-z]+\.\d+)?$")]
    integrity: Annotated[str, StringConstraints(pattern=r"^sha512-[A-Za-z0-9+/]{86}==$")]
    python: Annotated[str, StringConstraints(pattern=r"^3\.\d+\.\d+([ab]\d+|rc\d+)?$")]
    abi: Annotated[str, StringConstraints(pattern=r"^\d{4}_\d+$")]

    @property
    def python_minor(self) -> str:
        """The Python version an extension is built for, such as ``3.15``."""
        return ".".join(self.python.split(".")[:2])


class ToolPin(_Strict):
    """A tool at an exact version."""

    version: Version


class Edit(_Strict):
    """Text that occurs in a file exactly once, and what takes its place."""

    old: Annotated[str, StringConstraints(min_length=1)]
    new: str


class FixupPin(_Strict):
    """A change to a source file that could not be had from outside; ``source`` is ``triton`` or the name of an LLVM."""

    name: Name
    reason: Sentence
    source: Name = "triton"
    file: str
    edits: tuple[Edit, ...] = Field(min_length=1, strict=False)

    @model_validator(mode="after")
    def _file_is_in_the_tree(self) -> Self:
        if PurePosixPath(self.file).is_absolute() or ".." in PurePosixPath(self.file).parts:
            raise ValueError("`file` is not a path inside the sources")
        return self


class CompileFlags(_Strict):
    """Flags of every compilation."""

    flags: tuple[str, ...] = Field(min_length=1, strict=False)


class LinkFlags(_Strict):
    """Flags of the link; the exported symbol is added by the module stage, which knows the module's name.

    ``memory`` is what the link of Triton takes at its peak, in bytes.
    """

    flags: tuple[str, ...] = Field(min_length=1, strict=False)
    memory: Annotated[int, Field(gt=0)]


class Optimise(_Strict):
    """The optimiser ladder: which variants are made, with which flags and features, and which one is released."""

    variants: tuple[Variant, ...] = Field(min_length=1, strict=False)
    choose: Literal["smallest-brotli"] | Variant
    flags: tuple[str, ...] = Field(strict=False)
    features: tuple[str, ...] = Field(min_length=1, strict=False)
    timeout_seconds: Annotated[int, Field(gt=0)]

    @model_validator(mode="after")
    def _chosen_is_made(self) -> Self:
        if self.choose != "smallest-brotli" and self.choose not in self.variants:
            raise ValueError(f"`choose` names {self.choose}, which is not among `variants`")
        if len(set(self.variants)) != len(self.variants):
            raise ValueError("`variants` names one twice")
        return self


class Profile(_Strict):
    """Flags of one way to build the side module; ``llvm`` names the profile of the libraries that it is linked with."""

    schema_version: Literal[1]
    name: Name
    llvm: Name
    compile: CompileFlags
    link: LinkFlags
    optimise: Optimise


class LLVMCompile(_Strict):
    """Flags of every compilation of LLVM, C and C++ alike; ``optimise`` are those of its build type."""

    flags: tuple[str, ...] = Field(min_length=1, strict=False)
    optimise: tuple[str, ...] = Field(min_length=1, strict=False)


class LLVMProfile(_Strict):
    """One way to configure LLVM: projects, targets, flags, cache variables, and what to install besides libraries."""

    schema_version: Literal[1]
    name: Name
    projects: tuple[str, ...] = Field(strict=False)
    targets: tuple[str, ...] = Field(min_length=1, strict=False)
    extras: tuple[str, ...] = Field(strict=False)
    compile: LLVMCompile
    cmake: dict[str, bool | str]


class PinSet(_Strict):
    """Everything a release is built from."""

    schema_version: Literal[1]
    name: Name
    profiles: tuple[Name, ...] = Field(min_length=1, strict=False)
    triton: TritonPin
    llvm: tuple[LLVMPin, ...] = Field(min_length=1, strict=False)
    pyodide: PyodidePin
    emscripten: ToolPin
    binaryen: ToolPin | None = None
    fixups: tuple[FixupPin, ...] = Field(default=(), strict=False)

    @model_validator(mode="after")
    def _llvms_have_names_of_their_own(self) -> Self:
        names = [llvm.name for llvm in self.llvm]
        if len(set(names)) != len(names):
            raise ValueError("two [[llvm]] entries have the same name")
        return self

    @model_validator(mode="after")
    def _fixups_have_names_and_sources(self) -> Self:
        names = [fixup.name for fixup in self.fixups]
        if len(set(names)) != len(names):
            raise ValueError("two [[fixups]] entries have the same name")
        sources = {"triton", *(llvm.name for llvm in self.llvm)}
        if strange := [fixup for fixup in self.fixups if fixup.source not in sources]:
            raise ValueError(f"fix-up {strange[0].name} changes {strange[0].source!r}, which is no source")
        return self

    @property
    def wheel_platform(self) -> str:
        """The platform tag of wheels for this Pyodide (PEP 783), such as ``pyemscripten_2026_5_wasm32``."""
        return f"pyemscripten_{self.pyodide.abi}_wasm32"

    @property
    def wheel_python(self) -> str:
        """The interpreter and ABI tag, such as ``cp315``."""
        return "cp" + re.sub(r"\D", "", self.pyodide.python_minor)


class BadLLVM(_Strict):
    """An LLVM commit that must not be built."""

    commit: Commit
    reason: Sentence


class KnownBad(_Strict):
    """The LLVM commits that Triton has taken and given back."""

    schema_version: Literal[1]
    llvm: tuple[BadLLVM, ...] = Field(strict=False)
