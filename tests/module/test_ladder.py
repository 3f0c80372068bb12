from dataclasses import replace
from pathlib import Path

import pytest

from release.errors import Finding
from release.module.ladder import choose, climb, why_not
from release.module.model import AuditReport, RuleResult, Rung
from release.pins.load import load_profile
from release.pins.model import Optimise, PinSet, Variant
from release.toolchain.model import Toolchain


def passes(wasm: Path) -> AuditReport:
    return AuditReport(file=wasm.name, size=0, results=(RuleResult(rule="r", passed=True, detail="fine."),))


def rung(variant: Variant, brotli: int | None, *, failure: str | None = None, passed: bool = True) -> Rung:
    result = RuleResult(rule="exports", passed=passed, detail="PyInit_x is not exported.")
    audit = None if failure else AuditReport(file="x", size=1, results=(result,))
    return Rung(variant=variant, failure=failure, seconds=1, peak_memory=1, raw=brotli, brotli=brotli, audit=audit)


def test_the_smallest_that_passes_is_chosen_and_the_reason_given() -> None:
    rungs = [rung("none", 9), rung("O3", 7), rung("O4", None, failure="wasm-opt crashed"), rung("Oz", 5, passed=False)]
    best, why = choose(rungs, "smallest-brotli")
    assert best.variant == "O3"
    assert "smallest under brotli" in why and "2 did not" in why and "7 bytes" in why


def test_a_demanded_variant_is_chosen_or_the_build_fails() -> None:
    rungs = [rung("none", 9), rung("O4", None, failure="wasm-opt was stopped")]
    assert choose(rungs, "none")[0].variant == "none"
    with pytest.raises(Finding, match=r"O4, which the profile demands.*was stopped"):
        choose(rungs, "O4")


def test_with_no_good_variant_the_build_fails_and_says_why_for_each() -> None:
    with pytest.raises(Finding, match=r"none: audit rule exports.*O3: it crashed"):
        choose([rung("none", 3, passed=False), rung("O3", None, failure="it crashed")], "smallest-brotli")


@pytest.fixture
def ladder(pins: PinSet) -> Optimise:
    return load_profile("release", pins).optimise


@pytest.mark.slow
def test_a_variant_out_of_time_is_a_recorded_loser(
    sample_module: Path, toolchain: Toolchain, ladder: Optimise, tmp_path: Path
) -> None:
    hasty = ladder.model_copy(update={"timeout_seconds": 0.01})
    lost = climb(sample_module, "O4", hasty, toolchain, output=tmp_path / "out.wasm", audit=passes)
    assert lost.failure is not None and "time limit" in lost.failure
    assert list(tmp_path.iterdir()) == []
    assert why_not(lost) == lost.failure


@pytest.mark.slow
def test_a_variant_out_of_memory_is_a_recorded_loser(
    sample_module: Path, toolchain: Toolchain, ladder: Optimise, tmp_path: Path
) -> None:
    starved = replace(toolchain, enter=("prlimit", "--as=90000000", *toolchain.enter))
    lost = climb(sample_module, "O4", ladder, starved, output=tmp_path / "out.wasm", audit=passes)
    assert lost.failure is not None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_module_that_wasm_opt_cannot_read_is_a_recorded_loser(
    sample_module: Path, toolchain: Toolchain, ladder: Optimise, tmp_path: Path
) -> None:
    truncated = tmp_path / "truncated.wasm"
    truncated.write_bytes(sample_module.read_bytes()[:-100])
    lost = climb(truncated, "O2", ladder, toolchain, output=tmp_path / "out.wasm", audit=passes)
    assert lost.failure is not None and "wasm-opt" in lost.failure
    assert not (tmp_path / "out.wasm").exists()


@pytest.mark.slow
def test_a_feature_that_is_not_listed_is_refused_by_wasm_opt(
    sample_module: Path, toolchain: Toolchain, ladder: Optimise, tmp_path: Path
) -> None:
    without = ladder.model_copy(update={"features": ("bulk-memory",)})
    lost = climb(sample_module, "O2", without, toolchain, output=tmp_path / "out.wasm", audit=passes)
    assert lost.failure is not None


@pytest.mark.slow
def test_a_variant_is_bit_for_bit_the_same_when_made_again(
    sample_module: Path, toolchain: Toolchain, ladder: Optimise, tmp_path: Path
) -> None:
    one, two = tmp_path / "one.wasm", tmp_path / "two.wasm"
    first = climb(sample_module, "Oz", ladder, toolchain, output=one, audit=passes)
    climb(sample_module, "Oz", ladder, toolchain, output=two, audit=passes)
    assert one.read_bytes() == two.read_bytes()
    assert first.raw == one.stat().st_size
    assert first.seconds > 0 and first.peak_memory > 1_000_000
