"""The whole line on a bad day: interrupted, killed, out of room, twice at once, or given something wrong."""

import os
import signal
from pathlib import Path

import pytest

from release.check.cases import load_cases
from release.check.node import check_package
from release.manifest.checksums import verify
from release.module.sample import SAMPLE
from release.package.model import Package
from release.places import CHECKOUT
from release.progress import Progress
from release.toolchain.model import Toolchain
from tests.command import copy_of_checkout, edit, running, triton_wasm

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("toolchain")]

IN_A_MOUNT_NAMESPACE = ("unshare", "--map-root-user", "--mount", "sh", "-c")


def leftovers(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.name.endswith(".part")]


def left_running(work: Path) -> list[str]:
    """Command lines of processes that name ``work``: the compilers and Nodes of a run there."""
    lines = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            try:
                line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue  # it ended meanwhile
            if str(work) in line:
                lines.append(line)
    return lines


def test_an_interrupted_run_goes_on_where_it_was(tmp_path: Path) -> None:
    work, out = tmp_path / "work", tmp_path / "out"
    arguments = ("release", "--sample", "--pins", "preview", "--work", work, "--out", out)
    for stage in ("link", "ladder-none", "ladder-Oz", "package", "check"):
        with running(*arguments) as process:
            assert process.stderr is not None
            for line in process.stderr:
                if line.split()[:1] == [stage] and "unchanged" not in line:
                    break
            else:
                raise AssertionError(f"{stage} never began")
            process.send_signal(signal.SIGINT)
            rest = process.stderr.read()
            assert process.wait(timeout=20) == 130
        assert "Interrupted." in rest and "Traceback" not in rest
        assert leftovers(work) == []
        assert not (work / stage).exists()
        assert not out.exists()
        assert left_running(work) == []
    finished = triton_wasm(*arguments)
    assert finished.returncode == 0, finished.stderr
    assert "link         unchanged" in finished.stderr
    assert verify(out) == 9


def test_a_run_that_was_killed_starts_that_stage_clean(tmp_path: Path) -> None:
    arguments = ("module", "--sample", "--pins", "preview", "--profile", "seed", "--work", tmp_path)
    with running(*arguments) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "2/4" in line:
                break
        process.kill()
    assert leftovers(tmp_path) != []
    finished = triton_wasm(*arguments)
    assert finished.returncode == 0, finished.stderr
    assert leftovers(tmp_path) == []


def test_a_second_run_in_the_same_folder_waits(tmp_path: Path) -> None:
    arguments = ("module", "--sample", "--pins", "preview", "--profile", "seed", "--work", tmp_path)
    with running(*arguments) as first:
        assert first.stderr is not None
        assert first.stderr.readline()
        refused = triton_wasm(*arguments, "--no-wait")
        assert refused.returncode == 3
        assert f"Process {first.pid} is already working" in refused.stderr
        second = triton_wasm(*arguments)
        assert f"waiting for process {first.pid}" in second.stderr
        assert second.returncode == 0
        assert "link         unchanged" in second.stderr
        assert first.wait(timeout=5) == 0


@pytest.mark.parametrize("size", ["200k", "600k"])
def test_a_full_disk_is_one_sentence_and_loses_nothing(tmp_path: Path, size: str) -> None:
    script = 'mount -t tmpfs -o size="$0" tmpfs "$1" && work="$1" && shift && "$@"; code=$?; ls -A "$work"; exit $code'
    full = triton_wasm(
        *("module", "--sample", "--pins", "preview", "--work", tmp_path),
        prefix=(*IN_A_MOUNT_NAMESPACE, script, size, str(tmp_path)),
    )
    assert full.returncode == 3, full.stderr
    assert "disk is full" in full.stderr
    assert "Traceback" not in full.stderr
    assert ".part" not in full.stdout


def test_a_read_only_checkout_is_enough(tmp_path: Path) -> None:
    checkout = copy_of_checkout(tmp_path / "checkout")
    script = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && ! touch "$0/file" 2>&1 && exec "$@"'
    built = triton_wasm(
        *("module", "--sample", "--pins", "preview", "--work", tmp_path / "work"),
        checkout=checkout,
        prefix=(*IN_A_MOUNT_NAMESPACE, script, str(checkout)),
    )
    assert built.returncode == 0, built.stderr
    assert "smallest under brotli" in built.stdout


def test_a_folder_of_somebody_else_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("three years")
    refused = triton_wasm("release", "--sample", "--pins", "preview", "--out", tmp_path)
    assert refused.returncode == 2
    assert "no release of ours" in refused.stderr
    assert (tmp_path / "thesis.txt").read_text() == "three years"


def test_a_pin_set_with_a_typo_is_refused_in_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "typo.toml"
    text = (CHECKOUT / "pins" / "preview.toml").read_text().replace("integrity", "integrety")
    path.write_text(text)
    line = next(number for number, line in enumerate(text.splitlines(), start=1) if "integrety" in line)
    refused = triton_wasm("release", "--sample", "--pins", path, "--out", tmp_path / "out")
    assert refused.returncode == 2
    assert refused.stderr.splitlines() == [
        f"triton-wasm: {path}:{line}: pyodide.integrety: unknown key.",
        "  Write 'integrity' instead of 'integrety'.",
    ]


def test_debug_shows_the_traceback() -> None:
    refused = triton_wasm("--debug", "pins", "show", "nothing")
    assert "Traceback" in refused.stderr and "There is no pin set 'nothing'" in refused.stderr


def test_output_that_nobody_reads_is_no_error() -> None:
    closed = triton_wasm("pins", "show", "preview", prefix=("sh", "-c", '"$@" | true', "sh"))
    assert closed.stderr == ""


def test_wrong_arguments_exit_with_two() -> None:
    assert triton_wasm("release").returncode == 2
    assert triton_wasm("frobnicate").returncode == 2


def test_a_truncated_module_is_refused_in_one_sentence(tmp_path: Path, sample_module: Path) -> None:
    path = tmp_path / "a module.wasm"
    path.write_bytes(sample_module.read_bytes()[:5000])
    refused = triton_wasm("audit", path, "--pins", "preview")
    assert refused.returncode in (1, 2)
    assert "Traceback" not in refused.stderr
    assert len(refused.stderr.splitlines()) == 2
    assert triton_wasm("audit", sample_module, "--pins", "preview").returncode == 0


def test_a_source_that_does_not_compile_is_a_finding(tmp_path: Path) -> None:
    checkout = copy_of_checkout(tmp_path / "checkout")
    edit(checkout / "samples/exprc/src/compiler.cpp", "int depth = 0;", "int depth = 0")
    refused = triton_wasm("module", "--sample", "--pins", "preview", "--work", tmp_path / "work", checkout=checkout)
    assert refused.returncode == 1
    assert "Cannot compile compiler.cpp" in refused.stderr and "expected ';'" in refused.stderr
    assert not (tmp_path / "work" / "link").exists()


def test_an_unresolved_import_is_found_before_anybody_loads_it(tmp_path: Path) -> None:
    checkout = copy_of_checkout(tmp_path / "checkout")
    source = checkout / "samples/exprc/src/compiler.cpp"
    edit(source, "namespace exprc {\nnamespace {", 'extern "C" int nobody_has_this();\nnamespace exprc {\nnamespace {')
    edit(source, "int destroyed = 0;", "int destroyed = nobody_has_this();")
    refused = triton_wasm("module", "--sample", "--pins", "preview", "--work", tmp_path / "work", checkout=checkout)
    assert refused.returncode == 1
    assert "nobody_has_this" in refused.stderr


def test_objects_without_wasm_exceptions_are_found(tmp_path: Path, toolchain: Toolchain) -> None:
    """They link cleanly and pass the audit, and no catch of theirs ever runs: only a case that throws tells."""
    checkout = copy_of_checkout(tmp_path / "checkout")
    edit(checkout / "pins/profiles/seed.toml", '"-flto", "-fwasm-exceptions", "-fPIC"', '"-flto", "-fPIC"')
    arguments = ("package", "--sample", "--pins", "preview", "--profile", "seed", "--work", tmp_path / "work")
    built = triton_wasm(*arguments, checkout=checkout)
    assert built.returncode == 0, built.stderr
    wheel, archive, lock = map(Path, built.stdout.splitlines())
    report = check_package(
        Package(wheel=wheel, zip=archive, lock=lock),
        [case for case in load_cases(SAMPLE / "cases") if case.name == "exceptions-inside"],
        loaders=("wheel",),
        imports=("exprc",),
        toolchain=toolchain,
        keep=tmp_path / "kept",
        progress=Progress(quiet=True),
    )
    assert not report.passed
    assert len(report.results) == 1
