"""A packed LLVM goes into a release and comes back, signed and verified, or is not used."""

import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from release.artifacts import sha256_of_tree, sweep, write_atomically
from release.errors import Finding, WrongUsage
from release.llvm.store import ARCHIVE, DIGEST, DirectoryStore
from release.manifest.checksums import NAME as CHECKSUMS
from release.manifest.checksums import checksums
from release.progress import Progress
from release.publish.llvm_cache import ReleasedLLVMs, lay_out, tag_of
from release.publish.plan import read_build
from release.retry import Patience, Retry
from release.trust.model import Identity, is_bundle
from release.trust.root import root_from
from release.trust.sign import sign_release
from tests.llvm.conftest import Notes
from tests.publish.conftest import Impatient, Publishing
from tests.services.installed import Services
from tests.services.sigstore.service import REPOSITORY, Sigstore, github_claims, start_sigstore

KEY = "a1" * 32
QUIET = Progress(quiet=True)


@pytest.fixture(scope="module")
def sigstore(services: Services, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sigstore]:
    with start_sigstore(services, tmp_path_factory.mktemp("sigstore")) as running:
        yield running


@pytest.fixture
def prefix(tmp_path: Path) -> Path:
    folder = tmp_path / "prefix"
    (folder / "lib").mkdir(parents=True)
    (folder / "lib" / "libLLVMSupport.a").write_bytes(bytes(range(256)) * 500)
    return folder


@pytest.fixture
def released(sigstore: Sigstore, prefix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The release folder of an LLVM, in several parts and signed, below ``web``."""
    for name, value in sigstore.environment.items():
        monkeypatch.setenv(name, value)
    sigstore.become(github_claims())
    return signed(sigstore, prefix, KEY, tmp_path)


def signed(sigstore: Sigstore, prefix: Path, key: str, tmp_path: Path) -> Path:
    store = DirectoryStore(folder=tmp_path / "store", progress=QUIET)
    store.put(key, prefix)
    folder = tmp_path / "web" / tag_of(key)
    lay_out(store, key, folder, part_size=100)
    sign_release(folder, progress=QUIET, trust_config=sigstore.trust_config)
    return folder


class Server(ThreadingHTTPServer):
    """Serves a folder, but for the names in ``faults``, whose next requests get a status, half the file, or nothing."""

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.folder, self.url = folder, f"http://127.0.0.1:{self.server_port}/"
        self.faults: dict[str, list[str]] = {}
        self.asked = threading.Event()


class _Handler(SimpleHTTPRequestHandler):
    server: Server

    def __init__(self, request: object, address: object, server: Server) -> None:
        super().__init__(request, address, server, directory=str(server.folder))  # type: ignore[arg-type]

    def do_GET(self) -> None:
        name = Path(self.path).name
        faults = self.server.faults.get(name, [])
        fault = faults.pop(0) if faults else ""
        if fault.isdecimal():
            self.send_error(int(fault))
        elif fault == "half":
            content = Path(self.translate_path(self.path)).read_bytes()
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: len(content) // 2])
        elif fault == "nothing":
            self.server.asked.set()
            self.rfile.read()  # until the other side has gone
        else:
            super().do_GET()

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Server(tmp_path / "web") as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        yield serving
        serving.shutdown()


@pytest.fixture
def notes() -> Notes:
    return Notes()


@pytest.fixture
def store(server: Server, sigstore: Sigstore, notes: Notes, tmp_path: Path) -> ReleasedLLVMs:
    return ReleasedLLVMs(
        kept=DirectoryStore(folder=tmp_path / "elsewhere", progress=notes),
        identity=Identity.of_workflow(REPOSITORY, "release.yml", "refs/tags/v1.0.0"),
        root=root_from(sigstore.trust_config),
        repository=REPOSITORY,
        progress=notes,
        place=server.url,
        retry=Retry(QUIET, patience=Patience(attempts=2), clock=Impatient()),
    )


def test_it_comes_back_as_it_was_and_is_kept(
    released: Path, store: ReleasedLLVMs, prefix: Path, tmp_path: Path
) -> None:
    assert len(read_build(released).assets) > 5  # what a publish takes
    assert store.get(KEY, tmp_path / "again")
    assert sha256_of_tree(tmp_path / "again") == sha256_of_tree(prefix)
    shutil.rmtree(released)
    assert store.get(KEY, tmp_path / "once more")  # out of the folder
    assert not store.get("b2" * 32, tmp_path / "another")


def list_again(folder: Path) -> None:
    write_atomically(folder / CHECKSUMS, checksums(folder, but=is_bundle))


def other_part(folder: Path) -> None:
    """Put another part there, and a list that names it; only the signatures do not."""
    (folder / f"{ARCHIVE}.001").write_bytes(b"other")
    list_again(folder)


def one_part_more(folder: Path) -> None:
    shutil.copy(folder / f"{ARCHIVE}.000", folder / f"{ARCHIVE}.999")
    list_again(folder)


def reordered(folder: Path) -> None:
    first, second = folder / f"{ARCHIVE}.000", folder / f"{ARCHIVE}.001"
    held = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(held)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda f: (f / f"{ARCHIVE}.001").write_bytes(b"other"), r"zst\.001 differs"),
        (lambda f: (f / f"{ARCHIVE}.001").unlink(), "404"),
        (reordered, r"zst\.000 differs"),
        (other_part, "SHA256SUMS.sigstore.json is a signature not of"),
        (one_part_more, "SHA256SUMS.sigstore.json is a signature not of"),
        (lambda f: (f / "llvm.json.sigstore.json").unlink(), "404"),
        (shutil.rmtree, "404"),
    ],
)
def test_what_is_not_as_it_was_signed_is_not_used(
    released: Path,
    store: ReleasedLLVMs,
    notes: Notes,
    tmp_path: Path,
    damage: Callable[[Path], object],
    said: str,
) -> None:
    damage(released)
    assert_not_used(store, notes, tmp_path, said)


def assert_not_used(store: ReleasedLLVMs, notes: Notes, tmp_path: Path, said: str) -> None:
    assert not store.get(KEY, tmp_path / "stage" / "prefix")
    assert re.search(rf"There is no released LLVM {KEY[:12]} to use: .*{said}", notes.lines[-1])
    assert list((tmp_path / "stage").iterdir()) == []
    assert not store.kept.entry(KEY).exists()


def test_what_somebody_else_has_signed_is_not_used(
    released: Path, store: ReleasedLLVMs, notes: Notes, tmp_path: Path
) -> None:
    other = replace(store, identity=Identity.of_workflow("a/b", "release.yml", "refs/heads/main"))
    assert_not_used(other, notes, tmp_path, "is signed by .* not by https://github.com/a/b/")


def test_a_release_of_another_key_is_not_used(
    released: Path, sigstore: Sigstore, store: ReleasedLLVMs, notes: Notes, prefix: Path, tmp_path: Path
) -> None:
    shutil.rmtree(released)
    signed(sigstore, prefix, "b2" * 32, tmp_path).rename(released)
    assert_not_used(store, notes, tmp_path, "they are of another key, b2b2b2b2b2b2")


@pytest.mark.parametrize("fault", ["503", "half"])
def test_what_goes_wrong_once_is_tried_again(
    released: Path, server: Server, store: ReleasedLLVMs, notes: Notes, tmp_path: Path, fault: str
) -> None:
    server.faults = {path.name: [fault] for path in released.iterdir()}
    assert store.get(KEY, tmp_path / "stage" / "prefix")
    assert not [line for line in notes.lines if "There is no" in line]


def test_what_never_comes_whole_is_not_used(
    released: Path, server: Server, store: ReleasedLLVMs, notes: Notes, tmp_path: Path
) -> None:
    server.faults = {f"{ARCHIVE}.001": ["half"] * 9}
    assert_not_used(store, notes, tmp_path, r"zst\.001.*, 2 times")


_PROGRAM = f"""
import sys
from pathlib import Path
from release.llvm.store import DirectoryStore
from release.progress import Progress
from release.publish.llvm_cache import ReleasedLLVMs
from release.trust.model import Identity
from release.trust.root import root_from
place, kept, into, config = sys.argv[1:]
progress = Progress(quiet=True)
store = ReleasedLLVMs(
    kept=DirectoryStore(folder=Path(kept), progress=progress),
    identity=Identity.of_workflow("a/b", "release.yml", "refs/heads/main"),
    root=root_from(Path(config)), repository="a/b", progress=progress, place=place,
)
store.get({KEY!r}, Path(into))
"""


def test_a_fetch_that_was_killed_leaves_what_the_next_run_sweeps(
    released: Path, server: Server, sigstore: Sigstore, store: ReleasedLLVMs, tmp_path: Path
) -> None:
    server.faults = {f"{ARCHIVE}.002": ["nothing"]}
    stage = tmp_path / "stage"
    places = [server.url, str(store.kept.folder), str(stage / "prefix"), str(sigstore.trust_config)]
    with subprocess.Popen([sys.executable, "-c", _PROGRAM, *places]) as process:
        assert server.asked.wait(60)
        process.kill()
    assert list(stage.iterdir()) and not store.kept.folder.exists()
    sweep(stage)
    assert list(stage.iterdir()) == []
    assert store.get(KEY, stage / "prefix")


def test_published_at_github_it_is_found_by_its_key(
    sigstore: Sigstore,
    publishing: Publishing,
    prefix: Path,
    store: ReleasedLLVMs,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    repository, ref = publishing.repository, "refs/heads/main"
    for name, value in sigstore.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("GITHUB_SERVER_URL", publishing.github.url)
    sigstore.become(github_claims(repository.name, ref=ref, commit=repository.commit))
    publishing.github.tag(repository, tag_of(KEY))
    publishing.publish(tag_of(KEY), signed(sigstore, prefix, KEY, tmp_path))
    there = replace(
        store,
        place=None,
        repository=repository.name,
        identity=Identity.of_workflow(repository.name, "release.yml", ref),
    )
    assert there.get(KEY, tmp_path / "stage" / "prefix")
    assert sha256_of_tree(tmp_path / "stage" / "prefix") == sha256_of_tree(prefix)


def test_what_is_built_is_kept_all_the_same(store: ReleasedLLVMs, prefix: Path, tmp_path: Path) -> None:
    assert not store.get(KEY, tmp_path / "again")
    store.put(KEY, prefix)
    assert store.get(KEY, tmp_path / "again")


def test_what_is_not_kept_cannot_be_released(tmp_path: Path) -> None:
    with pytest.raises(WrongUsage, match="No LLVM is kept"):
        lay_out(DirectoryStore(folder=tmp_path, progress=QUIET), KEY, tmp_path / "out")


@pytest.mark.parametrize(
    "damage",
    [
        lambda entry: (entry / ARCHIVE).write_bytes(b"other"),
        lambda entry: (entry / ARCHIVE).write_bytes(b""),
        lambda entry: (entry / DIGEST).unlink(),
        lambda entry: (entry / DIGEST).write_bytes(b"\xff"),
    ],
)
def test_what_is_not_what_was_kept_is_not_released(
    prefix: Path, tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    kept = DirectoryStore(folder=tmp_path / "store", progress=QUIET)
    kept.put(KEY, prefix)
    damage(kept.entry(KEY))
    with pytest.raises(Finding):
        lay_out(kept, KEY, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_it_is_laid_out_again_and_over_nothing_of_anybody_else(prefix: Path, tmp_path: Path) -> None:
    kept = DirectoryStore(folder=tmp_path / "store", progress=QUIET)
    kept.put(KEY, prefix)
    out = tmp_path / "out"
    out.mkdir()
    lay_out(kept, KEY, out, part_size=100)
    first = sha256_of_tree(out)
    lay_out(kept, KEY, out, part_size=100)
    assert sha256_of_tree(out) == first
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    for folder in (tmp_path / "mine", tmp_path / "mine" / "thesis.tex"):
        with pytest.raises(WrongUsage, match="holds more than a packed LLVM"):
            lay_out(kept, KEY, folder)
    assert (tmp_path / "mine" / "thesis.tex").is_file()
