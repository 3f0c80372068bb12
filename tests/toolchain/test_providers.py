"""Which tools are taken, and what is said when they are not those of the pin set."""

import io
import tarfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from release.errors import BrokenEnvironment, WrongUsage
from release.pins.model import PinSet
from release.progress import Progress
from release.toolchain import emsdk, providers
from release.toolchain.model import Toolchain
from release.toolchain.providers import prepare
from tests.toolchain.stand_ins import CLOSED, says, write_tool

QUIET = Progress(quiet=True)
type Only = Callable[[str], None]


def get(pins: PinSet, cache: Path, *, allow_mismatch: bool = False) -> Toolchain:
    return prepare(pins, cache=cache, allow_mismatch=allow_mismatch, progress=QUIET)


class TestPath:
    def test_the_pinned_tools_are_taken(self, pins: PinSet, half_cache: Path, on_path: Path) -> None:
        tools = get(pins, half_cache)
        assert (tools.provider, tools.mismatches) == ("path", ())
        assert tools.emscripten.version == pins.emscripten.version
        assert tools.run(["em++", "--version"]).returncode == 0

    def test_missing_tools_are_named(
        self, pins: PinSet, half_cache: Path, only: Only, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        only("path")
        monkeypatch.setenv("PATH", "/usr/bin:/bin")
        with pytest.raises(BrokenEnvironment, match=r"no em\+\+ and no wasm-opt on PATH"):
            get(pins, half_cache)

    @pytest.mark.parametrize(
        ("tool", "version", "sentence"),
        [("em++", "3.1.6", "Emscripten of path is 3.1.6 and pin set preview wants"), ("wasm-opt", "108", "is 108 and")],
    )
    def test_another_version_is_refused_or_recorded(
        self, pins: PinSet, half_cache: Path, on_path: Path, only: Only, tool: str, version: str, sentence: str
    ) -> None:
        only("path")
        says(on_path / tool, version)
        with pytest.raises(BrokenEnvironment, match=sentence) as caught:
            get(pins, half_cache)
        assert "--allow-toolchain-mismatch" in caught.value.remedy
        accepted = get(pins, half_cache, allow_mismatch=True)
        assert [sentence in mismatch for mismatch in accepted.mismatches] == [True]
        with pytest.raises(BrokenEnvironment, match=sentence):  # what was accepted once is not accepted for good
            get(pins, half_cache)

    def test_a_version_with_a_suffix_is_another_version(
        self, pins: PinSet, half_cache: Path, on_path: Path, only: Only
    ) -> None:
        only("path")
        says(on_path / "em++", f"{pins.emscripten.version}-git")
        with pytest.raises(BrokenEnvironment, match="-git and pin set"):
            get(pins, half_cache)

    def test_whatever_binaryen_belongs_to_it_will_do_without_a_pin(
        self, pins: PinSet, half_cache: Path, on_path: Path, only: Only
    ) -> None:
        only("path")
        says(on_path / "wasm-opt", "108")
        tools = get(pins.model_copy(update={"binaryen": None}), half_cache)
        assert (tools.binaryen.version, tools.mismatches) == ("108", ())

    def test_the_next_provider_has_its_turn(self, pins: PinSet, cache: Path, on_path: Path) -> None:
        says(on_path / "em++", "3.1.6")
        assert get(pins, cache).provider == "debian"

    def test_tools_that_only_say_a_version_are_not_believed(
        self, pins: PinSet, half_cache: Path, on_path: Path, only: Only
    ) -> None:
        only("path")
        write_tool(on_path / "em++", "echo 'error: no clang here'; exit 1")
        says(on_path / "em++", pins.emscripten.version)
        with pytest.raises(BrokenEnvironment, match="makes no side module: error: no clang here"):
            get(pins, half_cache)

    def test_a_linker_that_exports_nothing_is_found_out(
        self, pins: PinSet, half_cache: Path, on_path: Path, only: Only
    ) -> None:
        only("path")
        script = 'case "$*" in *SIDE_MODULE*) for last; do :; done; printf "\\0asm" > "$last"; exit;; esac'
        write_tool(on_path / "em++", script, *(on_path / "em++").read_text().splitlines()[1:])
        write_tool(on_path / "wasm-opt", 'case "$1" in --version) echo wasm-opt version 131;; esac')
        with pytest.raises(BrokenEnvironment, match="lacks what it was told to export"):
            get(pins, half_cache)


class TestEmsdk:
    def test_the_one_that_is_named_is_taken_and_left_alone(
        self, pins: PinSet, half_cache: Path, tools: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        named = lay_emsdk(tmp_path / "my emsdk", tools)
        before = sorted(named.rglob("*"))
        monkeypatch.setenv("EMSDK", str(named))
        tools_of_emsdk = get(pins, half_cache)
        assert tools_of_emsdk.provider == "emsdk"
        assert sorted(named.rglob("*")) == before

    def test_it_is_installed_from_its_archive(
        self, pins: PinSet, half_cache: Path, tools: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with serving(emsdk_archive(pins.emscripten.version, tools)) as address:
            monkeypatch.setattr(emsdk, "REPOSITORY", address)
            assert get(pins, half_cache).provider == "emsdk"
        assert (half_cache / "toolchain" / "emsdk" / f"emscripten-{pins.emscripten.version}" / "emsdk.py").is_file()
        monkeypatch.setattr(emsdk, "REPOSITORY", CLOSED)
        (next((half_cache / "toolchain" / "proved").iterdir())).unlink()
        assert get(pins, half_cache).provider == "emsdk"  # what is there needs no network

    @pytest.mark.parametrize(
        ("content", "sentence"), [(None, "answered 404"), (b"no archive", "is no archive")], ids=["missing", "broken"]
    )
    def test_a_bad_answer_is_told(
        self,
        pins: PinSet,
        half_cache: Path,
        only: Only,
        monkeypatch: pytest.MonkeyPatch,
        content: bytes | None,
        sentence: str,
    ) -> None:
        only("emsdk")
        with serving(content) as address:
            monkeypatch.setattr(emsdk, "REPOSITORY", address)
            with pytest.raises(BrokenEnvironment, match=sentence):
                get(pins, half_cache)
        assert not list((half_cache / "toolchain" / "emsdk").iterdir())

    def test_an_installer_that_fails_is_told(
        self, pins: PinSet, half_cache: Path, only: Only, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        only("emsdk")
        archive = tar({"emsdk-x/emsdk.py": "raise SystemExit('error: no such tool')"})
        with serving(archive) as address:
            monkeypatch.setattr(emsdk, "REPOSITORY", address)
            with pytest.raises(BrokenEnvironment, match=r"could not install Emscripten .*: error: no such tool"):
                get(pins, half_cache)

    def test_no_network_is_seen_at_once(self, pins: PinSet, half_cache: Path, only: Only) -> None:
        only("emsdk")
        started = time.monotonic()
        with pytest.raises(BrokenEnvironment, match="cannot be reached"):
            get(pins, half_cache)
        assert time.monotonic() - started < 10


class TestMemory:
    def test_an_unchanged_toolchain_is_not_proved_again(
        self, pins: PinSet, half_cache: Path, on_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        first = get(pins, half_cache)
        monkeypatch.setattr(providers, "prove_tools", None)
        started = time.monotonic()
        assert get(pins, half_cache) == first
        assert time.monotonic() - started < 0.3

    def test_a_tool_that_changed_is_proved_again(self, pins: PinSet, half_cache: Path, on_path: Path) -> None:
        first = get(pins, half_cache)
        with (on_path / "wasm-opt").open("a") as script:
            script.write("# changed\n")
        second = get(pins, half_cache)
        assert second.binaryen.digest != first.binaryen.digest
        assert second.emscripten == first.emscripten

    def test_a_tool_that_broke_is_noticed(self, pins: PinSet, half_cache: Path, on_path: Path, only: Only) -> None:
        only("path")
        get(pins, half_cache)
        write_tool(on_path / "wasm-opt", "echo Segmentation fault; exit 139")
        with pytest.raises(BrokenEnvironment, match="does not say its version: Segmentation fault"):
            get(pins, half_cache)

    def test_a_pyodide_that_was_tampered_with_is_fetched_again(
        self, pins: PinSet, half_cache: Path, on_path: Path
    ) -> None:
        first = get(pins, half_cache)
        lock = first.pyodide / "pyodide-lock.json"
        genuine = lock.read_bytes()
        lock.write_bytes(genuine.replace(b"emscripten_6", b"emscripten_7"))
        assert get(pins, half_cache) == first
        assert lock.read_bytes() == genuine


def test_an_unknown_provider_is_wrong_usage(pins: PinSet, half_cache: Path, only: Only) -> None:
    only("docker")
    with pytest.raises(WrongUsage, match="'docker', which is no provider") as caught:
        get(pins, half_cache)
    assert "path, emsdk, debian" in caught.value.remedy


def lay_emsdk(folder: Path, tools: Path) -> Path:
    """Lay the tools out as emsdk does."""
    for name in ("em++", "em-config", "wasm-opt"):
        place = folder / "upstream" / ("bin" if name == "wasm-opt" else "emscripten") / name
        write_tool(place, *(tools / name).read_text().splitlines()[1:])
    return folder


def emsdk_archive(version: str, tools: Path) -> bytes:
    """Make an archive whose emsdk.py installs links to the tools."""
    installer = f"""
import pathlib, sys
assert sys.argv[1] in ("install", "activate") and sys.argv[2] == {version!r}
for place in ("emscripten/em++", "emscripten/em-config", "bin/wasm-opt"):
    path = pathlib.Path(__file__).parent / "upstream" / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.symlink_to(pathlib.Path({str(tools)!r}) / path.name)
"""
    return tar({f"emsdk-{version}/emsdk.py": installer, f"emsdk-{version}/docs/README.md": "emsdk"})


def tar(files: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return buffer.getvalue()


@contextmanager
def serving(content: bytes | None) -> Iterator[str]:
    """Answer everything on a loopback address with ``content``, or with 404 when it is None."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(404 if content is None else 200)
            self.send_header("Content-Length", str(len(content or b"")))
            self.end_headers()
            self.wfile.write(content or b"")

        def log_message(self, format: str, *values: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
