"""A folder as a host of one release, for dry runs: the assets, and ``release.json`` with the rest."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from release.artifacts import Artifact, replacing, sha256_of, sweep, write_atomically
from release.errors import WrongUsage
from release.publish.host import Access, HostedAsset, HostedRelease

RECORD = "release.json"


@dataclass(frozen=True, kw_only=True)
class _State:
    """What ``release.json`` holds."""

    tag: str
    commit: str | None
    draft: bool
    prerelease: bool
    title: str
    body: str


class FolderHost:
    """Holds one release, in ``folder``; ``tags`` says which tags there are, and at which commits.

    Raises WrongUsage when the folder has files and is not such a host.
    """

    def __init__(self, folder: Path, *, tags: Mapping[str, str]) -> None:
        self.name = str(folder)
        self._folder, self._tags = folder, tags
        folder.mkdir(parents=True, exist_ok=True)
        sweep(folder)
        if self._read() is None and any(folder.iterdir()):
            raise WrongUsage(
                f"{folder} has files and no {RECORD}: it is not the folder of a dry run.",
                remedy="Give another --out folder.",
            )

    def access(self) -> Access:
        """Say that all may be done."""
        return Access(may_write=True)

    def tag_commit(self, tag: str) -> str | None:
        """Look into ``tags``."""
        return self._tags.get(tag)

    def releases(self, tag: str) -> list[HostedRelease]:
        """Return the one release, if it is of that tag."""
        release = self.release(1)
        return [release] if release and release.tag == tag else []

    def release(self, number: int) -> HostedRelease | None:
        """Read the release, whose id is 1."""
        state = self._read()
        if state is None or number != 1:
            return None
        return HostedRelease(
            id=1,
            tag=state.tag,
            draft=state.draft,
            prerelease=state.prerelease,
            immutable=False,
            body=state.body,
            url=self._folder.as_uri() if self._folder.is_absolute() else str(self._folder),
            upload_url="",
        )

    def published(self, tag: str) -> HostedRelease | None:
        """Return the release if it is no draft."""
        return next((release for release in self.releases(tag) if not release.draft), None)

    def assets(self, release: HostedRelease) -> list[HostedAsset]:
        """Read every file, as a host that computes digests does."""
        paths = sorted(path for path in self._folder.iterdir() if path.name != RECORD)
        return [self._asset(number, path) for number, path in enumerate(paths, 1)]

    def digest(self, asset: HostedAsset) -> str:
        """Read the file."""
        return sha256_of(self._folder / asset.name)

    def create_draft(self, tag: str, *, title: str, body: str, prerelease: bool) -> HostedRelease:
        """Begin the release. Raises WrongUsage when the folder holds one of another tag."""
        found = self._read()
        if found is not None:
            raise WrongUsage(f"{self._folder} has {found.tag}, of another build.", remedy="Give another --out folder.")
        self._write(
            _State(tag=tag, commit=self._tags.get(tag), draft=True, prerelease=prerelease, title=title, body=body)
        )
        created = self.release(1)
        assert created is not None  # noqa: S101 - for the type checker: it has just been written
        return created

    def edit_body(self, release: HostedRelease, body: str) -> None:
        """Replace the text."""
        self._change(body=body)

    def upload(self, release: HostedRelease, path: Path, artifact: Artifact) -> HostedAsset:
        """Copy a file."""
        if artifact.name == RECORD:
            raise WrongUsage(f"A dry run keeps its own {RECORD}.", remedy="Give the asset another name.")
        with replacing(self._folder / artifact.name) as temporary:
            shutil.copyfile(path, temporary)
        return self._asset(0, self._folder / artifact.name)

    def delete_asset(self, asset: HostedAsset) -> None:
        """Remove a file."""
        (self._folder / asset.name).unlink(missing_ok=True)

    def delete_draft(self, release: HostedRelease) -> None:
        """Forget the release; its files stay."""
        (self._folder / RECORD).unlink(missing_ok=True)

    def publish(self, release: HostedRelease, body: str) -> None:
        """Note that it is no draft any more."""
        self._change(draft=False, body=body)

    def _asset(self, number: int, path: Path) -> HostedAsset:
        return HostedAsset(
            id=number,
            name=path.name,
            size=path.stat().st_size,
            complete=True,
            sha256=sha256_of(path),
            url=path.absolute().as_uri(),
        )

    def _change(self, **values: object) -> None:
        state = self._read()
        if state is not None:
            self._write(_State(**{**state.__dict__, **values}))

    def _read(self) -> _State | None:
        try:
            record = json.loads((self._folder / RECORD).read_text())
            return _State(**{key: value for key, value in record.items() if key != "schema_version"})
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, AttributeError) as error:
            raise WrongUsage(
                f"{self._folder / RECORD} is not that of a dry run.", remedy="Give another --out folder."
            ) from error

    def _write(self, state: _State) -> None:
        record = {"schema_version": 1, **state.__dict__}
        write_atomically(self._folder / RECORD, json.dumps(record, indent=2, sort_keys=True) + "\n")
