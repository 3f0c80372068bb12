"""Auditing a side module: will the pinned Pyodide load it, and is nothing in it that should not be?

A rule is one function that looks at a ``_Subject`` and says whether it is content and why; ``@_rule`` puts it into the
table. Nothing is run but V8's validator, so a module that cannot be loaded is audited all the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from release.errors import WrongUsage
from release.module.model import AuditReport, RuleResult
from release.module.offer import Offer, is_provided, read_offer
from release.module.validate import Verdict, refused_for_exnref, validate
from release.module.wasm import Kind, Limits, WasmModule, read_wasm


def audit(
    wasm: Path,
    *,
    init: str | None,
    pyodide: Path,
    node: Path,
    budget: int | None,
    floor: int,
    forbidden_paths: Sequence[str],
) -> AuditReport:
    """Look at the wasm file ``wasm`` by every rule, for the Pyodide unpacked in ``pyodide``.

    ``init`` is the full name of the one init function to be exported, such as ``PyInit_libtriton``; with None any are
    fine. ``node`` must be one that can switch exnref off (Node 24). ``floor`` and ``budget`` are the smallest and the
    largest size in bytes. ``forbidden_paths`` are folders of the build machine (work dir, home, checkout) that must not
    be named in the module, beside those that always belong to one machine, such as ``/home/USER/``.

    Raises WrongUsage for a file that is no complete wasm module and for a folder that holds no Pyodide,
    BrokenEnvironment for a Node that cannot judge.
    """
    if useless := [path for path in forbidden_paths if not path.startswith("/") or not path.strip("/")]:
        raise WrongUsage(
            f"{useless[0]!r} cannot be looked for as a path of the build machine.",
            remedy="Give absolute paths of folders below /.",
        )
    module = read_wasm(wasm)
    subject = _Subject(
        module=module,
        init=init,
        pyodide=read_offer(pyodide),
        verdict=validate(wasm, node),
        budget=budget,
        floor=floor,
        forbidden_paths=tuple(path.rstrip("/") for path in forbidden_paths),
    )
    results = []
    for name, rule in _RULES:
        passed, detail = rule(subject)
        results.append(RuleResult(rule=name, passed=passed, detail=detail))
    return AuditReport(file=wasm.name, size=module.size, results=tuple(results))


def describe(report: AuditReport) -> str:
    """Return the report as a table, one line per rule."""
    width = max((len(result.rule) for result in report.results), default=0)
    failed = sum(not result.passed for result in report.results)
    lines = [
        f"  {'ok' if result.passed else 'FAIL':<4}  {result.rule:<{width}}  {result.detail}"
        for result in report.results
    ]
    outcome = f"{failed} of {len(report.results)} rules broken" if failed else f"all {len(report.results)} rules kept"
    return "\n".join([f"{report.file}: {report.size:,} bytes, {outcome}", *lines])


@dataclass(frozen=True, kw_only=True)
class _Subject:
    module: WasmModule
    init: str | None
    pyodide: Offer
    verdict: Verdict
    budget: int | None
    floor: int
    forbidden_paths: tuple[str, ...]


type _Finding = tuple[bool, str]
type _Rule = Callable[[_Subject], _Finding]

_RULES: list[tuple[str, _Rule]] = []


def _rule(name: str) -> Callable[[_Rule], _Rule]:
    def register(rule: _Rule) -> _Rule:
        _RULES.append((name, rule))
        return rule

    return register


@_rule("valid")
def _is_valid(subject: _Subject) -> _Finding:
    if subject.verdict.with_exnref is not None:
        return False, f"V8 refuses the module: {subject.verdict.with_exnref}."
    return True, f"V8 takes the module with its {len(subject.module.body_sizes):,} functions."


@_rule("legacy-eh")
def _uses_legacy_exceptions_only(subject: _Subject) -> _Finding:
    # Pyodide and the side module must handle exceptions alike, and all current Pyodides do it the older way.
    if subject.verdict.without_exnref is None:
        return True, "there is neither try_table nor exnref: V8 takes the module with them switched off."
    if refused_for_exnref(subject.verdict.without_exnref):
        return False, f"the module uses the newer exception handling: {subject.verdict.without_exnref}."
    return False, "V8 did not get far enough to say, the module not being valid."


@_rule("dylink")
def _has_sane_dylink(subject: _Subject) -> _Finding:
    module, dylink = subject.module, subject.module.dylink
    if dylink is None:
        first = module.sections[0].name if module.sections else "nothing"
        where = "comes later" if module.section("custom:dylink.0") else "is missing"
        return False, f"the first section is {first}, and dylink.0 {where}."
    faults = []
    if dylink.needed:
        faults.append(f"it needs other libraries ({_some(dylink.needed)})")
    if dylink.runtime_paths:
        faults.append(f"it has runtime paths ({_some(dylink.runtime_paths)})")
    if module.section("data") is None:
        faults.append("there is no data section, and every Python extension has data: its own name")
    if dylink.memory_size < module.data_bytes:
        faults.append(f"it asks for {dylink.memory_size:,} bytes of memory and has {module.data_bytes:,} of data")
    if dylink.memory_size > _MAX_MEMORY:
        faults.append(f"it asks for {dylink.memory_size:,} bytes of memory, more than {_MAX_MEMORY:,}")
    if dylink.table_size > _MAX_TABLE:
        faults.append(f"it asks for {dylink.table_size:,} table slots, more than {_MAX_TABLE:,}")
    if max(dylink.memory_align, dylink.table_align) > _MAX_ALIGN:
        faults.append(
            f"it asks for alignments of 2^{dylink.memory_align} (memory) and 2^{dylink.table_align} (table), "
            f"above 2^{_MAX_ALIGN}"
        )
    if faults:
        return False, f"dylink.0 does not describe a module to load: {'; '.join(faults)}."
    return True, (
        f"dylink.0 comes first: {dylink.memory_size:,} bytes of memory aligned to {1 << dylink.memory_align}, "
        f"{dylink.table_size:,} table slots, no other library."
    )


# Half of what a 32-bit memory can ever have; V8's limit for a table (kV8MaxWasmTableSize); a page of wasm memory.
_MAX_MEMORY = 1 << 31
_MAX_TABLE = 10_000_000
_MAX_ALIGN = 16


@_rule("exports")
def _exports_its_init_function_only(subject: _Subject) -> _Finding:
    exports = subject.module.exports
    inits = sorted(each.name for each in exports if each.kind == "func" and each.name.startswith("PyInit_"))
    if not inits:
        return False, f"none of {len(exports):,} exports is a PyInit_ function: Python could not import the module."
    if subject.init is not None and inits != [subject.init]:
        return False, f"the init function should be {subject.init}, exported are {_some(inits)}."
    others = sorted(each.name for each in exports if each.name not in inits and each.name not in _LINKER_EXPORTS)
    if others:
        return (
            False,
            f"{len(others):,} of {len(exports):,} exports are neither PyInit_ nor the linker's: {_some(others)}.",
        )
    return True, f"{len(exports):,} exports: {_some(inits)} and the linker's own."


# What Emscripten's dynamic linker calls after loading a side module; the thread-local ones of a build with threads are
# not among them.
_LINKER_EXPORTS = frozenset({"__wasm_call_ctors", "__wasm_apply_data_relocs"})


@_rule("export-count")
def _has_few_exports(subject: _Subject) -> _Finding:
    count = len(subject.module.exports)
    return count < _MAX_EXPORTS, f"{count:,} exports; engines before 2024 take fewer than {_MAX_EXPORTS:,}."


# The limit of the JavaScript API until it went to 1,000,000 (WebAssembly/spec pull request 1766, July 2024); V8's
# kV8MaxWasmExports in src/wasm/wasm-limits.h. Node 20 still has it.
_MAX_EXPORTS = 100_000


@_rule("imports")
def _imports_what_pyodide_has(subject: _Subject) -> _Finding:
    imports = subject.module.imports
    own: dict[str, Kind] = {each.name: each.kind for each in subject.module.exports}
    weak = subject.module.dylink.weak_imports if subject.module.dylink else frozenset()
    missing = [each for each in imports if not is_provided(each, own | subject.pyodide.kinds)]
    left_open = [each for each in missing if (each.module, each.name) in weak]
    missing = [each for each in missing if each not in left_open]
    release = f"Pyodide {subject.pyodide.version}"
    if missing:
        return False, f"{len(missing):,} of {len(imports):,} imports are not in {release}: {_some(map(str, missing))}."
    and_weak = f", but for {len(left_open)} weak ones" if left_open else ""
    return True, f"all {len(imports):,} imports are in {release}{and_weak}."


@_rule("signatures")
def _calls_pyodide_as_it_is(subject: _Subject) -> _Finding:
    # A function of another type fails the load with a LinkError. JavaScript functions have no type to compare with.
    have = subject.pyodide.signatures
    compared = [
        each
        for each in subject.module.imports
        if each.kind == "func" and each.signature is not None and each.name in have
    ]
    wrong = [
        f"{each} is {have[each.name]}, not {each.signature}" for each in compared if have[each.name] != each.signature
    ]
    if wrong:
        return (
            False,
            f"{len(wrong):,} of {len(compared):,} imported functions have another type in Pyodide: {_some(wrong)}.",
        )
    return True, f"all {len(compared):,} functions imported from Pyodide's wasm have the type they have there."


@_rule("js-exceptions")
def _throws_without_javascript(subject: _Subject) -> _Finding:
    found = sorted(each.name for each in subject.module.imports if _JS_EXCEPTIONS.match(each.name))
    if found:
        return False, f"{len(found):,} imports belong to exceptions or longjmp by way of JavaScript: {_some(found)}."
    return True, "no import belongs to exceptions or longjmp by way of JavaScript."


_JS_EXCEPTIONS = re.compile(
    r"invoke_|__cxa_find_matching_catch|__resumeException$|llvm_eh_typeid_for$|_?emscripten_(throw_)?longjmp$"
)


@_rule("threads")
def _has_no_threads(subject: _Subject) -> _Finding:
    # Atomic instructions on memory that is not shared are plain loads and stores; V8 has no flag to refuse them.
    module = subject.module
    limits: list[Limits] = [*module.memories, *(each.limits for each in module.imports if each.limits)]
    faults = []
    if shared := sum(each.shared for each in limits):
        faults.append(f"{shared} shared memory or table, where Pyodide's are not shared")
    faults += [f"the target feature {name}" for name in module.target_features if name in _THREAD_FEATURES]
    if faults:
        return False, f"the module was built for threads: {', '.join(faults)}."
    features = "has no atomics" if module.section("custom:target_features") else "is not there"
    return True, f"no shared memory; the section target_features {features}."


_THREAD_FEATURES = frozenset({"+atomics", "+shared-mem"})


@_rule("function-size")
def _has_no_giant_function(subject: _Subject) -> _Finding:
    largest = subject.module.largest_body
    if largest is None:
        return False, "the module has no functions."
    index, size = largest
    count = len(subject.module.body_sizes)
    return (
        size < _MAX_BODY,
        f"the largest of {count:,} functions, number {index:,}, has {size:,} of {_MAX_BODY:,} bytes.",
    )


# kV8MaxWasmFunctionSize in V8's src/wasm/wasm-limits.h, also the limit of the WebAssembly JavaScript API: one function
# above it makes the whole module unloadable.
_MAX_BODY = 7_654_321


@_rule("size")
def _has_the_right_size(subject: _Subject) -> _Finding:
    size, floor, budget = subject.module.size, subject.floor, subject.budget
    if size < floor:
        return False, f"{size:,} bytes are less than the floor of {floor:,}: something was not linked in."
    if budget is not None and size > budget:
        return False, f"{size:,} bytes are {size - budget:,} more than the budget of {budget:,}."
    return True, f"{size:,} bytes; floor {floor:,}, budget {f'{budget:,}' if budget is not None else 'none'}."


@_rule("paths")
def _names_no_build_machine(subject: _Subject) -> _Finding:
    # Code holds no strings; data does, and so do names, producers and debug information.
    places = [each for each in subject.module.sections if each.name == "data" or each.name.startswith("custom:")]
    named = b"|".join(re.escape(path[1:].encode()) for path in subject.forbidden_paths)
    paths = b"|".join(filter(None, (_MACHINE_PATHS, named and rb"(?:%b)(?![\w.-])" % named)))
    found: dict[str, None] = {}
    with subject.module.path.open("rb") as file:
        for section in places:
            file.seek(section.start)
            content = file.read(section.end - section.start)
            # In a custom section the byte before a string is its length, which may look like a letter.
            start = _PATH_START if section.name == "data" else b"/"
            pattern = start + b"(?:" + paths + b")" + _PATH_REST
            found |= dict.fromkeys(match[0].decode(errors="replace") for match in re.finditer(pattern, content))
    if found:
        return False, f"{len(found):,} paths of the build machine are in the module: {_some(found)}."
    return True, f"no path of the build machine in {len(places)} sections of data and names."


# Paths that exist on one machine only. Not here: /tmp, /opt and /usr, which LLVM names on purpose (/tmp/perf-PID.map,
# /opt/rocm), and /emsdk/emscripten/system, the name Emscripten gives its libraries' sources wherever it is installed.
_MACHINE_PATHS = rb"(?:home|Users)/[^/\s\0]+/|(?:root|builds?|__w|var/folders)/"
# A slash at the beginning of a path, or after -I or -L. It comes first because the search is quick for a literal.
_PATH_START = rb"/(?:(?<![\w.-]/)|(?<=-[IL]/))"
_PATH_REST = rb"[\x21\x23-\x26\x28-\x7e]{0,80}"


def _some(names: Iterable[str], limit: int = 5) -> str:
    listed = list(names)
    return ", ".join(listed[:limit]) + (", …" if len(listed) > limit else "")
