import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from release.llvm import DirectoryStore, LLVMLibraries, LLVMRequest, build_llvm
from release.pins.load import load_llvm_profile
from release.progress import Progress
from release.toolchain.ccache import CompilerCache
from release.toolchain.model import Toolchain
from tests.llvm.tiny import VERSION, table_generators, tiny_llvm, tiny_triton


class Notes(Progress):
    """Keeps what a user would read."""

    def __init__(self) -> None:
        super().__init__(quiet=True)
        self.lines: list[str] = []

    def note(self, text: str) -> None:
        self.lines.append(text)

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


@dataclass
class Case:
    """One LLVM to build, in folders of its own."""

    folder: Path
    request: LLVMRequest
    toolchain: Toolchain
    notes: Notes = field(default_factory=Notes)

    def build(
        self, *, work: str = "work", jobs: int = 2, force: bool = False, stop_after: float | None = None
    ) -> LLVMLibraries:
        (self.folder / work).mkdir(exist_ok=True)
        return build_llvm(
            self.request,
            self.toolchain,
            work=self.folder / work,
            cache=self.folder / "cache",
            store=DirectoryStore(folder=self.folder / "store", progress=self.notes),
            objects=CompilerCache(folder=self.folder / "ccache", log=self.folder / work / "compilers.log"),
            progress=self.notes,
            jobs=jobs,
            force=force,
            stop_after=stop_after,
        )

    def edit(self, name: str, old: str, new: str) -> None:
        """Change a file of the source, whose digest is then another."""
        path = self.request.source / "llvm" / name
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))
        self.request = replace(self.request, digest=f"{self.request.digest}+{name}")


def make_case(folder: Path, toolchain: Toolchain) -> Case:
    profile = load_llvm_profile().model_copy(update={"projects": (), "extras": ("llvm-headers", "cmake-exports")})
    request = LLVMRequest(
        source=tiny_llvm(folder / "sources" / "llvm"),
        version=VERSION,
        digest="sha256:tiny",
        triton=tiny_triton(folder / "sources" / "triton"),
        profile=profile,
    )
    return Case(folder, request, toolchain)


@pytest.fixture(scope="session")
def generators(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table generator of the tiny LLVM's version."""
    return table_generators(tmp_path_factory.mktemp("generators"), VERSION)


@pytest.fixture(scope="session", autouse=True)
def _named_generators(generators: Path) -> Iterator[None]:
    os.environ["TRITON_WASM_LLVM_TOOLS"] = str(generators)
    yield
    del os.environ["TRITON_WASM_LLVM_TOOLS"]


@pytest.fixture
def case(tmp_path: Path, toolchain: Toolchain) -> Case:
    return make_case(tmp_path, toolchain)


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory, toolchain: Toolchain) -> Case:
    """A case that was built once; do not change it."""
    case = make_case(tmp_path_factory.mktemp("built"), toolchain)
    case.build()
    return case
