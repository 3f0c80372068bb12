"""A packed LLVM goes into a release and comes back, signed and verified, or is not used."""

import shutil
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from release.artifacts import sha256_of_tree
from release.errors import WrongUsage
from release.llvm.store import DirectoryStore
from release.progress import Progress
from release.publish.llvm_cache import ReleasedLLVMs, lay_out, tag_of
from release.publish.plan import read_build
from release.retry import Patience, Retry
from release.trust.model import Identity
from release.trust.root import root_from
from release.trust.sign import sign_release
from tests.publish.conftest import Impatient
from tests.services.installed import Services
from tests.services.sigstore.service import REPOSITORY, Sigstore, start_sigstore

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
    store = DirectoryStore(folder=tmp_path / "store", progress=QUIET)
    store.put(KEY, prefix)
    folder = tmp_path / "web" / tag_of(KEY)
    lay_out(store, KEY, folder, part_size=100)
    sign_release(folder, progress=QUIET, trust_config=sigstore.trust_config)
    return folder


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path / "web"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{serving.server_port}/"
        serving.shutdown()


@pytest.fixture
def store(server: str, sigstore: Sigstore, tmp_path: Path) -> ReleasedLLVMs:
    return ReleasedLLVMs(
        kept=DirectoryStore(folder=tmp_path / "elsewhere", progress=QUIET),
        identity=Identity.of_workflow(REPOSITORY, "release.yml", "refs/tags/v1.0.0"),
        root=root_from(sigstore.trust_config),
        repository=REPOSITORY,
        progress=QUIET,
        place=server,
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


@pytest.mark.parametrize(
    "damage",
    [
        lambda f: (f / "llvm.tar.zst.001").write_bytes(b"other"),
        lambda f: (f / "llvm.tar.zst.001").unlink(),
        lambda f: (f / "llvm.json.sigstore.json").unlink(),
        lambda f: shutil.rmtree(f),
    ],
)
def test_what_is_not_as_it_was_signed_is_not_used(
    released: Path, store: ReleasedLLVMs, tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    damage(released)
    assert not store.get(KEY, tmp_path / "again")
    assert not (tmp_path / "again").exists()
    assert not store.kept.entry(KEY).exists()


def test_what_somebody_else_has_signed_is_not_used(
    released: Path, store: ReleasedLLVMs, sigstore: Sigstore, tmp_path: Path
) -> None:
    other = ReleasedLLVMs(**{**vars(store), "identity": Identity.of_workflow("a/b", "release.yml", "refs/heads/main")})
    assert not other.get(KEY, tmp_path / "again")


def test_what_is_built_is_kept_all_the_same(store: ReleasedLLVMs, prefix: Path, tmp_path: Path) -> None:
    assert not store.get(KEY, tmp_path / "again")
    store.put(KEY, prefix)
    assert store.get(KEY, tmp_path / "again")


def test_what_is_not_kept_cannot_be_released(tmp_path: Path) -> None:
    with pytest.raises(WrongUsage, match="No LLVM is kept"):
        lay_out(DirectoryStore(folder=tmp_path, progress=QUIET), KEY, tmp_path / "out")
