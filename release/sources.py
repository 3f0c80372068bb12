"""The sources of a release: provided, asked what they say of themselves, and compared with the pin set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from release.errors import WrongUsage
from release.pins.agreement import check_agreement
from release.pins.model import FixupPin, LLVMPin, PinSet
from release.pins.upstream import MAIN, LLVMTree, TritonTree, read_llvm, read_triton
from release.progress import Progress
from release.toolchain.fixups import apply_fixups, check_fixups
from release.toolchain.git import remote_tags, resolve_remote
from release.toolchain.sources import Origin, Source, provide

TRITON = "triton"


@dataclass(frozen=True, kw_only=True)
class Sources:
    """The trees of Triton and of every LLVM of the pin set, by its name there.

    ``accepted`` are the disagreements that --accept-llvm let pass, ``fixups`` the changes that will be made to copies;
    both belong into the manifest.
    """

    triton: Source
    llvm: Mapping[str, Source]
    triton_tree: TritonTree
    llvm_trees: Mapping[str, LLVMTree]
    fixups: tuple[FixupPin, ...]
    accepted: tuple[str, ...]

    def fixed(self, name: str, folder: Path) -> Path:
        """Return the tree ``triton``, or an LLVM's, with its fix-ups; if there are any it is a copy in ``folder``."""
        source = self.triton if name == TRITON else self.llvm[name]
        return apply_fixups(_of(name, self.fixups), source, folder / f"{name}-fixed")


def provide_sources(
    pins: PinSet, *, cache: Path, progress: Progress, accept_llvm: bool = False, allow_dirty: bool = False
) -> Sources:
    """Take the trees that TRITON_ROOT and LLVM_ROOT name, or fetch them, and compare them with the pin set.

    Another LLVM than ``llvm`` is named by its own variable, such as AMD_LLVM_ROOT. Raises Finding when they disagree
    (unless ``accept_llvm``), have local changes (unless ``allow_dirty``) or a fix-up no longer fits; WrongUsage for a
    tree that is not laid out as one we know; BrokenEnvironment when one can be neither found nor fetched.
    """
    triton = pinned_triton(pins, cache=cache, progress=progress, allow_dirty=allow_dirty)
    tree = read_triton(triton.path)
    # Before LLVM is fetched, which is the long part.
    check_agreement(pins, tree, {}, accept=accept_llvm)
    check_fixups(_of(TRITON, pins.fixups), triton.path)
    llvm = {
        pin.name: provide(
            pin.name,
            Origin(repository=pin.repository, commit=pin.commit, tag=pin.tag),
            variable=_variable(pin),
            cache=cache,
            progress=progress,
            allow_dirty=allow_dirty,
            any_commit=True,
        )
        for pin in pins.llvm
    }
    for name, source in llvm.items():
        check_fixups(_of(name, pins.fixups), source.path)
    llvm_trees = {name: read_llvm(source.path, source.commit) for name, source in llvm.items()}
    return Sources(
        triton=triton,
        llvm=llvm,
        triton_tree=tree,
        llvm_trees=llvm_trees,
        fixups=pins.fixups,
        accepted=check_agreement(pins, tree, llvm_trees, accept=accept_llvm),
    )


def pinned_triton(pins: PinSet, *, cache: Path, progress: Progress, allow_dirty: bool = False) -> Source:
    """Take the tree that TRITON_ROOT names, or fetch the pinned commit. Raises as ``provide_sources`` does."""
    origin = Origin(repository=pins.triton.repository, commit=pins.triton.commit)
    return provide(TRITON, origin, variable="TRITON_ROOT", cache=cache, progress=progress, allow_dirty=allow_dirty)


def other_triton(pins: PinSet, ref: str, *, cache: Path, progress: Progress) -> Source:
    """Take the tree in the folder ``ref``, or fetch that branch, tag or commit of the pinned repository.

    What NEW_TRITON_ROOT names is taken for that commit, where it does not say itself which it is. Raises WrongUsage
    where it is none of these, BrokenEnvironment when the repository cannot be reached.
    """
    if Path(ref).is_dir():
        return Source(name=TRITON, path=Path(ref).resolve(), commit=None, digest="", given=True)
    commit = resolve_remote(pins.triton.repository, ref)
    if commit is None:
        raise WrongUsage(
            f"{ref} is no folder, and no branch, tag or commit of {pins.triton.repository}.",
            remedy="Give a commit with all of its 40 digits, the name of a branch or a tag, or the path of a tree.",
        )
    origin = Origin(repository=pins.triton.repository, commit=commit)
    return replace(provide(TRITON, origin, variable="NEW_TRITON_ROOT", cache=cache, progress=progress), commit=commit)


def triton_tags(pins: PinSet) -> list[str]:
    """Name the tags of the pinned repository. Raises BrokenEnvironment when it cannot be reached."""
    return remote_tags(pins.triton.repository)


def describe(pins: PinSet, sources: Sources) -> str:
    """Say in a few lines where the sources are, what they say of themselves, and whether they agree."""
    tree = sources.triton_tree
    lines = [f"Triton {tree.version}, bound by {tree.bindings}{_where(sources.triton)}"]
    lines += [f"  wants LLVM {upstream.commit} ({upstream.name}, {upstream.file})" for upstream in tree.llvm]
    for pin in pins.llvm:
        lines.append(f"LLVM {sources.llvm_trees[pin.name].version} ({pin.name}){_where(sources.llvm[pin.name])}")
        if pin.stands_for:
            lines.append(f"  stands for {pin.stands_for}: {pin.reason}")
    lines += [f"fix-up {fixup.name} of {fixup.file}: {fixup.reason}" for fixup in sources.fixups]
    lines += [f"accepted: {finding}" for finding in sources.accepted]
    lines += [] if sources.accepted else [f"Pin set {pins.name}, Triton and LLVM agree."]
    return "\n".join(lines)


def _of(name: str, fixups: tuple[FixupPin, ...]) -> list[FixupPin]:
    return [fixup for fixup in fixups if fixup.source == name]


def _variable(pin: LLVMPin) -> str:
    return "LLVM_ROOT" if pin.name == MAIN else f"{pin.name.upper().replace('-', '_').replace('.', '_')}_LLVM_ROOT"


def _where(source: Source) -> str:
    commit = f" at {source.commit}" if source.commit else ""
    changes = f", {len(source.changed)} files changed" if source.changed else ""
    return f"{commit}{changes}, {source.path}\n  {source.digest}"
