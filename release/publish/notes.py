"""Release notes, made from what two releases say of themselves: what it is, what has changed, how to verify and load.

No more than a screen before the details. What comes out of a manifest is text and never markup.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from release.check.oracle.model import OracleReport
from release.errors import WrongUsage
from release.manifest.models import CasesReport, Manifest, VariantSizes

_MARKUP = re.compile(r"([\\`*_{}\[\]<>()#+!|~&@-])")
_FIRST = "This is the first release; there is nothing to compare it with."
_COMPRESSIONS = ("raw", "gzip", "brotli", "zstd")


@dataclass(frozen=True, kw_only=True)
class Told:
    """What a release folder says of itself; ``oracle`` is None where no texts were compared."""

    manifest: Manifest
    tests: CasesReport
    oracle: OracleReport | None

    @classmethod
    def read(cls, folder: Path) -> Told:
        """Read the reports of a release folder. Raises WrongUsage for one that lacks them or is none."""
        try:
            oracle = folder / "oracle.json"
            return cls(
                manifest=Manifest.model_validate_json((folder / "manifest.json").read_text()),
                tests=CasesReport.model_validate_json((folder / "tests.json").read_text()),
                oracle=OracleReport.model_validate_json(oracle.read_text()) if oracle.is_file() else None,
            )
        except (OSError, ValueError) as error:
            raise WrongUsage(
                f"{folder} does not say what it is ({type(error).__name__}).",
                remedy="Give the --out folder of a release.",
            ) from error


def release_notes(folder: Path, *, repository: str, tag: str, workflow: str, previous: Path | None = None) -> str:
    """Return the Markdown of a release of ``repository`` (OWNER/NAME); ``workflow`` is the file that signs.

    ``previous`` is the folder of the release before it, or None when there is none. Raises WrongUsage for a folder that
    is no release.
    """
    now, before = Told.read(folder), Told.read(previous) if previous else None
    wheel = next(asset.name for asset in now.manifest.assets if asset.name.endswith(".whl"))
    lines = [
        *_head(now),
        "",
        "## What has changed",
        "",
        *(_changes(now, before) if before else [_FIRST]),
        "",
        "## Verify and load",
        "",
        "```sh",
        f"triton-wasm verify {tag} --repository {repository} --workflow {workflow}",
        "```",
        "",
        "```js",
        f'import {{ loadPyodide }} from "pyodide"; // {now.manifest.pins.pyodide.version}',
        "const pyodide = await loadPyodide();",
        f'await pyodide.loadPackage("{wheel}"); // from a host of your own: GitHub sends browsers no CORS headers',
        "```",
        "",
        *_details(now, before),
    ]
    return "\n".join(lines) + "\n"


def comparison(folder: Path, previous: Path | None) -> str:
    """Return what is different between two releases as Markdown: pins, fix-ups, sizes, cases, times, texts."""
    if previous is None:
        return _FIRST + "\n"
    return "\n".join(_changes(Told.read(folder), Told.read(previous))) + "\n"


def _head(now: Told) -> Iterator[str]:
    manifest, tests = now.manifest, now.tests
    pins, chosen = manifest.pins, _chosen(manifest)
    passed = sum(case.passed for case in tests.cases)
    sources = ", ".join(f"{_text(source.name)} {_text(source.version)}" for source in manifest.sources)
    yield (
        f"**{_text(manifest.name)} {_text(manifest.version)}** as a compile-only WebAssembly package for Pyodide "
        f"{pins.pyodide.version} (Python {pins.pyodide.python}, ABI `{pins.pyodide.abi}`)"
        f"{', of ' + sources if sources else ''}."
    )
    yield ""
    yield f"- Pin set `{pins.name}`, profile `{manifest.profile.name}`, Emscripten {manifest.toolchain.emscripten}"
    yield f"- Module {_bytes(chosen.raw)}, {_bytes(chosen.brotli)} under brotli; variant `{chosen.variant}`"
    yield f"- {passed} of {len(tests.cases)} checks passed in {_text(tests.runtimes)}"
    if now.oracle:
        equal, whole = _equal(now.oracle), len(now.oracle.texts)
        yield f"- {equal} of {whole} texts are those of {_text(now.oracle.oracle)}, byte for byte"
    for accepted in (*manifest.toolchain.mismatches, *manifest.accepted):
        yield f"- **Accepted:** {_text(accepted)}"


def _changes(now: Told, before: Told) -> Iterator[str]:
    changed = [
        *_pins(now.manifest, before.manifest),
        *_sizes(now.manifest, before.manifest),
        *_cases(now.tests, before.tests),
        *_texts(now.oracle, before.oracle),
    ]
    yield f"Since {_text(before.manifest.name)} {_text(before.manifest.version)}:"
    yield ""
    yield from changed or ["- nothing that the manifests know of"]


def _pins(now: Manifest, before: Manifest) -> Iterator[str]:
    for (what, new), (_, old) in zip(_pinned(now), _pinned(before), strict=True):
        if new != old:
            yield f"- {what}: `{old}` → `{new}`"
    added, gone = _names(now, before), _names(before, now)
    if added or gone:
        yield f"- fix-ups: {_listed('added', added)}{'; ' if added and gone else ''}{_listed('gone', gone)}"


def _pinned(manifest: Manifest) -> list[tuple[str, str]]:
    pins = manifest.pins
    return [
        ("Triton", pins.triton.commit[:12]),
        ("LLVM", ", ".join(f"{pin.release or (pin.commit or '')[:12]}" for pin in pins.llvm)),
        ("Pyodide", pins.pyodide.version),
        ("Python", pins.pyodide.python),
        ("ABI", pins.pyodide.abi),
        ("Emscripten", pins.emscripten.version),
        ("Binaryen", pins.binaryen.version if pins.binaryen else "Emscripten's own"),
        ("profile", manifest.profile.name),
        ("toolkit", manifest.toolkit_version),
    ]


def _sizes(now: Manifest, before: Manifest) -> Iterator[str]:
    new, old = _chosen(now), _chosen(before)
    for kind in ("raw", "brotli"):
        yield f"- {kind}: {_bytes(getattr(new, kind))} ({_delta(getattr(new, kind), getattr(old, kind))})"


def _cases(now: CasesReport, before: CasesReport) -> Iterator[str]:
    new, old = _times(now), _times(before)
    added, gone = sorted(new.keys() - old.keys()), sorted(old.keys() - new.keys())
    if added or gone:
        yield f"- cases: {_listed('added', added)}{'; ' if added and gone else ''}{_listed('gone', gone)}"
    both = new.keys() & old.keys()
    if both and (slow := sum(old[name] for name in both)) > 0:
        ratio = sum(new[name] for name in both) / slow
        yield f"- time of the {len(both)} cases of both: {(ratio - 1) * 100:+.0f} %, on machines that need not be alike"


def _texts(now: OracleReport | None, before: OracleReport | None) -> Iterator[str]:
    if now and before:
        new, old = (f"{_equal(report)} of {len(report.texts)}" for report in (now, before))
        if new != old:
            yield f"- texts like the native ones: {old} → {new}"


def _details(now: Told, before: Told | None) -> Iterator[str]:
    old = {rung.variant: rung for rung in before.manifest.ladder} if before else {}
    yield "<details><summary>Sizes, sources, fix-ups and files</summary>"
    yield ""
    yield "| variant | raw | gzip -9 | brotli -q 11 | zstd -19 |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    for rung in now.manifest.ladder:
        name = f"**{rung.variant}**" if rung.chosen else rung.variant
        if rung.failure is not None:
            yield f"| {name} | {_text(rung.failure)} | | | |"
            continue
        cells = (_cell(rung, old.get(rung.variant), kind) for kind in _COMPRESSIONS)
        yield f"| {name} | {' | '.join(cells)} |"
    yield ""
    for source in now.manifest.sources:
        yield f"- {_text(source.name)} {_text(source.version)} `{source.commit or source.digest}`"
    for fixup in now.manifest.fixups:
        yield f"- fix-up `{fixup.name}`: {_text(fixup.reason)}"
    yield ""
    yield "| file | bytes | SHA-256 |"
    yield "| --- | ---: | --- |"
    for asset in now.manifest.assets:
        yield f"| `{asset.name}` | {asset.size:,} | `{asset.sha256}` |"
    yield ""
    yield "</details>"


def _cell(rung: VariantSizes, old: VariantSizes | None, kind: str) -> str:
    size = getattr(rung, kind)
    before = getattr(old, kind) if old else None
    return f"{size:,}" if before in (None, size) else f"{size:,} ({_delta(size, before)})"


def _chosen(manifest: Manifest) -> VariantSizes:
    return next(rung for rung in manifest.ladder if rung.chosen)


def _names(these: Manifest, those: Manifest) -> list[str]:
    return sorted({fixup.name for fixup in these.fixups} - {fixup.name for fixup in those.fixups})


def _times(report: CasesReport) -> Mapping[str, float]:
    node = (case for run in report.runs if run.where == "node" for case in run.cases)
    return {case.name: case.run_seconds for case in node if case.loader == "wheel"}


def _equal(report: OracleReport) -> int:
    return sum(text.status == "identical" and text.ignored == "nothing" for text in report.texts)


def _listed(what: str, names: Sequence[str]) -> str:
    return f"{what} {', '.join(_text(name) for name in names)}" if names else ""


def _bytes(size: int | None) -> str:
    return f"{size or 0:,} bytes"


def _delta(new: int | None, old: int | None) -> str:
    if not new or not old:
        return "nothing to compare with"
    return f"{new - old:+,}, {(new / old - 1) * 100:+.1f} %" if new != old else "unchanged"


def _text(value: str) -> str:
    """Take out of a text what Markdown or HTML would make of it, and its line ends."""
    return _MARKUP.sub(r"\\\1", " ".join(value.split()))
