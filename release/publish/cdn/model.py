"""The JSON files of a CDN tree, as models: what ``triton-wasm.mjs`` and people's own loaders read.

Paths are relative to the root of the tree, sizes bytes, digests SHA-256 in hex. A file below ``files/`` never changes:
its folder is the start of its digest.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

LATEST = "latest.json"
"""The name of ``Latest`` in the tree; an ``Index`` is named there."""

type Encoding = Literal["br", "zst", "gz"]
"""How a file was compressed beforehand; it lies beside the file, under its name with this suffix."""

type Delivery = Literal["negotiated", "plain"]
"""What a host sends to a browser that asks for a file with compressed twins: a twin with ``Content-Encoding``, or the
bytes of the file."""

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
TreePath = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._/-]*$")]
Integrity = Annotated[str, StringConstraints(pattern=r"^sha384-[A-Za-z0-9+/]{64}$")]


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class StoredFile(_Record):
    """An immutable file."""

    path: TreePath
    size: Annotated[int, Field(ge=0)]
    sha256: Sha256


class Content(StoredFile):
    """An immutable file that is loaded in a browser, and its compressed twins."""

    encoded: Mapping[Encoding, StoredFile]


class ModuleFile(Content):
    """The side module, taken out of the wheel; ``install`` is its path below site-packages."""

    install: str


class Build(_Record):
    """One package for one Pyodide ABI.

    ``module`` and ``tree`` (a zip of all else, stored) are together what is in ``wheel``, which is the released one and
    the one that ``lock`` names. ``imports`` are the modules that it brings.
    """

    abi: str
    python: str
    pyodide: str
    imports: tuple[str, ...]
    module: ModuleFile
    tree: Content
    wheel: StoredFile
    lock: StoredFile


class Index(_Record):
    """``versions/VERSION.json``: what there is of one version of the package, the newest ABI first."""

    schema_version: Literal[1] = 1
    name: str
    version: str
    builds: tuple[Build, ...]


class Script(_Record):
    """A JavaScript module and the digest for ``integrity`` attributes and import maps."""

    path: TreePath
    integrity: Integrity


class Latest(_Record):
    """``latest.json``, the one file that says what is there.

    ``versions`` gives the path of the ``Index`` of each version, the newest version first; ``version`` is that which is
    loaded when nobody asks for one. ``loader`` is the immutable ``triton-wasm.mjs``.
    """

    schema_version: Literal[1] = 1
    name: str
    version: str
    delivery: Delivery
    loader: Script
    versions: Mapping[str, TreePath]
