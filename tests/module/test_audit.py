import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from release.errors import BrokenEnvironment, WrongUsage
from release.module.audit import audit, describe
from release.module.model import AuditReport, RuleResult
from release.process import run
from tests.module.wasm_builder import (
    HEADER,
    NOTHING,
    NOTHING_TO_I32,
    TRY_TABLE,
    TWO_I32_TO_I32,
    Side,
    body,
    custom,
    dylink,
    func_export,
    func_import,
    global_import,
    memory_import,
    name,
)

RULES = [
    "valid",
    "legacy-eh",
    "dylink",
    "exports",
    "export-count",
    "imports",
    "signatures",
    "js-exceptions",
    "threads",
    "function-size",
    "size",
    "paths",
]

type Auditor = Callable[..., AuditReport]

GOOD = Side()
I32_ADD = b"\x6a"
GIANT = body(b"\x01" * 7_654_319)  # nops; with the count of locals and the end they are exactly at the limit


@pytest.fixture
def look(tmp_path: Path, pyodide: Path, node: Path) -> Auditor:
    """Return a function that audits bytes as a side module called sample."""

    def audited(
        content: bytes | Side,
        *,
        init: str | None = "PyInit_sample",
        budget: int | None = None,
        floor: int = 100,
        forbidden_paths: tuple[str, ...] = (),
    ) -> AuditReport:
        file = tmp_path / "sample.so"
        file.write_bytes(content.encode() if isinstance(content, Side) else content)
        return audit(
            file, init=init, pyodide=pyodide, node=node, budget=budget, floor=floor, forbidden_paths=forbidden_paths
        )

    return audited


def broken(report: AuditReport) -> dict[str, str]:
    return {result.rule: result.detail for result in report.results if not result.passed}


def detail(report: AuditReport, rule: str) -> str:
    return next(result.detail for result in report.results if result.rule == rule)


def test_the_good_module_keeps_every_rule(look: Auditor) -> None:
    report = look(GOOD, forbidden_paths=("/work", "/home/me"))
    assert broken(report) == {}
    assert report.passed
    assert [result.rule for result in report.results] == RULES
    assert report.file == "sample.so"
    assert report.size == len(GOOD.encode())
    assert all("\n" not in result.detail and result.detail.endswith(".") for result in report.results)


@pytest.mark.parametrize(
    ("side", "rule", "says"),
    [
        (
            replace(GOOD, bodies=(body(I32_ADD), *GOOD.bodies[1:])),
            "valid",
            "V8 refuses the module: Compiling function #2",
        ),
        (replace(GOOD, bodies=(body(TRY_TABLE), *GOOD.bodies[1:])), "legacy-eh", "newer exception handling: Compiling"),
        (replace(GOOD, types=(*GOOD.types, b"\x60\1\x69\0")), "legacy-eh", "newer exception handling"),
        (replace(GOOD, dylink=b""), "dylink", "the first section is type, and dylink.0 is missing."),
        (replace(GOOD, before=custom("producers", b"\0")), "dylink", "is custom:producers, and dylink.0 comes later."),
        (
            replace(GOOD, dylink=dylink(needed=["libz.so", "libm.so"])),
            "dylink",
            "needs other libraries (libz.so, libm.so)",
        ),
        (replace(GOOD, dylink=dylink(rpath=["/lib"])), "dylink", "runtime paths (/lib)"),
        (replace(GOOD, data=b""), "dylink", "there is no data section"),
        (replace(GOOD, dylink=dylink(memory=24)), "dylink", "24 bytes of memory and has 25 of data"),
        (replace(GOOD, dylink=dylink(memory=(1 << 31) + 1)), "dylink", "2,147,483,649 bytes of memory, more than"),
        (replace(GOOD, dylink=dylink(memory_align=17)), "dylink", "2^17 (memory) and 2^0 (table), above 2^16"),
        (replace(GOOD, dylink=dylink(table_align=40)), "dylink", "2^4 (memory) and 2^40 (table), above 2^16"),
        (replace(GOOD, dylink=dylink(table=10_000_001)), "dylink", "10,000,001 table slots, more than 10,000,000"),
        (replace(GOOD, exports=GOOD.exports[1:]), "exports", "none of 2 exports is a PyInit_ function"),
        (
            replace(GOOD, exports=(func_export("PyInit_other", 2), *GOOD.exports)),
            "exports",
            "should be PyInit_sample, exported are PyInit_other, PyInit_sample.",
        ),
        (
            replace(GOOD, exports=(*GOOD.exports, func_export("_ZN4llvm4ModuleD1Ev", 3))),
            "exports",
            "1 of 4 exports are neither PyInit_ nor the linker's: _ZN4llvm4ModuleD1Ev.",
        ),
        (GOOD.calling(func_import("env", "no_such", NOTHING)), "imports", "1 of 11 imports are not in Pyodide "),
        (GOOD.calling(func_import("env", "no_such", NOTHING)), "imports", ": env.no_such."),
        (GOOD.importing(global_import("GOT.mem", "no_such", mutable=True)), "imports", ": GOT.mem.no_such."),
        (GOOD.importing(global_import("GOT.func", "no_such", mutable=True)), "imports", ": GOT.func.no_such."),
        (GOOD.importing(global_import("GOT.mem", "free", mutable=True)), "imports", ": GOT.mem.free."),
        (GOOD.importing(global_import("env", "no_such", mutable=False)), "imports", ": env.no_such."),
        (GOOD.importing(global_import("other", "__memory_base", mutable=False)), "imports", ": other.__memory_base."),
        (
            GOOD.calling(*(func_import("env", f"no{number}", NOTHING) for number in range(7))),
            "imports",
            "7 of 17 imports are not in",
        ),
        (
            GOOD.calling(func_import("env", "PyErr_Clear", TWO_I32_TO_I32)),
            "signatures",
            "1 of 3 imported functions have another type in Pyodide: "
            "env.PyErr_Clear is () -> (), not (i32, i32) -> (i32).",
        ),
        (
            replace(GOOD, features=("+atomics",)),
            "threads",
            "the module was built for threads: the target feature +atomics.",
        ),
        (
            replace(GOOD, imports=(memory_import(b"\3\1\x10"), *GOOD.imports[1:])),
            "threads",
            "1 shared memory or table, where Pyodide's are not shared.",
        ),
        (replace(GOOD, memories=(b"\3\1\1",)), "threads", "1 shared memory or table"),
    ],
)
def test_one_broken_rule_is_found(look: Auditor, side: Side, rule: str, says: str) -> None:
    found = broken(look(side))
    assert says in found.pop(rule)
    # What is not valid cannot be judged any further, and a module that lacks dylink.0 is all right otherwise.
    assert found.keys() <= ({"legacy-eh"} if rule == "valid" else set())


@pytest.mark.parametrize(
    "symbol", ["invoke_vii", "__cxa_find_matching_catch_3", "__resumeException", "_emscripten_throw_longjmp"]
)
def test_exceptions_by_way_of_javascript_are_found(look: Auditor, symbol: str) -> None:
    found = broken(look(GOOD.calling(func_import("env", symbol, NOTHING))))
    assert found["js-exceptions"] == f"1 imports belong to exceptions or longjmp by way of JavaScript: {symbol}."


def test_a_module_that_is_invalid_and_uses_the_newer_exceptions_breaks_both_rules(look: Auditor) -> None:
    found = broken(look(replace(GOOD, bodies=(body(TRY_TABLE), body(I32_ADD), body(b"")))))
    assert "newer exception handling" in found["legacy-eh"]
    assert found["valid"].startswith("V8 refuses the module: Compiling function #3 failed")


def test_an_invalid_module_is_not_said_to_use_the_newer_exceptions(look: Auditor) -> None:
    found = broken(look(replace(GOOD, bodies=(body(I32_ADD), *GOOD.bodies[1:]))))
    assert found["legacy-eh"] == "V8 did not get far enough to say, the module not being valid."


def test_weak_imports_may_stay_open(look: Auditor) -> None:
    side = GOOD.calling(func_import("env", "maybe", NOTHING))
    report = look(replace(side, dylink=dylink(weak=[("env", "maybe")])))
    assert broken(report) == {}
    assert detail(report, "imports").endswith(", but for 1 weak ones.")
    assert "imports" in broken(look(replace(side, dylink=dylink(weak=[("env", "other")]))))


def test_a_module_may_import_what_it_exports(look: Auditor) -> None:
    side = GOOD.importing(global_import("GOT.func", "PyInit_sample", mutable=True))
    assert broken(look(side)) == {}


def test_imports_of_the_javascript_library_are_there(look: Auditor) -> None:
    side = GOOD.calling(
        func_import("wasi_snapshot_preview1", "random_get", TWO_I32_TO_I32),
        func_import("env", "emscripten_glClear", NOTHING),
        func_import("env", "pyproxy_new", NOTHING_TO_I32),
    )
    assert broken(look(side)) == {}


def test_any_init_function_will_do_where_none_is_asked_for(look: Auditor) -> None:
    two = replace(GOOD, exports=(func_export("PyInit_other", 2), *GOOD.exports))
    assert broken(look(two, init=None)) == {}
    assert "exports" in broken(look(replace(GOOD, exports=GOOD.exports[1:]), init=None))


def test_init_must_be_a_function(look: Auditor) -> None:
    as_global = name("PyInit_sample") + b"\3\0"
    assert "exports" in broken(look(replace(GOOD, exports=(as_global, *GOOD.exports[1:]))))


def test_a_giant_function_is_found(look: Auditor) -> None:
    found = broken(look(replace(GOOD, bodies=(*GOOD.bodies[:2], GIANT))))
    assert found["function-size"] == ("the largest of 3 functions, number 4, has 7,654,321 of 7,654,321 bytes.")


def test_too_many_exports_are_found(look: Auditor) -> None:
    many = tuple(func_export(f"f{number}", 2) for number in range(99_997))
    found = broken(look(replace(GOOD, exports=(*GOOD.exports, *many))))
    assert found["export-count"].startswith("100,000 exports; ")


def test_size_has_a_floor_and_a_budget(look: Auditor) -> None:
    size = len(GOOD.encode())
    assert broken(look(GOOD, floor=size, budget=size)) == {}
    assert broken(look(GOOD, floor=size + 1))["size"].endswith("something was not linked in.")
    assert broken(look(GOOD, budget=size - 1))["size"] == f"{size} bytes are 1 more than the budget of {size - 1}."


@pytest.mark.parametrize(
    "text",
    [
        "/home/me/triton/lib/Analysis/AxisInfo.cpp",
        "/root/triton/a.cpp",
        "/Users/me/triton/a.cpp",
        "/build/reproducible/a.cpp",
        "/builds/group/a.cpp",
        "/__w/triton/triton/a.cpp",
        "file:///home/runner/work/a.cpp",
        "-I/root/include",
        "/secret/place/llvm/a.cpp",
        "/secret/place",
    ],
)
@pytest.mark.parametrize("place", ["data", "custom"])
def test_paths_of_the_build_machine_are_found(look: Auditor, text: str, place: str) -> None:
    content = b"before\0" + text.encode() + b"\0after\0"
    side = (
        replace(GOOD, data=content, dylink=dylink(memory=4096))
        if place == "data"
        else replace(GOOD, after=custom("name", content))
    )
    found = broken(look(side, forbidden_paths=("/secret/place/",)))
    assert found.keys() == {"paths"}
    path = text.removeprefix("file://").removeprefix("-I")
    assert found["paths"] == f"1 paths of the build machine are in the module: {path}."


@pytest.mark.parametrize(
    "text",
    [
        "/tmp/perf-%d.map",  # noqa: S108 - a name LLVM holds, no file of ours
        "/opt/rocm",
        "/usr/lib/debug",
        "/emsdk/emscripten/system/lib/libcxxabi/src/private_typeinfo.cpp",
        "https://llvm.org/build/docs",
        "include/root/x",
        "/home/",
        "/secret/placebo/a.cpp",
        "other/secret/place/a.cpp",
    ],
)
def test_other_paths_are_left_alone(look: Auditor, text: str) -> None:
    side = replace(GOOD, data=text.encode(), dylink=dylink(memory=4096))
    assert broken(look(side, forbidden_paths=("/secret/place",))) == {}


@pytest.mark.parametrize("path", ["", "/", "relative/path"])
def test_forbidden_paths_must_be_folders_below_the_root(look: Auditor, path: str) -> None:
    with pytest.raises(WrongUsage, match="cannot be looked for"):
        look(GOOD, forbidden_paths=(path,))


def test_a_file_cut_between_two_sections_breaks_a_rule(look: Auditor) -> None:
    sections = GOOD.sections()
    for kept in range(len(sections) - 1):  # the last one says something about the module and is no part of it
        assert broken(look(HEADER + b"".join(sections[:kept]), floor=0)), f"{kept} sections passed"


def test_a_file_that_is_no_wasm_is_refused(look: Auditor) -> None:
    with pytest.raises(WrongUsage, match="is not a WebAssembly module"):
        look(b"<html>404</html>")


def test_a_node_that_cannot_switch_exnref_off_is_refused(tmp_path: Path, pyodide: Path, node: Path) -> None:
    file = tmp_path / "sample.so"
    file.write_bytes(GOOD.encode())

    def look_with(script: str) -> None:
        stub = tmp_path / "node"
        stub.write_text(f"#!/bin/sh\n{script}\n")
        stub.chmod(0o755)
        audit(file, init=None, pyodide=pyodide, node=stub, budget=None, floor=0, forbidden_paths=())

    with pytest.raises(BrokenEnvironment, match="node exited with 9 with --no-experimental-wasm-exnref"):
        look_with('echo "node: bad option: $1"; exit 9')
    with pytest.raises(BrokenEnvironment, match="does not heed --no-experimental-wasm-exnref"):
        look_with(f'shift; exec "{node}" --experimental-wasm-exnref "$@"')


def test_a_folder_without_pyodide_is_refused(tmp_path: Path, node: Path) -> None:
    file = tmp_path / "sample.so"
    file.write_bytes(GOOD.encode())
    with pytest.raises(WrongUsage, match="does not hold Pyodide"):
        audit(file, init=None, pyodide=tmp_path, node=node, budget=None, floor=0, forbidden_paths=())


def test_pyodide_loads_what_the_audit_passes(tmp_path: Path, look: Auditor, pyodide: Path, node: Path) -> None:
    modules = {
        "good": GOOD,
        "missing data": GOOD.importing(global_import("GOT.mem", "no_such", mutable=True)),
        "wrong type": GOOD.calling(func_import("env", "PyErr_Clear", TWO_I32_TO_I32)),
        "shared": replace(GOOD, imports=(memory_import(b"\3\1\x10"), *GOOD.imports[1:])),
        "late dylink": replace(GOOD, before=custom("producers", b"\0")),
    }
    passed = {}
    for title, side in modules.items():
        (tmp_path / title).write_bytes(side.encode())
        passed[title] = look(side).passed
    script = """
        import { readFileSync } from "node:fs";
        const [pyodide, folder, ...titles] = process.argv.slice(1);
        const { loadPyodide } = await import(pyodide + "/pyodide.mjs");
        const py = await loadPyodide({ stdout: () => {}, stderr: () => {} });
        const loaded = {};
        for (const title of titles) {
          py.FS.writeFile("/lib/sample.so", new Uint8Array(readFileSync(`${folder}/${title}`)));
          loaded[title] = py.runPython(`
            import ctypes, os, shutil
            unique = "/lib/" + os.urandom(8).hex() + ".so"
            shutil.copy("/lib/sample.so", unique)
            try:
                ctypes.CDLL(unique)
                found = True
            except OSError:
                found = False
            found
          `);
        }
        console.log(JSON.stringify(loaded));
    """
    completed = run([node, "--input-type=module", "--eval", script, pyodide, tmp_path, *modules], timeout=120)
    assert completed.returncode == 0, completed.tail[-2000:]
    assert json.loads(completed.output.splitlines()[-1]) == passed


def test_describe_has_one_line_a_rule() -> None:
    report = AuditReport(
        file="libtriton.so",
        size=89974308,
        results=(
            RuleResult(rule="valid", passed=True, detail="V8 takes the module."),
            RuleResult(rule="imports", passed=False, detail="1 of 2 imports are not in Pyodide 1.0.0: env.foo."),
        ),
    )
    assert describe(report) == (
        "libtriton.so: 89,974,308 bytes, 1 of 2 rules broken\n"
        "  ok    valid    V8 takes the module.\n"
        "  FAIL  imports  1 of 2 imports are not in Pyodide 1.0.0: env.foo."
    )
