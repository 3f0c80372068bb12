"""Lays releases out as a CDN tree, or adds them to one; what is already there stays, and keeps its addresses.

The order of writing is that of reading turned round: files that never change, then the indices that name them, at last
``latest.json``. So a tree may be served while it grows.
"""

from __future__ import annotations

import base64
import hashlib
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version
from pydantic import BaseModel, ValidationError
from pyodide_lock import PyodideLockSpec

from release.artifacts import files_below, write_atomically
from release.assembly import read_manifest
from release.errors import WrongUsage
from release.package.lock import LOCK, check_lock
from release.progress import Progress
from release.publish.cdn.files import FOLDER, Files
from release.publish.cdn.hosts import HEADERS, Host, check_limits, headers_file
from release.publish.cdn.model import (
    LATEST,
    Build,
    Index,
    Latest,
    ModuleFile,
    Script,
    StoredFile,
)
from release.publish.cdn.npm import npm_files
from release.publish.cdn.split import split
from release.publish.plan import read_build

LOADER = "triton-wasm.mjs"
_HERE = Path(__file__).parent
_SCRIPTS = (LOADER, "triton-wasm.d.ts")


@dataclass(frozen=True, kw_only=True)
class Tree:
    """What was laid: the folder, its ``latest.json``, and every index, by version."""

    folder: Path
    latest: Latest
    indices: Mapping[str, Index]


def lay_out(
    releases: Sequence[Path],
    out: Path,
    *,
    host: Host,
    progress: Progress,
    npm: str | None = None,
) -> Tree:
    """Add ``releases``, folders of one package each, to the tree ``out``, which is made if it is not there.

    The same releases give the same bytes; a second time nothing is written. ``npm`` makes the tree the npm package of
    that name, at the newest version in it.

    Raises WrongUsage for a folder that is no release or no tree of ours, or has another package; Finding for a release
    that is not what it says, and when ``host`` does not take the files. ``latest.json`` is then as it was.
    """
    indices = _read_tree(out)
    for folder in releases:
        with progress.steps("cdn", 1) as steps:
            steps.begin(folder.name)
            added = _add(folder, out, indices, host)
        indices[added.version] = _merged(indices.get(added.version), added)
    if not indices:
        raise WrongUsage("There is no release to lay out.", remedy="Name the --out folder of a release.")
    if len(names := sorted({index.name for index in indices.values()})) > 1:
        raise WrongUsage(f"{out} would hold {' and '.join(names)}.", remedy="Give --out a folder for each package.")
    ordered = dict(sorted(indices.items(), key=lambda item: _age(item[0]), reverse=True))
    paths = {version: f"versions/{version.replace('+', '-')}.json" for version in ordered}
    mutable = {paths[version]: _json(index) for version, index in ordered.items()}
    mutable |= {f"pyodide-lock-{abi}.json": text for abi, text in _overlays(out, ordered.values())}
    mutable |= {name: (_HERE / "loader" / name).read_text() for name in _SCRIPTS}
    latest = Latest(
        name=names[0],
        version=next(iter(ordered)),
        delivery=host.delivery,
        loader=_keep_loader(out, mutable[LOADER]),
        versions=paths,
    )
    if npm:
        newest = next(iter(ordered.values())).builds[0]
        mutable |= npm_files(npm, out / newest.wheel.path, *_SCRIPTS)
    if host.headers:
        mutable[HEADERS] = headers_file([*mutable, LATEST, ""])
    mutable[LATEST] = _json(latest)
    sizes = {path.relative_to(out).as_posix(): path.stat().st_size for path in files_below(out)}
    check_limits(host, sizes | {path: len(text.encode()) for path, text in mutable.items()})
    for path, text in mutable.items():
        if not (out / path).is_file() or (out / path).read_bytes() != text.encode():
            write_atomically(out / path, text)
    return Tree(folder=out, latest=latest, indices=ordered)


def _read_tree(out: Path) -> dict[str, Index]:
    """Return the indices of a tree, by version; nothing for one that is not there yet."""
    latest = out / LATEST
    if not latest.is_file():
        # An interrupted first run has left files, and nothing else.
        if out.exists() and (not out.is_dir() or any(path.name != FOLDER for path in out.iterdir())):
            raise WrongUsage(f"{out} holds what is no CDN tree.", remedy="Give --out an empty or a new folder.")
        return {}
    try:
        paths = Latest.model_validate_json(latest.read_bytes()).versions
        return {version: Index.model_validate_json((out / path).read_bytes()) for version, path in paths.items()}
    except (OSError, ValidationError) as error:
        said = str(error).splitlines()[0]
        raise WrongUsage(
            f"{latest} and what it names are no indices of ours: {said}.", remedy="Lay a new tree, from all releases."
        ) from error


def _add(folder: Path, out: Path, indices: Mapping[str, Index], host: Host) -> Index:
    """Put the files of one release into the tree and return what there is of it."""
    read_build(folder)
    manifest = read_manifest(folder)
    wheels = sorted(folder.glob("*.whl"))
    if len(wheels) != 1 or not (folder / LOCK).is_file():
        raise WrongUsage(f"{folder} has not one wheel and a {LOCK}.", remedy="Give the --out folder of a release.")
    (wheel,) = wheels
    check_lock(folder / LOCK, wheel)
    lock = PyodideLockSpec.from_json(folder / LOCK)
    (entry,) = lock.packages.values()
    known = {file.path: file for index in indices.values() for file in files_of(index)}
    files = Files(out, known, host.encodings)
    with tempfile.TemporaryDirectory() as temporary:
        halves = split(wheel, Path(temporary))
        module = files.keep_compressed(halves.module, halves.module.name)
        tree = files.keep_compressed(halves.tree, halves.tree.name)
        kept = files.keep(wheel, wheel.name)
        # Beside the loader's address nothing is relative to the tree but this: to itself, as Pyodide has it.
        own = Path(temporary) / LOCK
        _relocate(lock, f"../../{kept.path}").to_json(own, indent=2)
        build = Build(
            abi=str(lock.info.abi_version),
            python=lock.info.python,
            pyodide=manifest.pins.pyodide.version,
            imports=tuple(entry.imports),
            module=ModuleFile(**module.model_dump(), install=halves.install),
            tree=tree,
            wheel=kept,
            lock=files.keep(own, LOCK),
        )
    return Index(name=manifest.name, version=manifest.version, builds=(build,))


def files_of(index: Index) -> Iterator[StoredFile]:
    """Give every file that an index names."""
    for build in index.builds:
        yield from (build.module, build.tree, build.wheel, build.lock)
        yield from (*build.module.encoded.values(), *build.tree.encoded.values())


def _merged(old: Index | None, new: Index) -> Index:
    """Put the builds of ``new`` in the place of those for the same ABI; the newest ABI comes first."""
    if old and old.name != new.name:
        raise WrongUsage(
            f"The tree holds {old.name}, and this is {new.name}.", remedy="Give --out a folder for each package."
        )
    builds = {build.abi: build for build in (*(old.builds if old else ()), *new.builds)}
    order = sorted(builds, key=lambda abi: [int(part) for part in abi.split("_")], reverse=True)
    return Index(name=new.name, version=new.version, builds=tuple(builds[abi] for abi in order))


def _overlays(out: Path, indices: Iterable[Index]) -> Iterator[tuple[str, str]]:
    """Give the lock file of each ABI, which has the first of ``indices`` with a build for it."""
    seen: set[str] = set()
    for index in indices:
        for build in index.builds:
            if build.abi not in seen:
                seen.add(build.abi)
                yield build.abi, _text(_relocate(PyodideLockSpec.from_json(out / build.lock.path), build.wheel.path))


def _relocate(lock: PyodideLockSpec, wheel: str) -> PyodideLockSpec:
    (entry,) = lock.packages.values()
    moved = copy(entry)
    moved.file_name = wheel
    return PyodideLockSpec(info=lock.info, packages={entry.name: moved})


def _text(lock: PyodideLockSpec) -> str:
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / LOCK
        lock.to_json(path, indent=2)
        return path.read_text()


def _keep_loader(out: Path, text: str) -> Script:
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / LOADER
        path.write_text(text)
        stored = Files(out).keep(path, LOADER)
    digest = base64.b64encode(hashlib.sha384(text.encode()).digest()).decode()
    return Script(path=stored.path, integrity=f"sha384-{digest}")


def _age(version: str) -> tuple[bool, Version]:
    """Order versions: finals behind everything that comes before a release, whatever its number."""
    parsed = Version(version)
    return not parsed.is_prerelease, parsed


def _json(record: BaseModel) -> str:
    return record.model_dump_json(indent=2) + "\n"
