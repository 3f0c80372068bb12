"""What a plan's jobs do, each a function from folders to a folder; ``scripts/`` has a door to each."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from release import assembly
from release.artifacts import replacing_folder
from release.check.model import Where
from release.errors import BrokenEnvironment, WrongUsage
from release.libraries import HostLibraries
from release.manifest.models import CasesReport, Manifest
from release.pipeline import Pipeline, Request
from release.plan.model import Plan
from release.products import Product
from release.progress import Progress
from release.stage import RECORD, exclusive
from release.toolchain import prepare
from release.toolchain.node import find_node, node_version
from release.toolchain.pyodide import install_pyodide

if TYPE_CHECKING:
    from release.llvm import Store
    from release.publish.host import Host
    from release.publish.publication import Publication
    from release.trust.verify import Verification


@dataclass(frozen=True, kw_only=True)
class Machine:
    """Where a job works: the cache, the work dir, and who is told how it goes."""

    cache: Path
    progress: Progress


def host_libraries(plan: Plan, machine: Machine) -> HostLibraries:
    """Return the LLVM of a plan, not provided yet. Raises as ``provide_sources`` does."""
    from release.sources import provide_sources

    sources = provide_sources(plan.pins, cache=machine.cache, progress=machine.progress)
    return HostLibraries(plan.pins, plan.profile.llvm, sources, cache=machine.cache, progress=machine.progress)


def prepare_package(plan: Plan, machine: Machine, out: Path) -> Manifest:
    """Build the module and the package, and lay them out in ``out`` with all that checking and releasing take."""
    with _pipeline(plan, machine) as pipeline:
        toolchain = pipeline.toolchain()
        module = pipeline.module(toolchain)
        stage = pipeline.prepare(toolchain, module, pipeline.package(toolchain, module))
        with replacing_folder(out) as temporary:
            shutil.copytree(stage.folder, temporary, dirs_exist_ok=True, ignore=shutil.ignore_patterns(RECORD))
    return assembly.read_manifest(out)


def check_package(plan: Plan, machine: Machine, prepared: Path, where: Where, out: Path) -> CasesReport:
    """Run the cases of a prepared package and write what was found into ``out``, passed or not."""
    runtime = _Runtime(
        node=find_node(),
        node_version=node_version(find_node()),
        pyodide=install_pyodide(plan.pins, machine.cache, machine.progress),
    )
    browser = None
    if where != "node":
        from release.toolchain.chromium import find_chromium

        browser = find_chromium(machine.cache, machine.progress)
    with replacing_folder(out) as temporary:
        return assembly.check(
            prepared, where, runtime=runtime, browser=browser, folder=temporary, progress=machine.progress
        )


def assemble(plan: Plan, prepared: Path, tests: Path, out: Path) -> Manifest:
    """Make the release folder of a prepared package and its checks, each in a folder of ``tests``.

    Raises WrongUsage when a check that was planned is not there, and what ``assembly.assemble`` raises.
    """
    checked = {where: tests / f"{plan.handovers.tests.name}{where}" for where in plan.checks}
    if missing := [where for where, folder in checked.items() if not folder.is_dir()]:
        raise WrongUsage(f"The check in {missing[0]} is not there.", remedy="Run that job again, and then this one.")
    with replacing_folder(out) as temporary:
        assembly.assemble(prepared, list(checked.values()), temporary)
    return assembly.read_manifest(out)


def publish(plan: Plan, machine: Machine, *, workflow: str) -> Publication:
    """Publish the release folder of a plan as its tag; in a dry run into a folder, by the same way.

    ``workflow`` is the file that has signed it. Raises as ``publish_release`` does.
    """
    from release.publish.folder import FolderHost
    from release.publish.github import GitHubHost
    from release.publish.notes import release_notes
    from release.publish.previous import previous_release
    from release.publish.publication import publish_release

    where, folder = plan.publication, Path(plan.handovers.release.path)
    host: Host
    if where.dry_run:
        host = FolderHost(Path(plan.handovers.published.path), tags={where.tag: where.commit})
    else:
        host = GitHubHost.from_environment(where.repository)
    with tempfile.TemporaryDirectory() as temporary:
        previous = previous_release(where.repository, Path(temporary), progress=machine.progress)
        notes = release_notes(folder, repository=where.repository, tag=where.tag, workflow=workflow, previous=previous)
    return publish_release(
        folder, host=host, tag=where.tag, commit=where.commit, notes=notes, progress=machine.progress
    )


def verify(plan: Plan, machine: Machine, *, workflow: str, trust_config: Path | None) -> Verification:
    """Fetch what was published, or take the folder of a dry run, and verify it. Raises as ``verify_release`` does."""
    from release.publish.folder import RECORD as RECORD_OF_A_DRY_RUN
    from release.trust.fetch import fetch_release
    from release.trust.model import Identity
    from release.trust.root import public_root, root_from, staging_root
    from release.trust.verify import verify_release

    where = plan.publication
    identity = Identity.of_workflow(where.repository, workflow, where.ref)
    root = root_from(trust_config) if trust_config else staging_root() if where.dry_run else public_root()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "release"
        if where.dry_run:
            published = Path(plan.handovers.published.path)
            shutil.copytree(published, folder, ignore=shutil.ignore_patterns(RECORD_OF_A_DRY_RUN))
        else:
            fetch_release(where.tag, folder, repository=where.repository, progress=machine.progress)
        return verify_release(folder, identity=identity, root=root)


def provide_llvm(
    plan: Plan, host: HostLibraries, machine: Machine, *, released_by: str, trust_config: Path | None
) -> str:
    """Provide the host libraries of a plan, and say in Markdown where they came from and what was reused.

    Raises as ``build_llvm`` does; Unfinished when the plan's time for it is up.
    """
    if plan.llvm is None:
        raise WrongUsage("This plan needs no LLVM.", remedy="Leave out the job where `stages` has no `llvm`.")
    if released_by:
        host.store = _released(host, machine, released_by, trust_config)
    toolchain = prepare(
        plan.pins, cache=machine.cache, allow_mismatch=False, progress=machine.progress, bind=host.visible
    )
    kept = host.kept.entry(plan.llvm.key).exists()
    libraries = host.provide(toolchain, stop_after=plan.llvm.stop_after * 60)
    if not host.kept.entry(libraries.key).exists():
        host.kept.put(libraries.key, libraries.prefix)  # other jobs get it from there
    compiled, minutes = libraries.compilations, libraries.stage.seconds / 60
    if compiled:
        how = (
            f"built in {minutes:.1f} minutes: {compiled.done} objects compiled,"
            f" {compiled.reused} reused from the compiler's cache"
        )
    elif libraries.stage.reused:
        how = "reused as they were in the work dir"
    else:
        how = "reused from the cache" if kept else f"reused from a release of {released_by}"
    return f"LLVM {libraries.version}, key `{libraries.key[:12]}`: {how}."


def _released(host: HostLibraries, machine: Machine, repository: str, trust_config: Path | None) -> Store:
    """Put the releases of ``repository`` behind the folder of the store; where nobody can be believed, leave them."""
    from release.publish.llvm_cache import SIGNED_BY, SIGNED_FROM, ReleasedLLVMs
    from release.trust.model import Identity
    from release.trust.root import public_root, root_from

    try:
        root = root_from(trust_config) if trust_config else public_root()
    except BrokenEnvironment as problem:
        machine.progress.note(f"  Released libraries are not looked for: {problem}")
        return host.kept
    identity = Identity.of_workflow(repository, SIGNED_BY, SIGNED_FROM)
    return ReleasedLLVMs(kept=host.kept, identity=identity, root=root, repository=repository, progress=machine.progress)


def release_llvm(plan: Plan, machine: Machine, *, trust_config: Path | None) -> str:
    """Publish the kept LLVM of a plan, signed, as the release of its key, and say in Markdown what came of it.

    Its tag is created where there is none: nobody but us asks for it. Raises as ``sign_release`` and
    ``publish_release`` do.
    """
    from release.llvm import DirectoryStore
    from release.publish.github import GitHubHost
    from release.publish.llvm_cache import lay_out, tag_of
    from release.publish.publication import publish_release
    from release.trust.sign import sign_release

    if plan.llvm is None:
        raise WrongUsage("This plan needs no LLVM.", remedy="Leave out the job where `stages` has no `llvm`.")
    where, tag = plan.publication, tag_of(plan.llvm.key)
    host = GitHubHost.from_environment(where.repository)
    if there := host.published(tag):
        return f"The libraries are released already: {there.url}"
    commit = host.have_tag(tag, where.commit)
    with tempfile.TemporaryDirectory(dir=machine.cache) as temporary:
        folder = Path(temporary) / "release"
        lay_out(DirectoryStore(folder=machine.cache / "llvm", progress=machine.progress), plan.llvm.key, folder)
        sign_release(folder, progress=machine.progress, trust_config=trust_config)
        notes = f"LLVM for WebAssembly, built by `{where.repository}` and taken by its key, `{plan.llvm.key}`."
        published = publish_release(folder, host=host, tag=tag, commit=commit, notes=notes, progress=machine.progress)
    return f"{published.tag}: {published.outcome}, {len(published.assets)} assets, {published.url}"


@dataclass(frozen=True, kw_only=True)
class _Runtime:
    node: Path
    node_version: str
    pyodide: Path


@contextmanager
def _pipeline(plan: Plan, machine: Machine) -> Iterator[Pipeline]:
    name = f"{plan.pins.name}-{plan.profile.name}"
    work = machine.cache / "work" / (f"sample-{name}" if plan.product == "sample" else name)
    request = Request(pins=plan.pins, profile=plan.profile, cache=machine.cache, work=work)
    with exclusive(work, wait=True, progress=machine.progress):
        yield Pipeline(request, _product(plan, machine), machine.progress)


def _product(plan: Plan, machine: Machine) -> Product:
    from release.products.sample import SampleProduct
    from release.products.triton import TritonProduct
    from release.sources import provide_sources

    if plan.product == "sample":
        return SampleProduct(plan.profile)
    sources = provide_sources(plan.pins, cache=machine.cache, progress=machine.progress)
    return TritonProduct(plan.pins, plan.profile, sources, cache=machine.cache, progress=machine.progress)
