"""What every stage has in common: a folder written whole, a record of what from, and a reason to do nothing.

A stage is a function from files to files. Its folder appears under its final name only when the stage has ended well,
so a stage that was killed starts clean. Run again with the same inputs, it finds its record, compares the files with
it, and leaves them alone.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from release.artifacts import (
    Artifact,
    files_below,
    replacing_folder,
    sha256_of,
    sha256_of_tree,
    sweep,
    write_atomically,
)
from release.errors import BrokenEnvironment
from release.process import measuring
from release.progress import Progress

RECORD = "stage.json"

type Inputs = Mapping[str, Any]
"""What a stage depends on, as JSON: pins, flags, digests of files. Two equal mappings must mean equal outputs."""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A finished stage: where its files are, what they are, and what it took to make them.

    ``seconds`` and ``peak_memory`` (bytes, of the largest child process) are those of the run that made the files,
    also when this run ``reused`` them.
    """

    name: str
    folder: Path
    key: str
    inputs: Inputs
    outputs: tuple[Artifact, ...]
    seconds: float
    peak_memory: int
    reused: bool


def run_stage(
    name: str, folder: Path, *, inputs: Inputs, build: Callable[[Path], None], progress: Progress, force: bool = False
) -> Stage:
    """Make ``folder`` by calling ``build`` with an empty folder to fill, unless it already holds just that.

    ``inputs`` is everything the outputs depend on. ``force`` builds even when nothing changed. Whatever ``build``
    raises passes through, and ``folder`` is then what it was before.
    """
    key = key_of(inputs)
    if not force and (found := find_stage(name, folder, key)):
        progress.done(name, f"unchanged ({len(found.outputs)} files)")
        return found
    started = time.monotonic()
    with replacing_folder(folder) as temporary, progress.steps(name, 1) as steps, measuring() as meter:
        steps.begin("…")
        build(temporary)
        stage = Stage(
            name=name,
            folder=folder,
            key=key,
            inputs=inputs,
            outputs=_outputs(temporary),
            seconds=round(time.monotonic() - started, 3),
            peak_memory=meter.peak_memory,
            reused=False,
        )
        write_atomically(temporary / RECORD, _to_json(stage))
    progress.done(name, f"{stage.seconds:.1f} s, {len(stage.outputs)} files")
    return stage


class Stages:
    """The stages of one run: each in a folder of ``work`` by its name, and remembered in the order they were run."""

    def __init__(self, work: Path, progress: Progress, *, force: bool = False) -> None:
        self.work, self.progress = work, progress
        self._force = force
        self._done: dict[str, Stage] = {}

    def run(self, name: str, *, inputs: Inputs, build: Callable[[Path], None]) -> Stage:
        """Run a stage, as ``run_stage`` does."""
        stage = run_stage(name, self.work / name, inputs=inputs, build=build, progress=self.progress, force=self._force)
        return self.remember(stage)

    def remember(self, stage: Stage) -> Stage:
        """Count a stage that was run elsewhere among these."""
        self._done[stage.name] = stage
        return stage

    @property
    def done(self) -> tuple[Stage, ...]:
        """The stages that were run or found unchanged."""
        return tuple(self._done.values())


def find_stage(name: str, folder: Path, key: str) -> Stage | None:
    """Return the stage recorded in ``folder`` when its key is ``key`` and every file is still as recorded."""
    try:
        record = json.loads((folder / RECORD).read_text())
        outputs = tuple(Artifact(**entry) for entry in record["outputs"])
        if record["key"] != key or _outputs(folder) != outputs:
            return None
        return Stage(
            name=name,
            folder=folder,
            key=key,
            inputs=record["inputs"],
            outputs=outputs,
            seconds=record["seconds"],
            peak_memory=record["peak_memory"],
            reused=True,
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None  # no record, or one that somebody else wrote: build


def recipe(*names: str) -> str:
    """Return a digest of code of ours, by rooms or files of ``release``.

    A stage is made anew when the code that makes it has changed. Where making it takes an hour a number is counted by
    hand instead, for a comment must not cost that.
    """
    root = Path(__file__).parent
    return key_of({name: sha256_of_tree(root / name) if "." not in name else sha256_of(root / name) for name in names})


def key_of(inputs: Inputs) -> str:
    """Return the digest of ``inputs`` in canonical JSON."""
    return hashlib.sha256(json.dumps(inputs, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


@contextmanager
def exclusive(work: Path, *, wait: bool, progress: Progress) -> Iterator[None]:
    """Hold the work dir ``work`` alone; a second run waits, or with ``wait=False`` is told who is there.

    The lock is the kernel's: it goes when its holder dies, however it dies; what that one left half-done is removed.
    """
    work.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(work / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 20, 0).decode().strip() or "another process"
            if not wait:
                raise BrokenEnvironment(
                    f"Process {holder} is already working in {work}.",
                    remedy="Wait for it, or give this run another --work folder.",
                ) from None
            progress.note(f"waiting for process {holder}, which is working in {work}")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        sweep(work)
        yield
    finally:
        os.close(descriptor)


def _outputs(folder: Path) -> tuple[Artifact, ...]:
    return tuple(
        Artifact.of(path, name=path.relative_to(folder).as_posix())
        for path in files_below(folder)
        if path != folder / RECORD
    )


def _to_json(stage: Stage) -> str:
    record = {key: value for key, value in asdict(stage).items() if key not in ("folder", "reused")}
    return json.dumps({"schema_version": 1, **record}, indent=2, sort_keys=True) + "\n"
