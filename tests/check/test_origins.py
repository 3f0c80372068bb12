"""What the origins answer, and that nothing but what a page of ours sends is kept."""

import json
from collections.abc import Iterator
from http.client import HTTPResponse
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from release.check.origins import CDN_HEADERS, Attempts, serving


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    folder = tmp_path / "kept"
    folder.mkdir()
    return folder


@pytest.fixture
def origin(tmp_path: Path, kept: Path) -> Iterator[str]:
    for name in ("page/a.mjs", "page/a.wasm", "page/a.json", "rest/tiny-1.0+local.whl", "secret"):
        (tmp_path / "site" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "site" / name).write_text(name)
    attempts = Attempts()
    attempts.add("one", {"imports": ["é"]}, kept)
    roots = {"page": tmp_path / "site" / "page", "": tmp_path / "site" / "rest"}
    with serving(roots, headers=CDN_HEADERS, attempts=attempts) as url:
        yield url


def ask(url: str, content: bytes | None = None) -> HTTPResponse:
    return urlopen(Request(url, data=content), timeout=10)  # type: ignore[no-any-return]  # noqa: S310 - our own


def status(url: str, content: bytes | None = None) -> int:
    try:
        return ask(url, content).status
    except HTTPError as error:
        return error.code


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("page/a.mjs", "text/javascript"),
        ("page/a.wasm", "application/wasm"),
        ("page/a.json?attempt=1", "application/json"),
        ("tiny-1.0+local.whl", "application/zip"),
        ("tiny-1.0%2Blocal.whl", "application/zip"),
    ],
)
def test_files_come_with_their_type_and_the_headers_of_a_cdn(origin: str, path: str, kind: str) -> None:
    answer = ask(f"{origin}/{path}")
    assert answer.headers["Content-Type"] == kind
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert "immutable" in answer.headers["Cache-Control"]
    assert answer.read()


@pytest.mark.parametrize("path", ["", "page", "page/", "none", "page/../secret", "page/%2e%2e/secret", "../secret"])
def test_nothing_else_is_served(origin: str, path: str) -> None:
    assert status(f"{origin}/{path}") == 404


def test_a_job_is_given_to_its_attempt_only(origin: str) -> None:
    assert json.loads(ask(f"{origin}/attempts/one/job.json").read()) == {"imports": ["é"]}
    assert status(f"{origin}/attempts/two/job.json") == 404


def test_what_the_page_sends_is_kept(origin: str, kept: Path) -> None:
    for content in (b"a", b"b\0"):
        assert status(f"{origin}/attempts/one/output.txt", content) == 204
        assert status(f"{origin}/attempts/one/files/sub/%C3%A9%20%25", content) == 204
    assert (kept / "output.txt").read_bytes() == b"ab\0"
    assert (kept / "files" / "sub" / "é %").read_bytes() == b"b\0"


@pytest.mark.parametrize(
    "path",
    [
        "two/output.txt",
        "one/other.txt",
        "one/files",
        "one/files/",
        "one/files/../x",
        "one/files/%2e%2e/x",
        "one/files/a%2Fb",
    ],
)
def test_what_no_page_sends_is_refused(origin: str, kept: Path, path: str) -> None:
    assert status(f"{origin}/attempts/{path}", b"x") == 404
    assert not list(kept.iterdir())
