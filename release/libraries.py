"""The host libraries of a pin set: its sources, the tools and the LLVM stage brought together."""

from __future__ import annotations

from pathlib import Path

from release.llvm import DirectoryStore, LLVMLibraries, LLVMRequest, Store, build_llvm, llvm_key
from release.pins.load import load_llvm_profile
from release.pins.model import LLVMProfile, PinSet
from release.pins.upstream import MAIN
from release.progress import Progress
from release.sources import Sources
from release.stage import exclusive
from release.toolchain.ccache import CompilerCache
from release.toolchain.model import Toolchain


class HostLibraries:
    """LLVM for one pin set in one way. The folder ``work`` holds its stage, whatever is linked with it."""

    def __init__(
        self, pins: PinSet, profile: str, sources: Sources, *, cache: Path, progress: Progress, work: Path | None = None
    ) -> None:
        self._profile: LLVMProfile = load_llvm_profile(profile)
        self.work = (work or cache / "work" / f"{pins.name}-{profile}").resolve()
        self._sources, self._cache, self._progress = sources, cache, progress
        self.kept = DirectoryStore(folder=cache / "llvm", progress=progress)
        self.store: Store = self.kept
        """Where finished libraries come from and go to: the folder, unless somebody puts another one before it."""
        self.objects = CompilerCache(folder=cache / "ccache", log=self.work / "compilers.log")

    @property
    def visible(self) -> list[Path]:
        """Name the folders that the tools must see."""
        return [self.work, self._sources.llvm[MAIN].path]

    def key(self, toolchain: Toolchain) -> tuple[str, Path]:
        """Return the cache key and the folder of the store that has that entry."""
        key = llvm_key(self._request(), toolchain)
        return key, self.kept.entry(key)

    def provide(
        self,
        toolchain: Toolchain,
        *,
        wait: bool = True,
        jobs: int | None = None,
        force: bool = False,
        stop_after: float | None = None,
    ) -> LLVMLibraries:
        """Build them, or take them as they are there or from the cache; raises as ``build_llvm`` does."""
        with exclusive(self.work, wait=wait, progress=self._progress):
            return build_llvm(
                self._request(),
                toolchain,
                work=self.work,
                cache=self._cache,
                store=self.store,
                objects=self.objects,
                progress=self._progress,
                jobs=jobs,
                force=force,
                stop_after=stop_after,
            )

    def _request(self) -> LLVMRequest:
        sources = self._sources
        fixups = tuple(fixup for fixup in sources.fixups if fixup.source == MAIN)
        return LLVMRequest(
            source=sources.fixed(MAIN, self.work),
            version=sources.llvm_trees[MAIN].version,
            digest=sources.llvm[MAIN].digest,
            triton=sources.triton.path,
            profile=self._profile,
            fixups=fixups,
        )
