import hashlib
from pathlib import Path

import pytest

from release.module.build import build_sample, link
from release.module.sample import SAMPLE, load_sample
from release.pins.load import load_profile
from release.pins.model import PinSet
from release.progress import Progress
from release.toolchain.model import Toolchain


@pytest.mark.slow
def test_the_same_objects_give_the_same_module(pins: PinSet, toolchain: Toolchain, tmp_path: Path) -> None:
    """Six times: with addresses as the kernel deals them, such a run nearly always gave two different modules."""
    sample, profile, output = load_sample(), load_profile("seed", pins), tmp_path / "module.wasm"
    with Progress(quiet=True).steps("link", 4) as steps:
        build_sample(sample, SAMPLE, profile, toolchain, output=output, objects=tmp_path, steps=steps)
    digests = {hashlib.sha256(output.read_bytes()).hexdigest()}
    elsewhere = tmp_path / "a folder with quite a long name that moves the heap of whoever keeps it"
    elsewhere.mkdir()
    for name in ("module.o", "libexprc.a"):
        (elsewhere / name).write_bytes((tmp_path / name).read_bytes())
    for folder in (tmp_path, elsewhere, tmp_path, elsewhere, elsewhere):
        output = folder / "module.wasm"
        link(["module.o", "libexprc.a"], folder, sample.init, profile, toolchain, output)
        digests.add(hashlib.sha256(output.read_bytes()).hexdigest())
    assert len(digests) == 1
