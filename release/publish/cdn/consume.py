"""A published tree as its consumers find it: what the host answers for every file that a browser asks it for.

A browser tells a page little more than "Failed to fetch"; here each rule that an answer breaks is named.
"""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import PurePosixPath
from urllib.parse import urljoin

import requests
from pydantic import BaseModel, ConfigDict, ValidationError

from release.errors import BrokenEnvironment, Finding
from release.progress import Progress
from release.publish.cdn.files import FOLDER
from release.publish.cdn.hosts import TYPES
from release.publish.cdn.model import LATEST, Build, Index, Latest, StoredFile

_ORIGIN = "https://page.example"  # of somebody else's page, as most are
_ENCODINGS = "gzip, deflate, br, zstd"  # what Chromium and Firefox ask for
_SECONDS = 60.0
_CHUNK = 1 << 16
_DAY = 86_400
_LOADER = ("triton-wasm.mjs", "triton-wasm.d.ts")
_STRICT = {".mjs", ".wasm", ".json"}  # with another type a browser does not run it, or not while it comes


class FileAnswer(BaseModel):
    """What one file was answered with: ``transferred`` bytes came over the wire, ``size`` were there when unpacked.

    ``broken`` are rules without which it does not load, or loads slowly; ``notes`` what could be better.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str
    status: int
    size: int
    transferred: int
    encoding: str
    seconds: float
    broken: tuple[str, ...]
    notes: tuple[str, ...]


class ConsumerReport(BaseModel):
    """What one version of a tree is answered with, file by file."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: str
    name: str
    version: str
    files: tuple[FileAnswer, ...]

    @property
    def passed(self) -> bool:
        """Whether no file broke a rule."""
        return not any(file.broken for file in self.files)


@dataclass(frozen=True, kw_only=True)
class _Answer:
    status: int
    headers: requests.structures.CaseInsensitiveDict[str]
    body: bytes
    transferred: int
    seconds: float
    cut: bool
    garbled: bool


def examine(url: str, *, version: str | None = None, progress: Progress) -> ConsumerReport:
    """Ask the tree at ``url`` for all files of a version, by default the one that it names itself.

    Raises BrokenEnvironment when nobody answers; Finding when there is no tree, or not that version of it.
    """
    base = url if url.endswith("/") else f"{url}/"
    answers: list[FileAnswer] = []

    def ask(path: str, expect: Callable[[bytes], str | None]) -> bytes:
        steps.begin(path)
        answer = _fetch(urljoin(base, path))
        answers.append(_judged(path, answer, expect))
        return answer.body

    with progress.steps("consume", 1) as steps:
        latest = _parsed(Latest, ask(LATEST, lambda _: None), answers[-1], base)
        chosen = version or latest.version
        if chosen not in latest.versions:
            raise Finding(f"{base} has no version {chosen}.", remedy=f"Choose one of: {', '.join(latest.versions)}.")
        index = _parsed(Index, ask(latest.versions[chosen], lambda _: None), answers[-1], base)
        integrity = latest.loader.integrity
        loader = ask(latest.loader.path, lambda body: _integrity_fault(body, integrity))
        ask(_LOADER[0], lambda body: None if body == loader else "it is another loader than the one latest.json names")
        ask(_LOADER[1], lambda _: None)
        for build in index.builds:
            ask(f"pyodide-lock-{build.abi}.json", lambda _: None)
            for file in _files(build, latest):
                ask(file.path, partial(_digest_fault, file=file))
    return ConsumerReport(url=base, name=index.name, version=index.version, files=tuple(answers))


def describe(report: ConsumerReport) -> str:
    """Say how it went, in lines for people: a table of files, then what was broken and what was noted."""
    lines = [f"{report.name} {report.version} at {report.url}"]
    for file in report.files:
        said = file.encoding or "as it is"
        lines.append(f"  {file.path}: {file.transferred:,} bytes of {file.size:,} ({said}), {file.seconds:.2f} s")
        lines += [f"    broken: {words}" for words in file.broken]
        lines += [f"    note: {words}" for words in file.notes]
    faulty = sum(bool(file.broken) for file in report.files)
    lines.append(f"{len(report.files)} files, {f'{faulty} of them broken' if faulty else 'all well'}")
    return "\n".join(lines)


def _files(build: Build, latest: Latest) -> Iterator[StoredFile]:
    """Give what is fetched of a build; the twins only where the loader fetches them itself."""
    yield from (build.module, build.tree, build.wheel, build.lock)
    if latest.delivery == "plain":
        for content in (build.module, build.tree):
            yield from content.encoded.values()


def _fetch(url: str) -> _Answer:
    headers = {"Origin": _ORIGIN, "Accept-Encoding": _ENCODINGS, "Accept": "*/*"}
    started, body, cut, garbled = time.monotonic(), bytearray(), False, False
    try:
        with requests.get(url, headers=headers, stream=True, timeout=_SECONDS) as response:
            try:
                for chunk in response.iter_content(_CHUNK):
                    body += chunk
            except requests.exceptions.ContentDecodingError:
                garbled = True
            except requests.RequestException:
                cut = True
            return _Answer(
                status=response.status_code,
                headers=response.headers,
                body=bytes(body),
                transferred=response.raw.tell(),
                seconds=round(time.monotonic() - started, 3),
                cut=cut,
                garbled=garbled,
            )
    except requests.RequestException as error:
        raise BrokenEnvironment(
            f"Nobody answers for {url} ({type(error).__name__}).", remedy="Look at the address and the network."
        ) from error


def _judged(path: str, answer: _Answer, expect: Callable[[bytes], str | None]) -> FileAnswer:
    broken, notes = list(_broken(path, answer)), list(_notes(path, answer))
    if not broken and (fault := expect(answer.body)):
        broken.append(fault)
    return FileAnswer(
        path=path,
        status=answer.status,
        size=len(answer.body),
        transferred=answer.transferred,
        encoding=answer.headers.get("Content-Encoding", ""),
        seconds=answer.seconds,
        broken=tuple(broken),
        notes=tuple(notes),
    )


def _broken(path: str, answer: _Answer) -> Iterator[str]:
    if answer.status != requests.codes.ok:
        yield f"the status is {answer.status}"
        return
    if answer.cut:
        yield f"it breaks off after {answer.transferred:,} bytes"
    if answer.garbled:
        yield f"its Content-Encoding is {answer.headers.get('Content-Encoding')}, and its body is not"
    if answer.headers.get("Access-Control-Allow-Origin") not in ("*", _ORIGIN):
        yield "it comes without Access-Control-Allow-Origin, so pages of others cannot read it"
    suffix = PurePosixPath(path).suffix
    found = answer.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    wanted = TYPES.get(suffix, "").partition(";")[0]
    if found == "text/html" or (suffix in _STRICT and found not in (wanted, wanted.replace("text", "application"))):
        yield f"its Content-Type is {found or 'missing'}, not {wanted or 'that of a file'}"


def _notes(path: str, answer: _Answer) -> Iterator[str]:
    said = answer.headers.get("Cache-Control", "")
    words = dict(word.strip().lower().partition("=")[::2] for word in said.split(","))
    age = int(words["max-age"]) if words.get("max-age", "").isdigit() else 0
    if path.startswith(f"{FOLDER}/") and (age < _DAY or "no-store" in words):
        yield f"it never changes, and its Cache-Control is {said or 'missing'}: a browser asks for it again"
    if not path.startswith(f"{FOLDER}/") and age > _DAY:
        yield f"it changes with each release, and browsers keep it for {age // _DAY} days"


def _digest_fault(body: bytes, file: StoredFile) -> str | None:
    found = hashlib.sha256(body).hexdigest()
    return None if found == file.sha256 else f"its SHA-256 is {found}, and the index says {file.sha256}"


def _integrity_fault(body: bytes, integrity: str) -> str | None:
    found = f"sha384-{base64.b64encode(hashlib.sha384(body).digest()).decode()}"
    return None if found == integrity else f"its integrity is {found}, and latest.json says {integrity}"


def _parsed[Record: BaseModel](kind: type[Record], body: bytes, answer: FileAnswer, base: str) -> Record:
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        why = "; ".join(answer.broken) or str(error).splitlines()[0]
        raise Finding(
            f"{urljoin(base, answer.path)} is no index of ours: {why}.", remedy="Look at what the host serves there."
        ) from error
