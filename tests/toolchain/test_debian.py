"""The Debian root: how commands run in it, and how it comes to be."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from release.errors import BrokenEnvironment, WrongUsage
from release.pins.model import PinSet
from release.places import CHECKOUT
from release.progress import Progress
from release.toolchain import apt, chroot, debian, providers
from release.toolchain.installation import OtherVersion
from release.toolchain.model import Toolchain
from release.toolchain.providers import prepare
from tests.toolchain.stand_ins import CLOSED

QUIET = Progress(quiet=True)
ROOTS = ("--mount", "--user", "--map-root-user"), ("--mount",)


@pytest.fixture(params=ROOTS, ids=["in a user namespace", "as root"])
def inside(request: pytest.FixtureRequest, toolchain: Toolchain) -> Toolchain:
    """The toolchain, entered in both ways that there are."""
    assert toolchain.provider == "debian"
    unshare, script = toolchain.enter[0], toolchain.enter.index("/bin/sh")
    return replace(toolchain, enter=(unshare, *request.param, *toolchain.enter[script:]))


class TestEnter:
    def test_exit_codes_signals_and_output_pass_through(self, inside: Toolchain) -> None:
        assert inside.run(["sh", "-c", "exit 7"]).returncode == 7
        assert inside.run(["sh", "-c", "kill -SEGV $$"]).returncode == -signal.SIGSEGV
        assert inside.run(["cat"], stdin="over there\n").output == "over there\n"
        assert inside.run(["no-such-tool"]).returncode == 127

    def test_the_environment_is_made_for_the_tools(self, inside: Toolchain, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("EMCC_CFLAGS", "-DLEAK")
        seen = dict(line.split("=", 1) for line in inside.run(["env"], env={"OURS": "a b"}).output.splitlines())
        assert seen.pop("OURS") == "a b"
        assert set(seen) == {"PATH", "LC_ALL", "EM_CACHE", "TMPDIR"}

    def test_folders_are_visible_and_writable_at_the_same_path(self, inside: Toolchain, tmp_path: Path) -> None:
        folder = tmp_path / "a 'quoted' $folder"
        folder.mkdir()
        completed = inside.run(["sh", "-c", 'pwd; echo written > "a file"'], cwd=folder)
        assert completed.output == f"{folder}\n"
        assert (folder / "a file").read_text() == "written\n"
        assert inside.run(["ls", CHECKOUT / "pyproject.toml", "/dev/null", "/proc/self"]).returncode == 0

    def test_no_mount_is_left_or_seen_outside(self, inside: Toolchain) -> None:
        before = mounts()
        command = inside.command(["sh", "-c", "echo ready; sleep 60"])
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd="/") as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            assert mounts() == before
            assert Path(f"/proc/{process.pid}/mountinfo").read_text() != before  # it has mounts, and only it
            process.kill()
        assert process.returncode == -signal.SIGKILL
        assert mounts() == before

    def test_the_process_is_the_command_itself(self, inside: Toolchain) -> None:
        with subprocess.Popen(inside.command(["sleep", "60"]), cwd="/") as process:
            wait_until(lambda: Path(f"/proc/{process.pid}/comm").read_text() == "sleep\n")
            process.terminate()
        assert process.returncode == -signal.SIGTERM

    def test_the_way_in_costs_milliseconds(self, inside: Toolchain) -> None:
        fastest = min(inside.run(["true"]).seconds for _ in range(10))
        assert fastest < 0.1

    @pytest.mark.parametrize("folder", ["/", "/usr", "/etc/x", "/lib/x"])
    def test_the_roots_own_folders_cannot_be_hidden(self, toolchain: Toolchain, folder: str) -> None:
        with pytest.raises(WrongUsage, match="cannot be shown to the tools"):
            chroot.enter(debian_root(toolchain), bind=[Path(folder)], env={})

    def test_a_link_is_followed_inside_the_root(self, tmp_path: Path) -> None:
        (tmp_path / "usr/lib").mkdir(parents=True)
        (tmp_path / "usr/lib/libx.so.1").touch()
        (tmp_path / "usr/lib/libx.so").symlink_to("libx.so.1")
        (tmp_path / "lib").symlink_to("/usr/lib")
        (tmp_path / "up").symlink_to("../../../lib/libx.so")
        for path in ("/lib/libx.so", "/up", "/usr/../lib/libx.so.1"):
            assert chroot.resolve(tmp_path, path) == tmp_path / "usr/lib/libx.so.1"

    def test_a_machine_without_mounts_is_told(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(chroot, "_AS_ROOT", (("--no-such-flag",),))
        chroot.namespace.cache_clear()
        with pytest.raises(BrokenEnvironment, match="no mounts of our own") as caught:
            chroot.namespace()
        chroot.namespace.cache_clear()
        assert "user namespaces" in caught.value.remedy

    def test_mounts_that_would_leak_are_refused(self, tmp_path: Path) -> None:
        """In a plain chroot whose mounts are shared, nothing can make ours private: it must be seen and undone."""
        program = (
            "from pathlib import Path; from release.toolchain import chroot\n"
            "chroot._AS_ROOT = (('--mount', '--propagation', 'unchanged'),)\n"
            "before = Path('/proc/self/mountinfo').read_text()\n"
            "try: chroot.namespace()\n"
            "except Exception as problem: print(problem)\n"
            "assert Path('/proc/self/mountinfo').read_text() == before\n"
        )
        shared = ["unshare", "--mount", "--propagation", "shared", sys.executable, "-c", program]
        completed = subprocess.run(shared, capture_output=True, text=True, cwd=CHECKOUT)
        assert completed.returncode == 0, completed.stderr
        assert "mounts are seen outside of it" in completed.stdout


class TestArchive:
    def test_another_emscripten_in_sid_is_told_before_the_download(self, pins: PinSet, tmp_path: Path) -> None:
        old = pins.model_copy(update={"emscripten": pins.emscripten.model_copy(update={"version": "5.0.3"})})
        with QUIET.steps("toolchain", 3) as steps, pytest.raises(OtherVersion, match=r"is 6\.\S+ and .* wants 5\.0\.3"):
            debian.install(old, tmp_path, allow_mismatch=False, steps=steps)
        assert not list(tmp_path.rglob("*.deb"))

    def test_no_network_is_seen_within_seconds(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(apt.MIRROR_VARIABLE, CLOSED)
        started = time.monotonic()
        with pytest.raises(BrokenEnvironment, match=r"Cannot fetch the Debian package lists: .*onnect") as caught:
            apt.debian(tmp_path)
        assert time.monotonic() - started < 15
        assert apt.MIRROR_VARIABLE in caught.value.remedy

    def test_a_mirror_that_nobody_signed_is_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        release = tmp_path / "mirror" / "dists" / apt.SUITE
        release.mkdir(parents=True)
        (release / "InRelease").write_text("Origin: Debian\nSuite: unstable\nCodename: sid\n")
        monkeypatch.setenv(apt.MIRROR_VARIABLE, f"file:{tmp_path / 'mirror'}")
        with pytest.raises(BrokenEnvironment, match="Cannot fetch the Debian package lists"):
            apt.debian(tmp_path / "apt")

    def test_no_apt_is_told(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PATH", str(tmp_path))
        with pytest.raises(BrokenEnvironment, match="no Debian or Ubuntu machine: there is no apt-get") as caught:
            apt.debian(tmp_path)
        assert "EMSDK" in caught.value.remedy

    def test_a_package_that_is_none_is_told(self, tmp_path: Path) -> None:
        package = tmp_path / "broken_1_all.deb"
        package.write_bytes(b"!<arch>\n")
        with pytest.raises(BrokenEnvironment, match=r"Cannot unpack broken_1_all\.deb"):
            apt.unpack([package], tmp_path / "into")

    def test_the_machine_has_no_network_at_all(self, tmp_path: Path) -> None:
        program = (
            "from pathlib import Path; from release.toolchain import apt\n"
            f"try: apt.debian(Path({str(tmp_path)!r}))\n"
            "except Exception as problem: print(type(problem).__name__, problem)\n"
        )
        offline = ["unshare", "--net", sys.executable, "-c", program]
        completed = subprocess.run(offline, capture_output=True, text=True, cwd=CHECKOUT, timeout=60)
        assert completed.stdout.startswith("BrokenEnvironment Cannot fetch the Debian package lists"), completed


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_two_runs_build_one_root_and_a_broken_one_is_built_again(
    pins: PinSet, half_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(providers.VARIABLE, "debian")
    leftover = half_cache / "toolchain" / "debian" / ".emscripten.killed.part"
    leftover.mkdir(parents=True)
    program = (
        "import sys; from pathlib import Path; from release.pins.load import load_pins\n"
        "from release.progress import Progress; from release.toolchain import prepare\n"
        "pins, cache = load_pins('preview'), Path(sys.argv[1])\n"
        "print(prepare(pins, cache=cache, allow_mismatch=False, progress=Progress()).provider)"
    )
    both = [
        subprocess.Popen(
            [sys.executable, "-c", program, half_cache],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=CHECKOUT,
        )
        for _ in range(2)
    ]
    said = [process.communicate() for process in both]
    assert [output for output, _ in said] == ["debian\n"] * 2, said
    assert sum("download Emscripten" in progress for _, progress in said) == 1
    assert not leftover.exists()

    tools = prepare(pins, cache=half_cache, allow_mismatch=False, progress=QUIET)
    library = next(debian_root(tools).glob("usr/lib/*/libLLVM.so.*"))
    os.truncate(library, 4096)
    again = prepare(pins, cache=half_cache, allow_mismatch=False, progress=QUIET)
    assert again == tools
    assert library.stat().st_size > 10_000_000


def debian_root(tools: Toolchain) -> Path:
    return Path(tools.enter[tools.enter.index("enter") + 1])


def mounts() -> str:
    return Path("/proc/self/mountinfo").read_text()


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)
