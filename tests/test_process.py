import os
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from release.errors import BrokenEnvironment
from release.process import measuring, run


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_for(path: Path) -> int:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if path.exists() and path.read_text().strip():
            return int(path.read_text())
        time.sleep(0.02)
    raise AssertionError(f"{path} never appeared")


def wait_until_dead(pid: int) -> bool:
    deadline = time.monotonic() + 10
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not alive(pid)


def test_it_returns_the_code_the_output_and_the_memory() -> None:
    with measuring() as meter:
        done = run([sys.executable, "-c", "import sys; x = bytearray(80_000_000); print('out'); sys.exit('err')"])
    assert (done.returncode, done.output) == (1, "out\nerr\n") or done.output == "err\nout\n"
    # The kernel counts from the fork on, and tests that ran before in this process may have needed more.
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    assert 80e6 < done.peak_memory < max(200e6, own + 1e6)
    assert meter.peak_memory == done.peak_memory
    assert done.explain().endswith("exited with 1")


def test_it_feeds_stdin_and_survives_a_program_that_does_not_read_it() -> None:
    assert run(["cat"], stdin="text").output == "text"
    assert run(["true"], stdin="x" * 1_000_000).returncode == 0


def test_a_missing_program_is_a_broken_environment() -> None:
    with pytest.raises(BrokenEnvironment, match="no-such-tool"):
        run(["no-such-tool"])


def test_a_timeout_ends_the_children_too(tmp_path: Path) -> None:
    done = run(["sh", "-c", f"sleep 60 & echo $! > '{tmp_path}/pid'; wait"], timeout=0.5)
    assert done.timed_out
    assert "time limit" in done.explain()
    assert wait_until_dead(int((tmp_path / "pid").read_text()))


def test_a_timeout_leaves_a_moment_to_put_things_in_order_and_no_more() -> None:
    orderly = run(["sh", "-c", "trap 'echo in order; exit' TERM; sleep 60 & wait"], timeout=0.5)
    assert (orderly.output, orderly.timed_out) == ("in order\n", True)
    stubborn = run(["sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"], timeout=0.5)
    assert stubborn.timed_out
    assert 3 < stubborn.seconds < 8


def test_a_program_killed_for_memory_is_reported_as_that() -> None:
    done = run(["sh", "-c", "kill -KILL $$"])
    assert "killed, most likely for lack of memory" in done.explain()


def test_an_interrupt_ends_the_children_too(tmp_path: Path) -> None:
    program = f"""
from release.process import run
run(["sh", "-c", "sleep 60 & echo $! > '{tmp_path}/pid'; wait"])
"""
    ours = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.DEVNULL)
    child = wait_for(tmp_path / "pid")
    os.kill(ours.pid, signal.SIGINT)
    assert ours.wait(timeout=10) != 0
    assert wait_until_dead(child)


def test_an_interrupt_while_a_program_is_being_started_ends_it_too(tmp_path: Path) -> None:
    """The interruption comes from inside Popen, when the program runs and Popen has not yet said so."""
    program = f"""
import os, signal, subprocess
from pathlib import Path
from release import process
start = subprocess.Popen.__init__
def interrupted(self, *arguments, **options):
    start(self, *arguments, **options)
    Path("{tmp_path}/pid").write_text(str(self.pid))
    signal.raise_signal(signal.SIGINT)
signal.signal(signal.SIGINT, signal.default_int_handler)
subprocess.Popen.__init__ = interrupted
process.run(["sleep", "60"])
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=20)
    assert "KeyboardInterrupt" in ended.stderr
    assert wait_until_dead(int((tmp_path / "pid").read_text()))


def test_runs_in_threads_do_not_mix(tmp_path: Path) -> None:
    outputs: list[str] = []
    threads = [threading.Thread(target=lambda n=n: outputs.append(run(["echo", str(n)]).output)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outputs) == [f"{n}\n" for n in range(8)]


def test_lines_are_told_as_they_come() -> None:
    seen: list[tuple[str, float]] = []
    started = time.monotonic()
    done = run(
        ["sh", "-c", "echo one; sleep 1; printf 'two\\nth'; printf ree"],
        on_line=lambda line: seen.append((line, time.monotonic() - started)),
    )
    assert [line for line, _ in seen] == ["one", "two", "three"]
    assert seen[0][1] < 0.9 < seen[1][1]
    assert done.output == "one\ntwo\nthree"
