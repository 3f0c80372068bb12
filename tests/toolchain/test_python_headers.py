"""The target's Python headers: read from Pyodide's own build, true for 32 bits."""

import shutil
import zipfile
from pathlib import Path

import pytest

from release.errors import BrokenEnvironment, Finding
from release.pins.model import PinSet
from release.toolchain.model import Toolchain
from release.toolchain.python_headers import VARIABLE, install_headers, pyconfig, read_sysconfig
from tests.command import edit

TEMPLATE = """\
/* pyconfig.h of some machine */
#define SIZEOF_VOID_P 8
#define HAVE_FORK 1
/* #undef HAVE_DECL_TZNAME */
# define _GNU_SOURCE 1
#define _UNKNOWN_HERE 1
/* #undef MS_WINDOWS */
"""


def test_what_configure_knew_is_read_without_running_it(pyodide: Path) -> None:
    known = read_sysconfig(pyodide / "python_stdlib.zip")
    assert (known["SIZEOF_VOID_P"], known["SIZEOF_LONG"], known["HAVE_DYNAMIC_LOADING"]) == (4, 4, 1)
    assert known["SOABI_PLATFORM"] == '"wasm32-emscripten"'


def test_only_constants_are_taken(tmp_path: Path) -> None:
    text = "import os\nraise SystemExit\nbuild_time_vars = {'A': 1, 'B': f'{os.sep}x', 'C': 'c', 'D': os.getcwd()}\n"
    assert read_sysconfig(stdlib(tmp_path, text)) == {"A": 1, "C": "c"}


@pytest.mark.parametrize("text", [None, "build_time_vars = {"], ids=["missing", "broken"])
def test_a_pyodide_without_it_is_a_finding(tmp_path: Path, text: str | None) -> None:
    with pytest.raises(Finding, match="holds no _sysconfigdata"):
        read_sysconfig(stdlib(tmp_path, text))


def test_the_values_are_the_targets_and_the_names_the_templates() -> None:
    known: dict[str, int | str] = {"SIZEOF_VOID_P": 4, "HAVE_FORK": 0, "HAVE_DECL_TZNAME": 0, "CC": "emcc"}
    assert pyconfig(known, TEMPLATE).splitlines() == [
        "#ifndef Py_PYCONFIG_H",
        "#define Py_PYCONFIG_H",
        "#define HAVE_DECL_TZNAME 0",
        "/* #undef HAVE_FORK */",
        "/* #undef MS_WINDOWS */",
        "#define SIZEOF_VOID_P 4",
        "#define _GNU_SOURCE 1",
        "/* #undef _UNKNOWN_HERE */",
        "#endif",
    ]


def test_the_headers_compile_for_32_bits(toolchain: Toolchain, tmp_path: Path) -> None:
    source = tmp_path / "with space.cpp"
    source.write_text(
        "#include <Python.h>\nstatic_assert(sizeof(void *) == 4 && LONG_BIT == 32 && SIZEOF_OFF_T == 8);\n"
    )
    include = f"-isystem{toolchain.python_include}"
    completed = toolchain.run(["em++", include, "-Werror", "-c", source, "-o", source.with_suffix(".o")])
    assert completed.returncode == 0, completed.output
    assert source.with_suffix(".o").is_file()


def test_a_named_folder_is_taken(
    pins: PinSet, pyodide: Path, toolchain: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = Path(shutil.copytree(toolchain.python_include, tmp_path / "headers"))
    edit(named / "pyconfig.h", "#define SIZEOF_VOID_P 4", "#define SIZEOF_VOID_P 8")
    edit(named / "pyport.h", "#undef LONG_BIT\n", "")
    monkeypatch.setenv(VARIABLE, str(named))
    made = install_headers(pins, tmp_path / "cache", pyodide=pyodide)
    for name in ("pyconfig.h", "pyport.h", "cpython/object.h"):
        assert (made / name).read_bytes() == (toolchain.python_include / name).read_bytes()


@pytest.mark.parametrize("spoil", ["patchlevel.h", "pyconfig.h"])
def test_a_folder_of_something_else_is_refused(
    pins: PinSet, pyodide: Path, toolchain: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoil: str
) -> None:
    named = Path(shutil.copytree(toolchain.python_include, tmp_path / "headers"))
    (named / spoil).write_text("#define PY_MAJOR_VERSION 3\n#define PY_MINOR_VERSION 8\n")
    monkeypatch.setenv(VARIABLE, str(named))
    with pytest.raises(BrokenEnvironment, match=r"holds no headers of Python 3\.15") as caught:
        install_headers(pins, tmp_path / "cache", pyodide=pyodide)
    assert VARIABLE in caught.value.remedy
    assert not list((tmp_path / "cache" / "python").iterdir())


def test_a_python_whose_pyport_has_changed_is_a_finding(
    pins: PinSet, pyodide: Path, toolchain: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = Path(shutil.copytree(toolchain.python_include, tmp_path / "headers"))
    (named / "pyport.h").write_text("/* all new */\n")
    monkeypatch.setenv(VARIABLE, str(named))
    with pytest.raises(Finding, match="no `#ifndef LONG_BIT`"):
        install_headers(pins, tmp_path / "cache", pyodide=pyodide)


def stdlib(folder: Path, text: str | None) -> Path:
    path = folder / "python_stdlib.zip"
    with zipfile.ZipFile(path, "w") as archive:
        if text is not None:
            archive.writestr("_sysconfigdata__emscripten_wasm32-emscripten.py", text)
    return path
