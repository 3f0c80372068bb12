"""The native build, with a Triton of one file, and the kernels' way through an oracle."""

import dataclasses
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from release.check.oracle import native
from release.check.oracle.native import NativeRequest, NativeTriton, build_native
from release.check.oracle.root import native_root
from release.check.oracle.texts import Kind, compile_texts, read_texts
from release.check.oracle.wheel import published_wheel
from release.errors import BrokenEnvironment, Finding, WrongUsage
from release.machine import look
from release.pins.model import PinSet
from release.process import Completed, run
from release.progress import Progress
from release.toolchain.installation import Installation
from release.toolchain.model import Toolchain
from tests.check.oracle.tiny_triton import MAIN, write_python, write_tiny_triton
from tests.toolchain.stand_ins import write_tool

QUIET = Progress(quiet=True)
SHOW = """\
import sys
from pathlib import Path

import triton.language
from triton._C import libtriton

out = Path(sys.argv[1]) / "k" / "cuda-80-32"
out.mkdir(parents=True)
places = [__file__, triton.language.here.__code__.co_filename, sys.version[:4]]
(out / "ttir").write_text("\\n".join([libtriton.type(), libtriton.targets(), *places]))
"""


@pytest.fixture
def request_(root: Installation, pins: PinSet, tmp_path: Path) -> NativeRequest:
    return NativeRequest(
        source=write_tiny_triton(tmp_path / "source"),
        digest="0",
        fixups=(),
        llvm=str(pins.llvm[0].release),
        python_minor=pins.pyodide.python_minor,
        python=write_python(tmp_path / "python"),
    )


@pytest.fixture
def built(toolchain: Toolchain, cache: Path, tmp_path: Path) -> Callable[[NativeRequest], NativeTriton]:
    return lambda request: build_native(request, toolchain, work=tmp_path / "work", cache=cache, progress=QUIET)


@pytest.mark.slow
class TestBuild:
    def test_the_library_is_built_once_and_runs_under_the_paths_of_pyodide(
        self, request_: NativeRequest, built: Callable[[NativeRequest], NativeTriton], tmp_path: Path
    ) -> None:
        triton = built(request_)
        assert not list((tmp_path / "work").glob("oracle-build*"))
        library = triton.folder / "triton" / "_C" / "libtriton.so"
        made = library.stat().st_mtime_ns
        out = tmp_path / "out"
        assert compile_texts(triton, out, programs={"show.py": SHOW}, progress=QUIET) == ()
        (text,) = read_texts(out).values()
        kind, targets, *places = text.splitlines()
        assert kind == "tensor<2x3xf32>"
        # Twice if there were two LLVMs in the process.
        assert targets.split().count("amdgcn") == targets.split().count("nvptx64") == 1
        version = request_.python_minor
        assert places == ["/case/show.py", f"/lib/python{version}/site-packages/triton/language/__init__.py", version]

        assert built(request_).folder == triton.folder
        assert library.stat().st_mtime_ns == made

    def test_what_does_not_compile_is_a_finding_and_the_next_run_goes_on(
        self, request_: NativeRequest, built: Callable[[NativeRequest], NativeTriton]
    ) -> None:
        write_tiny_triton(request_.source, MAIN.replace("mlir::MLIRContext context;", ""))
        with pytest.raises(Finding, match=r"main\.cc\.o: .*error: use of undeclared identifier 'context'"):
            built(request_)
        write_tiny_triton(request_.source)
        assert built(request_).folder.is_dir()

    def test_what_lacks_a_symbol_is_a_finding(
        self, request_: NativeRequest, built: Callable[[NativeRequest], NativeTriton]
    ) -> None:
        write_tiny_triton(request_.source, MAIN.replace("{\n  m.def", "{\n  extern void gone(); gone();\n  m.def", 1))
        with pytest.raises(Finding, match=r"cannot be loaded: .*gone"):
            built(request_)

    def test_what_does_not_configure_is_a_finding(
        self, request_: NativeRequest, built: Callable[[NativeRequest], NativeTriton]
    ) -> None:
        (request_.source / "CMakeLists.txt").write_text("find_package(NoSuchThing REQUIRED)\n")
        with pytest.raises(Finding, match=r"Cannot configure the native Triton: .*NoSuchThing"):
            built(request_)

    def test_a_full_disk_is_seen_before(
        self,
        request_: NativeRequest,
        built: Callable[[NativeRequest], NativeTriton],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(native, "look", lambda folder: replace(look(folder), disk=1_000_000_000))
        with pytest.raises(BrokenEnvironment, match=r"needs 1\.5 GB of disk and 1\.0 GB are free"):
            built(request_)

    def test_each_thing_that_it_is_made_from_counts(self, request_: NativeRequest, root: Installation) -> None:
        before = request_.inputs(root)
        assert replace(request_, digest="1").inputs(root) != before
        (request_.python / "triton" / "new.py").touch()
        assert request_.inputs(root) != before


@pytest.mark.slow
@pytest.mark.parametrize(("llvm", "python"), [("22.0.99", "3.15"), ("99.1.0", "3.15"), (None, "3.99")])
def test_what_debian_has_not_is_said_before_the_download(
    cache: Path, pins: PinSet, llvm: str | None, python: str
) -> None:
    with pytest.raises(BrokenEnvironment, match=r"LLVM .* needs|has no Python 3\.99") as problem:
        native_root(llvm or str(pins.llvm[0].release), python, cache=cache, progress=QUIET)
    assert "--oracle-python" in problem.value.remedy


@dataclasses.dataclass
class ThisPython:
    """An oracle that runs programs here."""

    kind: Kind = dataclasses.field(default="native", init=False)
    what = "this Python"
    folder: Path

    def run(self, name: str, program: str, out: Path, progress: Progress) -> Completed:
        (self.folder / name).write_text(program)
        return run([sys.executable, self.folder / name, out])


def test_a_kernel_that_does_not_compile_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    good = "import sys, pathlib\np = pathlib.Path(sys.argv[1], 'k', 't')\np.mkdir(parents=True)\n(p / 'ptx').touch()\n"
    programs = {"bad.py": "raise SystemExit('no such type')", "good.py": good}
    faults = compile_texts(ThisPython(tmp_path), tmp_path / "out", programs=programs, progress=QUIET)
    assert faults == ("bad: no such type",)
    assert list(read_texts(tmp_path / "out")) == [("k", "t", "ptx")]


def test_every_module_of_kernels_is_compiled(tmp_path: Path) -> None:
    ran = []

    class Notes(ThisPython):
        def run(self, name: str, program: str, out: Path, progress: Progress) -> Completed:
            ran.append(name)
            return super().run(name, "", out, progress)

    assert compile_texts(Notes(tmp_path), tmp_path / "out", progress=QUIET) == ()
    assert {"matmul.py", "gluon_gemm.py"} <= set(ran)


def test_a_published_wheel_is_asked_for_its_version_and_compiles(tmp_path: Path) -> None:
    python = write_tool(
        tmp_path / "python",
        'case $1 in -c) echo \'["3.7.1", "3.13.0"]\';; *) cat "$1" > "$2"/seen; echo "$PYTHONPATH";; esac',
    )
    wheel = published_wheel(python)
    assert wheel.kind == "wheel"
    assert "published wheel of Triton 3.7.1, run by Python 3.13.0" in wheel.what
    completed = wheel.run("a.py", "text", tmp_path, QUIET)
    assert (tmp_path / "seen").read_text() == "text"
    assert completed.output.strip().endswith("release/package/layer/python")


def test_a_python_without_triton_and_no_python_are_wrong_usage(tmp_path: Path) -> None:
    with pytest.raises(WrongUsage, match="There is no Python at"):
        published_wheel(tmp_path / "python")
    with pytest.raises(WrongUsage, match=r"has no Triton: .*No package metadata was found for triton"):
        published_wheel(Path(sys.executable))
