"""Finding, installing and proving the tools of a pin set."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from release.artifacts import sha256_of_tree, sweep
from release.errors import BrokenEnvironment, Problem, WrongUsage
from release.pins.model import PinSet
from release.places import CHECKOUT
from release.progress import Progress, Steps
from release.stage import exclusive, key_of
from release.toolchain import apt, debian, emsdk, path, python_headers
from release.toolchain.folders import home
from release.toolchain.installation import Installation, OtherVersion
from release.toolchain.model import Toolchain
from release.toolchain.node import find_node, node_version
from release.toolchain.prove import Proof, prove_headers, prove_tools, versions
from release.toolchain.pyodide import check_agreement, install_pyodide
from release.toolchain.stamp import Proved, recall, remember

PROVIDERS: tuple[ModuleType, ...] = (path, emsdk, debian)
VARIABLE = "TRITON_WASM_PROVIDER"

_WATCHED_FILES = 150  # of each kind; the largest that matter come first
_LONGEST_WAY = 8  # steps, when everything is missing and the last provider is the one


def prepare(
    pins: PinSet, *, cache: Path, allow_mismatch: bool, progress: Progress, bind: Sequence[Path] = ()
) -> Toolchain:
    """Return the proved tools of ``pins``, found or installed into ``cache``, in which they stay.

    The first provider that has the pinned versions is taken; with ``allow_mismatch`` the first that has the tools, and
    ``Toolchain.mismatches`` says what was not met. ``bind`` names folders that commands of the tools must see besides
    the checkout, the cache and the temporary directory. When nothing has changed since the last call nothing is run.

    Raises BrokenEnvironment when no provider has them, Finding when the Pyodide is not the pinned one.
    """
    # Python's own folder too: headers that come with Python packages are in it. The tools may be elsewhere, by a link.
    visible = [CHECKOUT, cache, home(cache).resolve(), Path(sys.prefix), *bind]
    stamp = home(cache) / "proved" / f"{key_of(pins.model_dump(include={'pyodide', 'emscripten', 'binaryen'}))}.json"
    choice = _choice()
    proved = recall(stamp, choice=choice)
    if not proved or (proved.mismatches and not allow_mismatch):
        with exclusive(home(cache), wait=True, progress=progress):
            proved = recall(stamp, choice=choice)
            if not proved or (proved.mismatches and not allow_mismatch):
                for folder in (home(cache), *(home(cache) / name for name in ("debian", "emsdk", "python"))):
                    sweep(folder)
                with progress.steps("toolchain", _LONGEST_WAY) as steps:
                    work = _Work(pins, cache, allow_mismatch, visible, progress, steps)
                    proved, files = work.prove()
                remember(stamp, proved, choice=choice, files=files)
    return Toolchain(
        provider=proved.installation.provider,
        enter=proved.installation.enter(visible),
        emscripten=proved.emscripten,
        binaryen=proved.binaryen,
        node=proved.node,
        node_version=proved.node_version,
        pyodide=proved.pyodide,
        python_include=proved.python_include,
        python_include_digest=proved.python_include_digest,
        mismatches=proved.mismatches,
    )


class _Work:
    """One search, from nothing to a proved toolchain."""

    def __init__(
        self,
        pins: PinSet,
        cache: Path,
        allow_mismatch: bool,
        visible: Sequence[Path],
        progress: Progress,
        steps: Steps,
    ) -> None:
        self._pins, self._cache, self._home = pins, cache, home(cache)
        self._allow_mismatch, self._visible = allow_mismatch, visible
        self._progress, self._steps = progress, steps

    def prove(self) -> tuple[Proved, list[Path]]:
        """Return what was proved and the files it stands on."""
        node = find_node()
        version = node_version(node)
        self._steps.begin(f"Pyodide {self._pins.pyodide.version}")
        pyodide = install_pyodide(self._pins, self._cache, self._progress)
        check_agreement(self._pins, pyodide)
        self._steps.begin(f"headers of Python {self._pins.pyodide.python_minor}")
        include = python_headers.install_headers(self._pins, self._home, pyodide=pyodide)
        installation, proof = self._choose()
        self._steps.begin("prove the headers")
        prove_headers(installation, include, self._visible, self._home)
        proved = Proved(
            installation=installation,
            emscripten=proof.emscripten,
            binaryen=proof.binaryen,
            node=node,
            node_version=version,
            pyodide=pyodide,
            python_include=include,
            python_include_digest=sha256_of_tree(include),
            mismatches=self._mismatches(proof.emscripten.version, proof.binaryen.version, installation),
        )
        headers = [include / name for name in ("Python.h", "pyconfig.h", "pyport.h", "patchlevel.h")]
        return proved, [node, *headers, *sorted(pyodide.iterdir()), *proof.files[:_WATCHED_FILES]]

    def _choose(self) -> tuple[Installation, Proof]:
        """Walk through the providers until one has the pinned tools and they work; first those that need no network."""
        reasons: list[Problem] = []
        providers = _providers()
        for provider in providers:
            for installation in provider.find(self._pins, self._home):
                try:
                    return installation, self._accept(installation)
                except BrokenEnvironment as problem:
                    self._pass_by(provider, problem, reasons)
                    if not isinstance(problem, OtherVersion):
                        provider.remove(installation)
        for provider in providers:
            if provider is path and path.find(self._pins, self._home):
                continue  # looked at above, and nothing else can come of it
            try:
                installation = provider.install(
                    self._pins, self._home, allow_mismatch=self._allow_mismatch, steps=self._steps
                )
                return installation, self._accept(installation)
            except BrokenEnvironment as problem:
                self._pass_by(provider, problem, reasons)
        raise _no_provider(self._pins, reasons)

    def _pass_by(self, provider: ModuleType, problem: Problem, reasons: list[Problem]) -> None:
        reasons.append(problem)
        self._progress.done("toolchain", f"{provider.NAME}: {problem}")

    def _accept(self, installation: Installation) -> Proof:
        self._steps.begin(f"prove the tools of {installation.provider}")
        emscripten, binaryen = versions(installation, self._visible)
        if (mismatches := self._mismatches(emscripten, binaryen, installation)) and not self._allow_mismatch:
            raise OtherVersion(f"{'; '.join(mismatches)}.")
        return prove_tools(installation, self._visible, self._home)

    def _mismatches(self, emscripten: str, binaryen: str, installation: Installation) -> tuple[str, ...]:
        pins, provider = self._pins, installation.provider
        compared = [("Emscripten", emscripten, pins.emscripten.version)]
        if pins.binaryen is not None:
            compared.append(("Binaryen", binaryen, pins.binaryen.version))
        return tuple(
            f"{tool} of {provider} is {found} and pin set {pins.name} wants {wanted}"
            for tool, found, wanted in compared
            if found != wanted
        )


def _providers() -> Sequence[ModuleType]:
    chosen = os.environ.get(VARIABLE)
    if not chosen:
        return PROVIDERS
    if found := [provider for provider in PROVIDERS if chosen == provider.NAME]:
        return found
    raise WrongUsage(
        f"{VARIABLE} is {chosen!r}, which is no provider.",
        remedy=f"Set it to one of: {', '.join(provider.NAME for provider in PROVIDERS)}; or leave it unset.",
    )


def _no_provider(pins: PinSet, reasons: Sequence[Problem]) -> Problem:
    if len(reasons) == 1:
        return reasons[0]
    # Another version that is there is the nearest miss: its remedy is the one that helps at once.
    near = [problem for problem in reasons if isinstance(problem, OtherVersion)]
    said = "; ".join(dict.fromkeys(str(problem).rstrip(".") for problem in reasons))
    return BrokenEnvironment(
        f"Emscripten {pins.emscripten.version} is not to be had: {said}.", remedy=(near or reasons)[-1].remedy
    )


def _choice() -> dict[str, Any]:
    """What decides which tools are taken, besides the pins."""
    names = ("EMSDK", "EM_CONFIG", VARIABLE, python_headers.VARIABLE, apt.MIRROR_VARIABLE)
    return {
        "on PATH": [shutil.which(name) for name in ("em++", "wasm-opt")],
        "environment": {name: os.environ.get(name) for name in names},
        "packages": list(debian.PACKAGES),
        "node": str(find_node()),
        "code": sha256_of_tree(Path(__file__).parent),
    }
