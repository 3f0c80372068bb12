"""A wheel in two: the side module, which a browser compiles while it comes, and all else."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile, ZipFile, ZipInfo

from release.errors import Finding
from release.package.archive import EARLIEST

_SUFFIX = ".so"


@dataclass(frozen=True, kw_only=True)
class Halves:
    """``module`` with its path below site-packages, and ``tree``, a zip of everything else."""

    module: Path
    install: str
    tree: Path


def split(wheel: Path, folder: Path) -> Halves:
    """Take ``wheel`` apart into ``folder``. The zip is stored: hosts compress it whole, and browsers as they load it.

    Raises Finding for a wheel that is no zip or has not just one side module.
    """
    try:
        with ZipFile(wheel) as archive:
            names = sorted(name for name in archive.namelist() if not name.endswith("/"))
            modules = [name for name in names if name.endswith(_SUFFIX)]
            if len(modules) != 1:
                raise Finding(
                    f"{wheel.name} has {len(modules)} side modules, not one.", remedy="Build the package stage again."
                )
            (install,) = modules
            stem = Path(install).name.partition(".")[0]
            module, tree = folder / f"{stem}.wasm", folder / f"{wheel.name.partition('-')[0]}-python.zip"
            with archive.open(install) as packed, module.open("wb") as file:
                shutil.copyfileobj(packed, file)
            with ZipFile(tree, "w") as others:
                for name in names:
                    if name != install:
                        others.writestr(ZipInfo(name, time.gmtime(EARLIEST)[:6]), archive.read(name))
    except BadZipFile as error:
        raise Finding(f"{wheel.name} is no wheel: {error}.", remedy="Build the package stage again.") from error
    return Halves(module=module, install=install, tree=tree)
