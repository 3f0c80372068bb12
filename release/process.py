"""Running other programs: their time, their peak memory, and their end when ours comes."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from release.errors import BrokenEnvironment

_LOG_TAIL = 4000
_GRACE_SECONDS = 3.0
_INTERRUPTS = (signal.SIGINT, signal.SIGTERM)


@dataclass(frozen=True, kw_only=True)
class Completed:
    """How a program ended.

    ``returncode`` is negative for a signal, as in ``subprocess``; ``peak_memory`` is the largest resident set, in
    bytes, of any one process among the program and its children, and never less than our own when it was started, for
    so the kernel counts; ``output`` is stdout and stderr together.
    """

    command: tuple[str, ...]
    returncode: int
    output: str
    seconds: float
    peak_memory: int
    timed_out: bool = False

    @property
    def tail(self) -> str:
        """The last lines of the output, the part that says what went wrong."""
        return self.output[-_LOG_TAIL:].strip()

    def explain(self) -> str:
        """Say in one clause how the program ended."""
        name = Path(self.command[0]).name
        if self.timed_out:
            return f"{name} was stopped after {self.seconds:.0f} s, its time limit"
        if self.returncode == -signal.SIGKILL:
            return f"{name} was killed, most likely for lack of memory (peak {self.peak_memory / 1e9:.1f} GB)"
        if self.returncode < 0:
            return f"{name} died of {signal.Signals(-self.returncode).name}"
        return f"{name} exited with {self.returncode}"


class Meter:
    """The peak memory, in bytes, of the largest program that ran inside a ``measuring`` block."""

    def __init__(self) -> None:
        self.peak_memory = 0


_meters: list[Meter] = []


@contextmanager
def measuring() -> Iterator[Meter]:
    """Note what the programs run inside the block need; blocks may be nested."""
    meter = Meter()
    _meters.append(meter)
    try:
        yield meter
    finally:
        _meters.remove(meter)


def run(
    command: Sequence[str | os.PathLike[str]],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: str | None = None,
    timeout: float | None = None,
    on_line: Callable[[str], None] | None = None,
) -> Completed:
    """Run ``command`` to its end and say how that was; the caller judges the return code.

    The program leads a process group of its own. The whole group is ended when ``timeout`` (seconds) passes or when
    this process is interrupted, so nothing is left running; it has a moment to put its things in order. ``env`` is
    added to our own environment. ``on_line`` gets each line of the output as it comes, in a thread of its own; it must
    not raise.

    Raises BrokenEnvironment when the program does not exist or may not be run.
    """
    arguments = tuple(os.fspath(part) for part in command)
    started = time.monotonic()
    chunks: list[bytes] = []
    expired, ended = threading.Event(), threading.Event()
    process: subprocess.Popen[bytes] | None = None
    timer: threading.Timer | None = None
    try:
        with _holding_interrupts():
            process = _start(arguments, cwd=cwd, env=env, feed=stdin is not None)
        reader = threading.Thread(target=_drain, args=(process, chunks, on_line), daemon=True)
        reader.start()
        if timeout is not None:
            timer = threading.Timer(timeout, _expire, args=(process, expired, ended))
            timer.start()
        if process.stdin is not None:
            _feed(process, stdin or "")
        # wait4 and not Popen.wait: only it tells the peak memory of just this program and its children.
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        ended.set()
    except BaseException:
        if process is not None:
            _end_group(process)
        raise
    finally:
        if timer:
            timer.cancel()
    reader.join(timeout=_GRACE_SECONDS)
    peak_memory = usage.ru_maxrss * 1024
    for meter in _meters:
        meter.peak_memory = max(meter.peak_memory, peak_memory)
    return Completed(
        command=arguments,
        returncode=process.returncode,
        output=b"".join(chunks).decode(errors="replace"),
        seconds=time.monotonic() - started,
        peak_memory=peak_memory,
        timed_out=expired.is_set(),
    )


def _start(
    arguments: tuple[str, ...], *, cwd: Path | None, env: Mapping[str, str] | None, feed: bool
) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            arguments,
            cwd=cwd,
            env={**os.environ, **(env or {})},
            stdin=subprocess.PIPE if feed else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except (FileNotFoundError, PermissionError) as error:
        raise BrokenEnvironment(
            f"Cannot run {shlex.quote(arguments[0])}: {error.strerror}.",
            remedy="Run `triton-wasm toolchain` to find or install the tools of the pin set.",
        ) from error


@contextmanager
def _holding_interrupts() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM wait until the block is over.

    While a program is being started nobody knows of it yet: an interruption just then would leave it running. The
    signals are not blocked, because the program would inherit that.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are the main thread's business
        return
    held: list[int] = []
    ours = {number: handler for number in _INTERRUPTS if callable(handler := signal.getsignal(number))}
    for number in ours:
        signal.signal(number, lambda number, _frame: held.append(number))
    try:
        yield
    finally:
        for number, handler in ours.items():
            signal.signal(number, handler)
    if held:
        signal.raise_signal(held[0])


def _drain(process: subprocess.Popen[bytes], chunks: list[bytes], on_line: Callable[[str], None] | None) -> None:
    assert process.stdout is not None  # noqa: S101 - for the type checker: run() always asks for a pipe
    rest = b""
    while chunk := process.stdout.read1(1 << 16):  # type: ignore[attr-defined]
        chunks.append(chunk)
        if on_line is not None:
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                on_line(line.decode(errors="replace"))
    if on_line is not None and rest:
        on_line(rest.decode(errors="replace"))


def _feed(process: subprocess.Popen[bytes], text: str) -> None:
    assert process.stdin is not None  # noqa: S101 - for the type checker: only called with a pipe
    with suppress(BrokenPipeError):  # the program ended before it read everything: its return code says why
        process.stdin.write(text.encode())
        process.stdin.close()


def _expire(process: subprocess.Popen[bytes], expired: threading.Event, ended: threading.Event) -> None:
    expired.set()
    _signal_group(process, signal.SIGTERM)
    ended.wait(_GRACE_SECONDS)
    _signal_group(process, signal.SIGKILL)  # and whoever of the group has not gone with its leader


def _end_group(process: subprocess.Popen[bytes]) -> None:
    _signal_group(process, signal.SIGTERM)
    deadline = time.monotonic() + _GRACE_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.02)
    _signal_group(process, signal.SIGKILL)
    process.poll()


def _signal_group(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):  # it ended by itself
        os.killpg(process.pid, number)
