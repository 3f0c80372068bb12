"""The optimiser ladder: the same linked module through wasm-opt in several ways, measured, audited, and one chosen."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from release.errors import Finding
from release.module.model import AuditReport, Rung
from release.module.sizes import measure
from release.pins.model import Optimise, Variant
from release.toolchain.model import Toolchain


def climb(
    linked: Path,
    variant: Variant,
    ladder: Optimise,
    toolchain: Toolchain,
    *,
    output: Path,
    audit: Callable[[Path], AuditReport],
) -> Rung:
    """Make ``variant`` of ``linked`` at ``output``, measure and audit it.

    A wasm-opt that crashes, runs out of memory or of time gives a rung with a ``failure`` and no file: a loser, not an
    error.
    """
    seconds, peak_memory = 0.0, 0
    if variant == "none":
        shutil.copyfile(linked, output)
    else:
        command = optimise_command(variant, ladder, str(linked), str(output))
        completed = toolchain.run(command, timeout=ladder.timeout_seconds)
        seconds, peak_memory = round(completed.seconds, 3), completed.peak_memory
        if completed.returncode != 0 or not output.is_file():
            output.unlink(missing_ok=True)
            said = completed.tail.splitlines()[-1:] or ["it said nothing"]
            failure = f"{completed.explain()}: {said[0][:200]}"
            return Rung(variant=variant, failure=failure, seconds=seconds, peak_memory=peak_memory)
    sizes = measure(output)
    return Rung(
        variant=variant,
        failure=None,
        seconds=seconds,
        peak_memory=peak_memory,
        raw=sizes.raw,
        gzip=sizes.gzip,
        brotli=sizes.brotli,
        zstd=sizes.zstd,
        audit=audit(output),
    )


def optimise_command(variant: Variant, ladder: Optimise, linked: str, output: str) -> list[str]:
    """Return the wasm-opt that ``climb`` runs."""
    features = (f"--enable-{feature}" for feature in ladder.features)
    return ["wasm-opt", f"-{variant}", *ladder.flags, *features, linked, "-o", output]


def choose(rungs: Sequence[Rung], policy: str) -> tuple[Rung, str]:
    """Return the rung that ``policy`` picks and one sentence saying why.

    ``policy`` is ``smallest-brotli`` or the name of a variant. Raises Finding when the demanded variant, or every one,
    failed or broke an audit rule.
    """
    passed = [rung for rung in rungs if why_not(rung) is None]
    if policy == "smallest-brotli":
        if not passed:
            variants_by_reason: dict[str | None, list[str]] = {}
            for rung in rungs:
                variants_by_reason.setdefault(why_not(rung), []).append(rung.variant)
            reasons = "; ".join(f"{', '.join(names)}: {reason}" for reason, names in variants_by_reason.items())
            raise Finding(f"No variant of the module can be released: {reasons}", remedy="Mend the first of these.")
        best = min(passed, key=lambda rung: (rung.brotli or 0, rung.raw or 0))
        lost = len(rungs) - len(passed)
        others = f" of {len(passed)} that passed" + (f" ({lost} did not)" if lost else "")
        return best, f"{best.variant} is the smallest under brotli -q 11{others}: {best.brotli:,} bytes"
    demanded = next(rung for rung in rungs if rung.variant == policy)
    if reason := why_not(demanded):
        raise Finding(
            f"The variant {policy}, which the profile demands, cannot be released: {reason}",
            remedy="Mend that, or let the profile choose `smallest-brotli`.",
        )
    return demanded, f"the profile names {policy}"


def why_not(rung: Rung) -> str | None:
    """Say why a rung cannot be released, or None when it can."""
    if rung.failure is not None:
        return rung.failure
    if rung.audit is None:
        return "it was not audited"
    broken = [result for result in rung.audit.results if not result.passed]
    return f"audit rule {broken[0].rule}: {broken[0].detail}" if broken else None
