"""The side module as it goes through the link, the ladder and the audit."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from release.pins.model import Variant


@dataclass(frozen=True, kw_only=True)
class RuleResult:
    """One audit rule and what it found; ``detail`` is one sentence, with figures where there are some."""

    rule: str
    passed: bool
    detail: str


@dataclass(frozen=True, kw_only=True)
class AuditReport:
    """What the audit of one wasm file found, rule by rule."""

    file: str
    size: int
    results: tuple[RuleResult, ...]

    @property
    def passed(self) -> bool:
        """Whether every rule passed."""
        return all(result.passed for result in self.results)


@dataclass(frozen=True, kw_only=True)
class Rung:
    """One variant of the optimiser ladder.

    ``failure`` says in one sentence why there is no such module, and the sizes (bytes) are then None; ``seconds`` and
    ``peak_memory`` (bytes) are those of wasm-opt alone.
    """

    variant: Variant
    failure: str | None
    seconds: float
    peak_memory: int
    raw: int | None = None
    gzip: int | None = None
    brotli: int | None = None
    zstd: int | None = None
    audit: AuditReport | None = None


@dataclass(frozen=True, kw_only=True)
class SideModule:
    """The module chosen for release, the ladder it was chosen from, and why."""

    path: Path
    variant: Variant
    why: str
    ladder: tuple[Rung, ...]
