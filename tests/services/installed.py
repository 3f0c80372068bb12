"""Other people's programs from npm that stand in for services, or judge what does: locked, and installed once.

>>> services = install_services(cache_folder())
>>> run([services.node, HERE / "sigstore" / "bridge.mjs", ...], env=services.env)
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from release.artifacts import replacing_folder, sha256_of
from release.process import run
from release.progress import Progress
from release.stage import exclusive
from release.toolchain.node import find_node, find_npm

HERE = Path(__file__).parent


@dataclass(frozen=True, kw_only=True)
class Services:
    """Node, and the ``node_modules`` folder; ``env`` lets a program of ours ``require`` from it."""

    node: Path
    modules: Path

    @property
    def env(self) -> dict[str, str]:
        """What a Node has to have in its environment to find the modules with ``createRequire`` or ``require``."""
        return {"NODE_PATH": str(self.modules), "PATH": f"{self.node.parent}:/usr/bin:/bin"}


def install_services(cache: Path) -> Services:
    """Return what ``package-lock.json`` names, from the cache or from npm; npm compares the digests."""
    lock = HERE / "package-lock.json"
    folder = cache / "test-services" / sha256_of(lock)[:16]
    node = find_node()
    if not (folder / "node_modules").is_dir():
        with exclusive(folder.parent, wait=True, progress=Progress(quiet=True)):
            if not (folder / "node_modules").is_dir():
                with replacing_folder(folder) as temporary:
                    for name in ("package.json", lock.name):
                        shutil.copyfile(HERE / name, temporary / name)
                    options = [
                        "--ignore-scripts",
                        "--no-audit",
                        "--no-fund",
                        "--prefer-offline",
                        f"--prefix={temporary}",
                    ]
                    done = run([node, find_npm(), "ci", *options], cwd=temporary, timeout=300)
                    assert done.returncode == 0, done.tail
    return Services(node=node, modules=folder / "node_modules")
