"""A package index, such as PyPI: the wheel, once, looked at before and read back after.

>>> publish_to_index(Path("dist"), index=PYPI, progress=Progress())

twine sends it. The token is in ``TWINE_PASSWORD``; without one, a job of GitHub Actions that may ask for an identity
is a trusted publisher of PyPI where that knows it as one, which twine does by itself. PyPI has to know the workflow
that the project has: a reusable one of another repository cannot be a trusted publisher.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from pypi_simple import ACCEPT_ANY, ProjectPage, UnsupportedRepoVersionError

from release.artifacts import Artifact, replacing
from release.certificates import bundle
from release.download import Absent, download
from release.errors import BrokenEnvironment, Finding, WrongUsage
from release.process import Completed, run
from release.progress import Progress
from release.retry import Patience, Retry, Transient

MAXIMUM_SIZE = 100_000_000
"""Bytes of a file, by PyPI's default."""

_TAG = re.compile(r"pyemscripten_\d+_\d+_wasm32")
_MAXIMUM_PAGE = 1 << 24
_CHECK_SECONDS, _UPLOAD_SECONDS = 120, 1800
_WAREHOUSES = ("https://upload.pypi.org/", "https://test.pypi.org/")
_IDENTITY = "ACTIONS_ID_TOKEN_REQUEST_TOKEN"
_PATIENCE = Patience(attempts=6, first=2.0, longest=20.0, total=300.0)
# -P: a twine.py in the folder that we are called from would be given the token.
_TWINE = (sys.executable, "-P", "-m", "twine", "--no-color")

type Outcome = Literal["published", "was there", "dry run"]


@dataclass(frozen=True, kw_only=True)
class Index:
    """An index: where files are sent, and the root of its simple repository, where everybody reads.

    Raises WrongUsage for an address with a password in it, and for one that would send the token in the clear.
    """

    upload: str
    simple: str

    def __post_init__(self) -> None:
        sent, read = urlsplit(self.upload), urlsplit(self.simple)
        if "@" in sent.netloc + read.netloc:
            raise WrongUsage(
                "An address of the index has a name or a password in it.",
                remedy="Put them into TWINE_USERNAME and TWINE_PASSWORD.",
            )
        # Reading is refused where neither https nor this machine is, and nothing is sent before something was read.
        if sent.scheme != "https" and (sent.scheme, sent.hostname) != (read.scheme, read.hostname):
            raise WrongUsage(f"{self.upload} is not https: it would be sent a token.", remedy="Give an https:// one.")

    @property
    def is_pypi(self) -> bool:
        """Whether it is PyPI or TestPyPI, which take no local versions and know trusted publishers."""
        return self.upload.startswith(_WAREHOUSES)


PYPI = Index(upload="https://upload.pypi.org/legacy/", simple="https://pypi.org/simple/")


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
    for a folder without one wheel and an index that is neither https nor on this machine; BrokenEnvironment without a
    token, for one that is refused, and when the index cannot be reached.
    """
    path = _wheel_of(folder)
    project, wheel = _check(path, index)
    retry = retry or Retry(progress, patience=_PATIENCE)
    look = partial(_find, index, project, wheel.name)
    if found := retry.step("reading the index", look):
        digest = found.sha256 or retry.step("downloading", partial(_download, found))
        return Indexed(wheel=wheel, outcome="was there", url=_require_same(wheel, found, digest))
    if dry_run is not None:
        with replacing(dry_run / project / wheel.name) as temporary:
            shutil.copyfile(path, temporary)
        return Indexed(wheel=wheel, outcome="dry run", url=(dry_run / project / wheel.name).absolute().as_uri())
    _require_credentials(index)

    def send() -> Outcome:
        # What was sent without an answer may have arrived.
        return "published" if look() else _upload(path, index)

    def read_back() -> tuple[_Found, str]:
        if found := look():
            return found, _download(found)
        raise Transient("the index does not show the file yet")

    outcome = retry.step("uploading", send)
    found, digest = retry.step("reading back", read_back)
    _require_same(wheel, found, found.sha256 or digest)
    return Indexed(wheel=wheel, outcome=outcome, url=_require_same(wheel, found, digest))


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
    if index.is_pypi and version.local:
        raise Finding(
            f"{index.upload} takes no local version, and {version} is one.",
            remedy="Build a Triton that is a release; what lies between releases goes to GitHub and a CDN.",
        )
    # --strict: a description that does not render is an error.
    checked = run([*_TWINE, "check", "--strict", path], env=_environment(), timeout=_CHECK_SECONDS)
    if checked.returncode:
        raise Finding(f"twine check refuses {path.name}: {_last_line(checked)}", remedy="Build the release again.")
    return project, Artifact.of(path)


@dataclass(frozen=True, kw_only=True)
class _Found:
    """A file of an index; ``sha256`` is None where it does not tell."""

    url: str
    sha256: str | None


def _find(index: Index, project: str, name: str) -> _Found | None:
    """Look for a file by its name. Raises Transient."""
    url = f"{index.simple.rstrip('/')}/{project}/"
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "page"
        try:
            download(url, path, maximum=_MAXIMUM_PAGE, headers={"Accept": ACCEPT_ANY})
        except Absent as absent:
            if absent.status == 404:
                return None
            raise BrokenEnvironment(f"{absent}.", remedy="Look whether everybody may read the index.") from absent
        page = path.read_text(errors="replace")
    try:
        # One of the two that were asked for, and HTML begins with "<".
        if page.lstrip().startswith("{"):
            read = ProjectPage.from_json_data(json.loads(page), url)
        else:
            read = ProjectPage.from_html(project, page, url)
    except (ValueError, UnsupportedRepoVersionError) as error:
        raise Transient(f"{url} answers what is no page of an index ({type(error).__name__})") from error
    for package in read.packages:
        if package.filename == name:
            return _Found(url=package.url.partition("#")[0], sha256=package.digests.get("sha256"))
    return None


def _download(found: _Found) -> str:
    """Return the SHA-256 of what is served. Raises Transient, and Finding for what no index could have taken."""
    with tempfile.TemporaryDirectory() as temporary:
        try:
            return download(found.url, Path(temporary) / "wheel", maximum=MAXIMUM_SIZE).sha256
        except Absent as absent:
            reason = str(absent)
    raise Transient(reason)  # the page is there before the file is everywhere


def _require_same(wheel: Artifact, found: _Found, sha256: str) -> str:
    if sha256 != wheel.sha256:
        raise Finding(
            f"The index has another {wheel.name} (SHA-256 {sha256}, here {wheel.sha256}).",
            remedy="A file of an index is for ever: release under another version.",
        )
    return found.url


def _require_credentials(index: Index) -> None:
    if os.environ.get("TWINE_PASSWORD"):
        return
    os.environ.pop("TWINE_PASSWORD", None)  # an empty one is what a secret that is not set gives, and one to twine
    if not index.is_pypi:
        raise BrokenEnvironment(
            f"There is no token for {index.upload}: TWINE_PASSWORD is not set.",
            remedy="Set it, and TWINE_USERNAME where that is not __token__.",
        )
    if not os.environ.get(_IDENTITY):
        raise BrokenEnvironment(
            f"There is no token for {index.upload}: TWINE_PASSWORD is not set, and this is no trusted publisher.",
            remedy="Run it in a job with `id-token: write` that the index trusts, or set TWINE_PASSWORD.",
        )


def _upload(path: Path, index: Index) -> Outcome:
    """Have twine send the wheel; say whether it was ours or another run was faster. Raises Transient."""
    options = ("--non-interactive", "--disable-progress-bar", "--repository-url", index.upload)
    done = run([*_TWINE, "upload", *options, path], env=_environment(), timeout=_UPLOAD_SECONDS)
    if done.returncode == 0:
        return "published"
    said = _last_line(done)
    match = re.search(r"HTTPError: (\d{3}) ", done.output)
    status = int(match[1]) if match else None
    if status in (401, 403):
        raise BrokenEnvironment(
            f"{index.upload} refuses the token ({said}).",
            remedy="Look at its scope, or at the trusted publisher of the project.",
        )
    if status == 409 or (status == 400 and "already exist" in said):
        return "was there"  # what is there is compared like ours
    # An index that stumbles while it makes a token answers no JSON; what twine does not expect it shows as a traceback.
    stumbled = done.timed_out or "Traceback" in done.output or "returned invalid JSON" in done.output
    if "TrustedPublishingFailure" in done.output and not stumbled:
        raise BrokenEnvironment(
            f"{index.upload} does not know this job as a trusted publisher ({said}).",
            remedy="Compare the project's publishers with the repository, workflow and environment of the job.",
        )
    if stumbled or status in (408, 425, 429) or (status or 0) >= 500:
        raise Transient(said)
    raise Finding(f"{index.upload} refuses {path.name} ({said}).", remedy="Do what it says and run again.")


def _environment() -> dict[str, str]:
    """Return what twine is run with: no other place to look for tokens, no wrapped lines, our authorities."""
    environment = {"COLUMNS": "1000", "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring"}
    if not os.environ.get("TWINE_USERNAME"):
        environment["TWINE_USERNAME"] = "__token__"
    if not {"REQUESTS_CA_BUNDLE", "TWINE_CERT"} & os.environ.keys() and (found := bundle()):
        environment["REQUESTS_CA_BUNDLE"] = str(found)
    return environment


def _last_line(done: Completed) -> str:
    """Return what was said last, without the token should it be in there."""
    lines = [line.strip().removeprefix("ERROR").strip() for line in done.output.splitlines() if line.strip()]
    text = done.explain() if done.timed_out or not lines else lines[-1][:300].rstrip(".")
    secret = os.environ.get("TWINE_PASSWORD")
    return text.replace(secret, "***") if secret else text
