"""``SHA256SUMS``: the digests of a folder's files by bare name, as ``sha256sum --check`` reads it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from release.artifacts import Artifact
from release.errors import Finding, WrongUsage

NAME = "SHA256SUMS"


def checksums(folder: Path, *, but: Callable[[str], bool] = lambda _: False) -> str:
    """Return the text of ``SHA256SUMS`` over every file of ``folder`` but itself, and ``but`` those of such names."""
    paths = [path for path in sorted(folder.iterdir()) if path.is_file() and path.name != NAME and not but(path.name)]
    artifacts = [Artifact.of(path) for path in paths]
    return "".join(f"{artifact.sha256}  {artifact.name}\n" for artifact in artifacts)


def verify(folder: Path, *, but: Callable[[str], bool] = lambda _: False) -> int:
    """Compare the files of ``folder`` with its ``SHA256SUMS``, both ways; return how many there are.

    ``but`` tells by its name a file that need not be listed, such as a signature.

    Raises WrongUsage when there is no such list or it is not one, Finding for a file that differs, lacks or is not
    listed.
    """
    try:
        listed = _parse((folder / NAME).read_text())
    except (OSError, ValueError) as error:
        raise WrongUsage(f"{folder} has no readable {NAME}.", remedy="Give the --out folder of a release.") from error
    found = _parse(checksums(folder, but=but))
    for name in sorted(listed.keys() | found.keys()):
        if listed.get(name) != found.get(name):
            state = "is not listed" if name not in listed else "is missing" if name not in found else "differs"
            raise Finding(f"{name} {state} ({NAME} in {folder}).", remedy="Build the release again, or fetch it again.")
    return len(listed)


def _parse(text: str) -> dict[str, str]:
    pairs = [line.split("  ", 1) for line in text.splitlines()]
    return {name: digest for digest, name in pairs}
