"""Hosts of static files: what each takes, and how it answers a browser."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from release.errors import Finding, WrongUsage
from release.publish.cdn.model import Delivery, Encoding

HEADERS = "_headers"
"""A file that some hosts read: what they are to send with which path."""

IMMUTABLE = "public, max-age=31536000, immutable"
MUTABLE = "public, max-age=300, stale-while-revalidate=86400"
"""``Cache-Control`` of what is below ``files/``, and of everything else."""

TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".json": "application/json",
    ".mjs": "text/javascript",
    ".py": "text/plain; charset=utf-8",
    ".ts": "text/plain; charset=utf-8",
    ".wasm": "application/wasm",
    ".whl": "application/zip",
    ".zip": "application/zip",
}
"""``Content-Type`` by the end of a name. A browser compiles WebAssembly while it comes, and runs a module, only so."""

ALWAYS = {
    "Access-Control-Allow-Origin": "*",
    "Cross-Origin-Resource-Policy": "cross-origin",
    "Timing-Allow-Origin": "*",
    "X-Content-Type-Options": "nosniff",
}
"""What goes with every file: pages of others may load it, isolated ones too, and may see how long that took."""

_HOSTS = Path(__file__).with_name("hosts.toml")
_SHOWN = 3


class Host(BaseModel):
    """``file`` and ``total`` are limits in bytes, where there are any; ``headers``: whether it reads ``_headers``.

    ``encodings`` are those that somebody can use there: the host itself, or the loader.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    delivery: Delivery
    encodings: tuple[Encoding, ...]
    headers: bool
    file: int | None = Field(default=None, gt=0)
    total: int | None = Field(default=None, gt=0)
    remedy: str = "Choose another host."


def hosts() -> Mapping[str, Host]:
    """Return the hosts that are known, by name."""
    return {name: Host(name=name, **said) for name, said in tomllib.loads(_HOSTS.read_text()).items()}


def host_of(name: str) -> Host:
    """Return a host. Raises WrongUsage for one that is not known."""
    known = hosts()
    if name not in known:
        raise WrongUsage(f"There is no host {name!r}.", remedy=f"Choose one of: {', '.join(known)}.")
    return known[name]


def check_limits(host: Host, sizes: Mapping[str, int]) -> None:
    """Raise Finding when a host does not take files of these sizes, given by path in bytes."""
    largest = sorted(sizes, key=lambda path: (-sizes[path], path))[:_SHOWN]
    names = ", ".join(f"{path} ({sizes[path]:,})" for path in largest)
    if host.file is not None and largest and sizes[largest[0]] > host.file:
        raise Finding(
            f"{host.name} takes files of {host.file:,} bytes at most; the largest are {names}.", remedy=host.remedy
        )
    total = sum(sizes.values())
    if host.total is not None and total > host.total:
        raise Finding(
            f"{host.name} takes {host.total:,} bytes at most, and the tree has {total:,}; the largest are {names}.",
            remedy=host.remedy,
        )


def headers_of(path: str) -> dict[str, str]:
    """Return the headers that a file of the tree should come with, by its path in the tree."""
    said = {"Cache-Control": IMMUTABLE if path.startswith("files/") else MUTABLE, **ALWAYS}
    if kind := TYPES.get(Path(path).suffix):
        said["Content-Type"] = kind
    return said


def headers_file(mutable: Iterable[str]) -> str:
    """Return the text of ``_headers`` for a tree with these files besides those below ``files/``.

    A star of such a file matches slashes too, and where two rules match a host joins what they say: so none overlap in
    what they set. Types are left to the hosts that read this; they know WebAssembly.
    """
    rules = {"/*": ALWAYS, "/files/*": {"Cache-Control": IMMUTABLE}}
    rules |= {f"/{path}": {"Cache-Control": MUTABLE} for path in sorted(mutable)}
    return "".join(
        f"{path}\n" + "".join(f"  {name}: {value}\n" for name, value in said.items()) for path, said in rules.items()
    )
