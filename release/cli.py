"""The command line: arguments in, exit codes out, and nothing more.

Exit codes: 0 done; 1 a finding (a check failed, a package was refused); 2 wrong usage (an argument, a pin set); 3 a
broken environment (a missing tool, no network, a full disk); 130 interrupted.
"""

from __future__ import annotations

import argparse
import errno
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import release
from release.errors import INTERRUPTED, BrokenEnvironment, Problem
from release.places import cache_folder
from release.progress import Progress

if TYPE_CHECKING:
    from release.pipeline import Request

_PINS = "preview"  # the one that can be built anywhere
_DISK = {errno.ENOSPC: "The disk is full", errno.EDQUOT: "The disk quota is used up", errno.EROFS: "It is read-only"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        return int(options.run(options) or 0)
    except Problem as problem:
        _complain(str(problem), problem.remedy)
        code = problem.exit_code
        failure: BaseException = problem
    except KeyboardInterrupt as interrupt:
        _complain("Interrupted.", "Run the same command again: it goes on with the first stage that is not finished.")
        code, failure = INTERRUPTED, interrupt
    except OSError as error:
        reason = _DISK.get(error.errno or 0, error.strerror or str(error))
        where = f": {error.filename}" if error.filename else ""
        _complain(
            f"{reason}{where}.", "Make room, or give another --work, --out or TRITON_WASM_CACHE; then run it again."
        )
        code, failure = BrokenEnvironment.exit_code, error
    if options.debug:
        raise failure
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="triton-wasm",
        description="Build, check and publish Triton as a compile-only WebAssembly package.",
        epilog="Exit codes: 0 done, 1 a finding, 2 wrong usage, 3 a broken environment, 130 interrupted.",
    )
    parser.add_argument("--version", action="version", version=release.__version__)
    parser.add_argument("--debug", action="store_true", help="show the traceback of a failure")
    parser.add_argument("--quiet", action="store_true", help="print results and failures only")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    pins = commands.add_parser("pins", help="show or check what is built").add_subparsers(required=True, metavar="VERB")
    show = pins.add_parser("show", help="print a pin set as JSON")
    show.add_argument("pins", metavar="PINS")
    show.set_defaults(run=_pins_show)
    check = pins.add_parser("check", help="check pin sets against their schema and the Pyodide they name")
    check.add_argument("pins", metavar="PINS", nargs="*", help="names or paths; all of the project's by default")
    check.set_defaults(run=_pins_check)

    toolchain = commands.add_parser("toolchain", help="find or install the pinned tools and prove them")
    _add_pins(toolchain)
    toolchain.set_defaults(run=_toolchain)

    sources = commands.add_parser("sources", help="find or fetch Triton and LLVM and see whether they belong together")
    _add_pins(sources)
    sources.add_argument("--accept-llvm", action="store_true", help="go on with another LLVM; the manifest says so")
    sources.add_argument("--allow-dirty", action="store_true", help="take checkouts with local changes, likewise")
    sources.set_defaults(run=_sources)

    llvm = commands.add_parser("llvm", help="build LLVM for WebAssembly, or take it from the cache")
    _add_pins(llvm)
    llvm.add_argument("--profile", metavar="NAME", default="full-lto", help="how it is configured (full-lto)")
    llvm.add_argument("--work", metavar="DIR", type=Path, help="where it is built (in the cache by default)")
    llvm.add_argument("--jobs", metavar="N", type=int, help="compilers at once (what cores and memory allow)")
    llvm.add_argument("--key-only", action="store_true", help="print the cache key and the folder to cache, and end")
    llvm.add_argument("--force", action="store_true", help="build, whatever is there")
    llvm.add_argument("--no-wait", action="store_true", help="fail when another run works in the same folder")
    llvm.add_argument("--accept-llvm", action="store_true", help="go on with another LLVM than Triton asks for")
    llvm.add_argument("--allow-dirty", action="store_true", help="take checkouts with local changes")
    llvm.set_defaults(run=_llvm)

    audit = commands.add_parser("audit", help="audit a side module")
    _add_pins(audit)
    audit.add_argument("file", metavar="FILE", type=Path)
    audit.add_argument("--init", metavar="SYMBOL", help="the PyInit_… it must export (any one by default)")
    audit.add_argument("--floor", metavar="BYTES", type=int, default=0, help="smallest size that is believed")
    audit.add_argument("--budget", metavar="BYTES", type=int, help="largest size that is allowed")
    audit.set_defaults(run=_audit)

    for name, text in {
        "module": "build the side module: compile, link, optimise, audit",
        "package": "build the wheel, the zip and the lock entry",
        "check": "load the package in Pyodide and run every case",
    }.items():
        command = commands.add_parser(name, help=text)
        _add_pipeline(command)
        command.set_defaults(run=_stages, until=name)
    command = commands.add_parser("release", help="run all stages and write the release folder")
    _add_pipeline(command)
    command.add_argument("--out", metavar="DIR", type=Path, required=True, help="where the release goes")
    command.set_defaults(run=_release)
    return parser


def _add_pins(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--pins", metavar="PINS", default=_PINS, help=f"a pin set, by name or path ({_PINS} by default)"
    )
    parser.add_argument(
        "--allow-toolchain-mismatch", action="store_true", help="go on with other tool versions; the manifest says so"
    )


def _add_pipeline(parser: argparse.ArgumentParser) -> None:
    _add_pins(parser)
    parser.add_argument("--profile", metavar="NAME", help="a flag profile of the pin set (its first by default)")
    parser.add_argument("--work", metavar="DIR", type=Path, help="where the stages live (in the cache by default)")
    parser.add_argument("--force", action="store_true", help="run every stage, also when nothing changed")
    parser.add_argument("--no-wait", action="store_true", help="fail when another run works in the same folder")


# Each command imports what it needs: a start of Python that loads everything costs what a whole unchanged release may.


def _pins_show(options: argparse.Namespace) -> int:
    from release.pins.load import load_pins

    print(load_pins(options.pins).model_dump_json(indent=2))
    return 0


def _pins_check(options: argparse.Namespace) -> int:
    from release.pins.load import available, load_pins
    from release.toolchain.pyodide import check_agreement, install_pyodide

    progress = Progress(quiet=options.quiet)
    for name in options.pins or available():
        pins = load_pins(name)
        check_agreement(pins, install_pyodide(pins, cache_folder(), progress))
        print(f"{pins.name}: agrees with Pyodide {pins.pyodide.version}")
    return 0


def _toolchain(options: argparse.Namespace) -> int:
    from release.pins.load import load_pins
    from release.toolchain import prepare

    progress = Progress(quiet=options.quiet)
    tools = prepare(
        load_pins(options.pins),
        cache=cache_folder(),
        allow_mismatch=options.allow_toolchain_mismatch,
        progress=progress,
    )
    print(f"Emscripten {tools.emscripten.version} and Binaryen {tools.binaryen.version} from {tools.provider}")
    print(f"Node {tools.node_version}, {tools.node}")
    print(f"Pyodide in {tools.pyodide}")
    print(f"Python headers in {tools.python_include}")
    for mismatch in tools.mismatches:
        print(f"accepted: {mismatch}")
    return 0


def _sources(options: argparse.Namespace) -> int:
    from release.pins.load import load_pins
    from release.sources import describe, provide_sources

    pins = load_pins(options.pins)
    sources = provide_sources(
        pins,
        cache=cache_folder(),
        progress=Progress(quiet=options.quiet),
        accept_llvm=options.accept_llvm,
        allow_dirty=options.allow_dirty,
    )
    print(describe(pins, sources))
    return 0


def _llvm(options: argparse.Namespace) -> int:
    from release.llvm import DirectoryStore, LLVMRequest, build_llvm, llvm_key
    from release.pins.load import load_llvm_profile, load_pins
    from release.pins.upstream import MAIN
    from release.sources import provide_sources
    from release.stage import exclusive
    from release.toolchain import prepare

    pins, profile = load_pins(options.pins), load_llvm_profile(options.profile)
    cache, progress = cache_folder(), Progress(quiet=options.quiet)
    work = (options.work or cache / "work" / f"{pins.name}-{profile.name}").resolve()
    sources = provide_sources(
        pins, cache=cache, progress=progress, accept_llvm=options.accept_llvm, allow_dirty=options.allow_dirty
    )
    with exclusive(work, wait=not options.no_wait, progress=progress):
        request = LLVMRequest(
            source=sources.fixed(MAIN, work),
            version=sources.llvm_trees[MAIN].version,
            digest=sources.llvm[MAIN].digest,
            triton=sources.triton.path,
            profile=profile,
            fixups=tuple(fixup for fixup in sources.fixups if fixup.source == MAIN),
        )
        tools = prepare(
            pins,
            cache=cache,
            allow_mismatch=options.allow_toolchain_mismatch,
            progress=progress,
            bind=[work, request.source],
        )
        store = DirectoryStore(folder=cache / "llvm", progress=progress)
        if options.key_only:
            key = llvm_key(request, tools)
            print(f"key={key}\npath={store.entry(key)}")
            return 0
        libraries = build_llvm(
            request,
            tools,
            work=work,
            cache=cache,
            store=store,
            progress=progress,
            jobs=options.jobs,
            force=options.force,
        )
    print(libraries.prefix)
    return 0


def _audit(options: argparse.Namespace) -> int:
    from release.module.audit import audit, describe
    from release.pins.load import load_pins
    from release.toolchain.node import find_node
    from release.toolchain.pyodide import install_pyodide

    pins, progress = load_pins(options.pins), Progress(quiet=options.quiet)
    report = audit(
        options.file,
        init=options.init,
        pyodide=install_pyodide(pins, cache_folder(), progress),
        node=find_node(),
        floor=options.floor,
        budget=options.budget,
        forbidden_paths=[str(Path.cwd()), str(Path.home())],
    )
    print(describe(report))
    return 0 if report.passed else 1


def _stages(options: argparse.Namespace) -> int:
    from release.pipeline import Pipeline
    from release.stage import exclusive

    request, progress = _request(options), Progress(quiet=options.quiet)
    with exclusive(request.work, wait=not options.no_wait, progress=progress):
        pipeline = Pipeline(request, progress)
        tools = pipeline.toolchain()
        module = pipeline.module(tools)
        if options.until == "module":
            print(f"{module.path}: {module.why}")
            return 0
        package = pipeline.package(tools, module)
        if options.until == "package":
            print("\n".join(str(path) for path in (package.wheel, package.zip, package.lock)))
            return 0
        report = pipeline.check(tools, package)
        print(f"{len(report.cases)} checks passed")
    return 0


def _release(options: argparse.Namespace) -> int:
    from release.pipeline import Pipeline
    from release.stage import exclusive

    request, progress = _request(options), Progress(quiet=options.quiet)
    with exclusive(request.work, wait=not options.no_wait, progress=progress):
        manifest = Pipeline(request, progress).release(options.out.resolve())
    print(f"{manifest.name} {manifest.version} is in {options.out}: {manifest.why}")
    return 0


def _request(options: argparse.Namespace) -> Request:
    from release.pins.load import load_pins, load_profile
    from release.pipeline import Request

    pins = load_pins(options.pins)
    profile = load_profile(options.profile or pins.profiles[0], pins)
    cache = cache_folder()
    return Request(
        pins=pins,
        profile=profile,
        cache=cache,
        work=(options.work or cache / "work" / f"{pins.name}-{profile.name}").resolve(),
        allow_mismatch=options.allow_toolchain_mismatch,
        force=options.force,
    )


def _complain(message: str, remedy: str) -> None:
    print(f"triton-wasm: {message}\n  {remedy}", file=sys.stderr, flush=True)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
