"""A package index, such as PyPI: the wheel, once, looked at before and read back after.

>>> publish_to_index(Path("dist"), index=PYPI, progress=Progress())

twine sends it. The token is in ``TWINE_PASSWORD``; without one, a job of GitHub Actions that may ask for an identity
is a trusted publisher where the index knows it as one, which twine does by itself. The index has to know the workflow
that the project has: a reusable one of another repository cannot be a trusted publisher.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import requests
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version
from pypi_simple import NoSuchProjectError, PyPISimple, UnsupportedContentTypeError

from release.artifacts import Artifact, replacing
from release.errors import BrokenEnvironment, Finding, WrongUsage
from release.process import Completed, run
from release.progress import Progress
from release.retry import Patience, Retry, Transient

MAXIMUM_SIZE = 100_000_000
"""Bytes of a file, by PyPI's default."""

_TAG = re.compile(r"pyemscripten_\d+_\d+_wasm32")
_TIMEOUT_SECONDS = 30
_UPLOAD_SECONDS = 1800
_TRUSTED = "ACTIONS_ID_TOKEN_REQUEST_TOKEN"
_PATIENCE = Patience(attempts=6, first=2.0, longest=20.0, total=300.0)

type Outcome = Literal["published", "was there", "dry run"]


@dataclass(frozen=True, kw_only=True)
class Index:
    """An index: where files are sent, and the root of its simple repository, where everybody reads.

    ``local_versions`` says whether it takes versions such as ``3.6.0+git50b2f739``.
    """

    upload: str
    simple: str
    local_versions: bool = True


PYPI = Index(upload="https://upload.pypi.org/legacy/", simple="https://pypi.org/simple/", local_versions=False)


@dataclass(frozen=True, kw_only=True)
class Indexed:
    """A wheel at an index, as it was read back; only ``published`` means that this run changed anything."""

    wheel: Artifact
    outcome: Outcome
    url: str


def publish_to_index(
    folder: Path, *, index: Index, progress: Progress, dry_run: Path | None = None, retry: Retry | None = None
) -> Indexed:
    """Have the wheel of a release folder at an index; with ``dry_run`` have it in that folder, and send nothing.

    Raises Finding for a wheel that the index would not take, and where it has other bytes under the name; WrongUsage
    for a folder without one wheel; BrokenEnvironment without a token, for one that is refused, and when the index
    cannot be reached.
    """
    path = _wheel_of(folder)
    project, wheel = _check(path, index)
    retry = retry or Retry(progress, patience=_PATIENCE)
    client = _Reader(index)
    if found := retry.step("reading the index", lambda: client.find(project, wheel.name)):
        return Indexed(wheel=wheel, outcome="was there", url=_require_same(wheel, found, client, retry))
    if dry_run is not None:
        with replacing(dry_run / project / wheel.name) as temporary:
            shutil.copyfile(path, temporary)
        return Indexed(wheel=wheel, outcome="dry run", url=(dry_run / project / wheel.name).absolute().as_uri())
    _require_credentials(index)
    retry.step("uploading", lambda: _upload(path, index))

    def read_back() -> _Found:
        if found := client.find(project, wheel.name):
            return found
        raise Transient("the index does not show the file yet")

    found = retry.step("reading back", read_back)
    return Indexed(wheel=wheel, outcome="published", url=_require_same(wheel, found, client, retry))


@dataclass(frozen=True, kw_only=True)
class _Found:
    """A file of an index; ``sha256`` is None where it does not tell."""

    url: str
    sha256: str | None


class _Reader:
    """Reads the simple repository of an index."""

    def __init__(self, index: Index) -> None:
        self._session = requests.Session()
        self._simple = index.simple

    def find(self, project: str, name: str) -> _Found | None:
        """Look for a file by its name. Raises Transient."""
        try:
            with PyPISimple(self._simple, session=self._session) as client:
                page = client.get_project_page(project, timeout=_TIMEOUT_SECONDS)
        except NoSuchProjectError:
            return None
        except requests.RequestException as error:
            reason = _reason(error)
        except (UnsupportedContentTypeError, ValueError) as error:
            reason = f"its answer is none ({type(error).__name__})"
        else:
            for package in page.packages:
                if package.filename == name:
                    return _Found(url=package.url, sha256=package.digests.get("sha256"))
            return None
        raise Transient(f"{self._simple}: {reason}")

    def digest(self, url: str, maximum: int) -> str:
        """Download a file. Raises Transient, and Finding for one that is larger."""
        digest, size = hashlib.sha256(), 0
        try:
            with self._session.get(url, stream=True, timeout=_TIMEOUT_SECONDS) as response:
                response.raise_for_status()
                for chunk in response.iter_content(1 << 20):
                    size += len(chunk)
                    if size > maximum:
                        return "larger"
                    digest.update(chunk)
        except requests.RequestException as error:
            reason = _reason(error)
        else:
            return digest.hexdigest()
        raise Transient(f"{url}: {reason}")


def _wheel_of(folder: Path) -> Path:
    wheels = sorted(folder.glob("*.whl"))
    if len(wheels) != 1:
        raise WrongUsage(f"{folder} has {len(wheels)} wheels, not one.", remedy="Give the --out folder of a release.")
    return wheels[0]


def _check(path: Path, index: Index) -> tuple[str, Artifact]:
    """Return the project's name and the wheel, after all that an index would find wrong with it."""
    try:
        project, version, _, tags = parse_wheel_filename(path.name)
    except InvalidWheelFilename as error:
        raise Finding(f"{path.name} is no name of a wheel: {error}.", remedy="Build the release again.") from error
    for tag in tags:
        if not _TAG.fullmatch(tag.platform):
            raise Finding(
                f"{path.name} is for {tag.platform}; an index takes pyemscripten_YEAR_PATCH_wasm32 (PEP 783).",
                remedy="Build for a Pyodide whose ABI has that form.",
            )
    if (size := path.stat().st_size) > MAXIMUM_SIZE:
        raise Finding(
            f"{path.name} has {size:,} bytes, and {MAXIMUM_SIZE:,} is what an index takes.",
            remedy="Choose a smaller variant of the ladder, or ask the index for a higher limit.",
        )
    if not index.local_versions and Version(str(version)).local:
        raise Finding(
            f"{index.upload} takes no local version, and {version} is one.",
            remedy="Build a Triton that is a release; what lies between releases goes to GitHub and a CDN.",
        )
    # --strict: a description that does not render is an error.
    checked = run([sys.executable, "-m", "twine", "--no-color", "check", "--strict", path], timeout=120)
    if checked.returncode:
        raise Finding(f"twine check refuses {path.name}: {_last_line(checked)}", remedy="Build the release again.")
    return project, Artifact.of(path)


def _require_same(wheel: Artifact, found: _Found, client: _Reader, retry: Retry) -> str:
    sha256 = found.sha256 or retry.step("downloading", partial(client.digest, found.url, wheel.size))
    if sha256 != wheel.sha256:
        raise Finding(
            f"The index has another {wheel.name} (SHA-256 {sha256}, here {wheel.sha256}).",
            remedy="A file of an index is for ever: release under another version.",
        )
    return found.url.partition("#")[0]


def _require_credentials(index: Index) -> None:
    if not os.environ.get("TWINE_PASSWORD") and not os.environ.get(_TRUSTED):
        raise BrokenEnvironment(
            f"There is no token for {index.upload}: TWINE_PASSWORD is not set, and this is no trusted publisher.",
            remedy="Run it in a job with `id-token: write` that the index trusts, or set TWINE_PASSWORD.",
        )


def _upload(path: Path, index: Index) -> None:
    command = [sys.executable, "-m", "twine", "--no-color", "upload", "--non-interactive", "--disable-progress-bar"]
    env = {} if os.environ.get("TWINE_USERNAME") else {"TWINE_USERNAME": "__token__"}
    done = run([*command, "--repository-url", index.upload, path], env=env, timeout=_UPLOAD_SECONDS)
    if done.returncode == 0:
        return
    if re.search(r"\b(401|403)\b|Invalid or non-existent authentication", done.output):
        raise BrokenEnvironment(
            f"{index.upload} refuses the token.",
            remedy="Look at its scope, or at the trusted publisher of the project.",
        )
    if re.search(r"\b(409|already exists)\b", done.output):
        return  # another run was faster: what it has sent is compared like ours
    if done.timed_out or re.search(r"\b(5\d\d|429)\b|Connection|Timeout|RemoteDisconnected", done.output):
        raise Transient(_last_line(done))
    raise Finding(f"{index.upload} refuses {path.name}: {_last_line(done)}", remedy="Read what the index says.")


def _last_line(done: Completed) -> str:
    """Return what was said last, without the token should it be in there."""
    lines = [line.strip() for line in done.output.splitlines() if line.strip()]
    text = lines[-1][:300] if lines else done.explain()
    secret = os.environ.get("TWINE_PASSWORD")
    return text.replace(secret, "***") if secret else text


def _reason(error: requests.RequestException) -> str:
    response = error.response
    return f"it answered {response.status_code}" if response is not None else type(error).__name__
