"""What each command does: read its options, call one room or the pipeline, print the result, return the exit code."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from release.places import cache_folder
from release.progress import Progress

if TYPE_CHECKING:
    from release.pipeline import Request

# Each command imports what it needs: a start of Python that loads everything costs what a whole unchanged release may.


def pins_show(options: argparse.Namespace) -> int:
    """Print a pin set as JSON."""
    from release.pins.load import load_pins

    print(load_pins(options.pins).model_dump_json(indent=2))
    return 0


def pins_check(options: argparse.Namespace) -> int:
    """Check pin sets, and that each agrees with the Pyodide it names."""
    from release.pins.load import available, load_pins
    from release.toolchain.pyodide import check_agreement, install_pyodide

    progress = Progress(quiet=options.quiet)
    for name in options.pins or available():
        pins = load_pins(name)
        check_agreement(pins, install_pyodide(pins, cache_folder(), progress))
        print(f"{pins.name}: agrees with Pyodide {pins.pyodide.version}")
    return 0


def toolchain(options: argparse.Namespace) -> int:
    """Find or install the tools and say what they are."""
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


def sources(options: argparse.Namespace) -> int:
    """Provide the sources and say whether they agree."""
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


def llvm(options: argparse.Namespace) -> int:
    """Build the LLVM libraries, or take them from the cache."""
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


def audit(options: argparse.Namespace) -> int:
    """Audit one side module."""
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


def stages(options: argparse.Namespace) -> int:
    """Run the pipeline up to the stage that the command is named for."""
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


def release(options: argparse.Namespace) -> int:
    """Run all of the pipeline and write the release folder."""
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
