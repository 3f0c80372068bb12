"""What each command does: read its options, call one room or the pipeline, print the result, return the exit code."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from release.errors import WrongUsage
from release.places import cache_folder
from release.progress import Progress

if TYPE_CHECKING:
    from release.fidelity import OracleChoice
    from release.libraries import HostLibraries
    from release.pins.model import PinSet, Profile
    from release.pipeline import Pipeline
    from release.products import Product
    from release.sources import Sources
    from release.toolchain.model import Toolchain

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


def pins_impact(options: argparse.Namespace) -> int:
    """Say what another Triton would mean for a pin set."""
    from release.package.layer import PYTHON
    from release.pins.impact import Severity, impact, read_facts
    from release.pins.impact.compare import describe
    from release.pins.load import load_known_bad, load_pins
    from release.sources import other_triton, pinned_triton
    from release.toolchain.fixups import check_fixups

    pins, cache, progress = load_pins(options.pins), cache_folder(), Progress(quiet=options.quiet)
    new = read_facts(other_triton(pins, options.ref, cache=cache, progress=progress).path)
    old = read_facts(pinned_triton(pins, cache=cache, progress=progress).path)
    report = impact(old, new, pins, known_bad=load_known_bad(), check_fixups=check_fixups, layer=PYTHON)
    print(describe(report))
    return 0 if report.severity < Severity.WORK else 1


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
    from release.sources import describe

    print(describe(load_pins(options.pins), _sources(options)))
    return 0


def llvm(options: argparse.Namespace) -> int:
    """Build the LLVM libraries, or take them from the cache or from a release."""
    host, tools = _host_libraries(options)
    if options.key_only:
        key, path = host.key(tools)
        print(f"key={key}\npath={path}")
        return 0
    if options.from_release:
        from release.publish.llvm_cache import SIGNED_FROM, ReleasedLLVMs
        from release.publishing_commands import identity_of, root_of

        options.repository = options.from_release
        host.store = ReleasedLLVMs(
            kept=host.kept,
            identity=identity_of(options, SIGNED_FROM),
            root=root_of(options),
            repository=options.from_release,
            progress=Progress(quiet=options.quiet),
        )
    stop_after = None if options.stop_after is None else options.stop_after * 60
    libraries = host.provide(
        tools, wait=not options.no_wait, jobs=options.jobs, force=options.force, stop_after=stop_after
    )
    print(libraries.prefix)
    return 0


def llvm_cache(options: argparse.Namespace) -> int:
    """Lay the packed LLVM out as a release folder, to be signed and published like one."""
    from release.publish.llvm_cache import lay_out, tag_of

    host, tools = _host_libraries(options)
    key, _ = host.key(tools)
    lay_out(host.kept, key, options.out)
    print(f"{options.out} is the release {tag_of(key)}; sign it, tag it, and publish it with `publish github`")
    return 0


def _host_libraries(options: argparse.Namespace) -> tuple[HostLibraries, Toolchain]:
    """Return the host libraries of the pin set that was asked for, and the tools that build them."""
    from release.libraries import HostLibraries
    from release.pins.load import load_pins
    from release.toolchain import prepare

    pins, cache, progress = load_pins(options.pins), cache_folder(), Progress(quiet=options.quiet)
    host = HostLibraries(pins, options.profile, _sources(options), cache=cache, progress=progress, work=options.work)
    tools = prepare(
        pins, cache=cache, allow_mismatch=options.allow_toolchain_mismatch, progress=progress, bind=host.visible
    )
    return host, tools


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
    with _pipeline(options) as pipeline:
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
        if choice := _oracle(options):
            compared = pipeline.compare(choice, tools)
            print(f"{len(compared.texts)} texts compared with {compared.oracle}")
    return 0


def release(options: argparse.Namespace) -> int:
    """Run all of the pipeline, write the release folder, and sign it if that was asked for."""
    if options.sign:
        from release.trust.credential import require_ambient

        require_ambient()  # before hours of work, and not after
    with _pipeline(options) as pipeline:
        manifest = pipeline.release(options.out.resolve(), oracle=_oracle(options))
    print(f"{manifest.name} {manifest.version} is in {options.out}: {manifest.why}")
    if options.sign:
        from release.publishing_commands import sign

        options.folder = options.out
        return sign(options)
    return 0


def recipe(options: argparse.Namespace) -> int:
    """Write the Pyodide recipes, or build them and compare the package with that of the direct path."""
    from release.package.recipe import describe, require_same

    if bool(options.out) == options.build:
        raise WrongUsage("A recipe is written or built.", remedy="Give either --out DIR or --build.")
    with _pipeline(options) as pipeline:
        if options.out:
            pipeline.write_recipe(options.out.resolve())
            print(options.out)
        else:
            differences = pipeline.build_recipe()
            print(describe(differences))
            require_same(differences)
    return 0


@contextmanager
def _pipeline(options: argparse.Namespace) -> Iterator[Pipeline]:
    """Give the pipeline of what is asked for, alone in its work dir."""
    from release.pins.load import load_pins, load_profile
    from release.pipeline import Pipeline, Request
    from release.stage import exclusive

    pins, progress = load_pins(options.pins), Progress(quiet=options.quiet)
    profile = load_profile(options.profile or pins.profiles[0], pins)
    cache = cache_folder()
    name = f"{pins.name}-{profile.name}"
    request = Request(
        pins=pins,
        profile=profile,
        cache=cache,
        work=(options.work or cache / "work" / (f"sample-{name}" if options.sample else name)).resolve(),
        allow_mismatch=options.allow_toolchain_mismatch,
        force=options.force,
    )
    product = _sample(options, profile) if options.sample else _triton(options, pins, profile, cache, progress)
    with exclusive(request.work, wait=not options.no_wait, progress=progress):
        yield Pipeline(request, product, progress)


def _oracle(options: argparse.Namespace) -> OracleChoice | None:
    from release.fidelity import OracleChoice

    return OracleChoice(python=options.oracle_python, ptxas=options.ptxas) if options.oracle else None


def _sample(options: argparse.Namespace, profile: Profile) -> Product:
    from release.products.sample import SampleProduct

    if options.supplied:
        raise WrongUsage("The sample compiles no kernels.", remedy="Leave out --supplied, or leave out --sample.")
    if options.oracle:
        raise WrongUsage("The sample has no oracle.", remedy="Leave out --oracle, or leave out --sample.")
    return SampleProduct(profile)


def _triton(options: argparse.Namespace, pins: PinSet, profile: Profile, cache: Path, progress: Progress) -> Product:
    from release.check.kernels.supplied import supplied_from
    from release.products.triton import TritonProduct

    # First, for it takes a moment: a kernel that breaks the contract is not found out after the build.
    supplied = (
        supplied_from(options.supplied, sha256=options.sha256, companions=options.companion)
        if options.supplied
        else None
    )
    return TritonProduct(
        pins, profile, _sources(options), cache=cache, progress=progress, supplied=supplied, jobs=options.jobs
    )


def _sources(options: argparse.Namespace) -> Sources:
    from release.pins.load import load_pins
    from release.sources import provide_sources

    return provide_sources(
        load_pins(options.pins),
        cache=cache_folder(),
        progress=Progress(quiet=options.quiet),
        accept_llvm=options.accept_llvm,
        allow_dirty=options.allow_dirty,
    )
