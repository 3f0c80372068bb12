"""What the commands do that hand a release out, or look at one that was: sign, verify, publish.

As in ``commands``: each reads its options, calls one room, prints the result, returns the exit code.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from release.errors import WrongUsage
from release.progress import Progress

if TYPE_CHECKING:
    from release.publish.host import Host
    from release.trust.model import Identity
    from release.trust.root import TrustRoot


def sign(options: argparse.Namespace) -> int:
    """Sign a release folder as the job that this is."""
    from release.trust.sign import sign_release

    signed = sign_release(options.folder, progress=Progress(quiet=options.quiet), trust_config=options.trust_config)
    print(f"{len(signed.bundles)} files and the provenance are signed by {signed.identity.subject}")
    return 0


def verify(options: argparse.Namespace) -> int:
    """Verify a release, wherever it is."""
    from release.trust.fetch import fetch_release
    from release.trust.verify import describe, verify_release

    tag = options.tag or (options.place if "/" not in options.place and not Path(options.place).is_dir() else None)
    identity = identity_of(options, f"refs/tags/{tag}" if tag else None)
    root = root_of(options)
    progress = Progress(quiet=options.quiet)
    with tempfile.TemporaryDirectory() as temporary:
        folder = fetch_release(
            options.place, Path(temporary) / "release", repository=options.repository, progress=progress
        )
        print(describe(verify_release(folder, identity=identity, root=root)))
    return 0


def github(options: argparse.Namespace) -> int:
    """Publish a release folder as a GitHub release, or into a folder."""
    from release.publish.publication import publish_release

    notes = options.notes.read_text() if options.notes else _notes(options)
    publication = publish_release(
        options.folder,
        host=_host(options),
        tag=options.tag,
        commit=_commit(options),
        notes=notes,
        progress=Progress(quiet=options.quiet),
    )
    print(f"{publication.tag}: {publication.outcome}, {len(publication.assets)} assets, {publication.url}")
    return 0


def doctor(options: argparse.Namespace) -> int:
    """Say what publishing would find and do."""
    from release.publish.doctor import examine
    from release.publish.github import GitHubHost

    host = GitHubHost.from_environment(_repository(options))
    progress = Progress(quiet=options.quiet)
    print(examine(options.folder, host=host, tag=options.tag, commit=_commit(options), progress=progress))
    return 0


def index(options: argparse.Namespace) -> int:
    """Have the wheel of a release folder at a package index, or in a folder."""
    from release.publish.index import PYPI, Index, publish_to_index

    if bool(options.index) != bool(options.simple):
        raise WrongUsage("An index has two addresses.", remedy="Give both --index and --simple, or none for PyPI.")
    where = Index(upload=options.index, simple=options.simple) if options.index else PYPI
    done = publish_to_index(
        options.folder,
        index=where,
        progress=Progress(quiet=options.quiet),
        dry_run=_out(options) if options.dry_run else None,
    )
    print(f"{done.wheel.name}: {done.outcome}, {done.url}")
    return 0


def cdn(options: argparse.Namespace) -> int:
    """Lay releases out for browsers."""
    from release.publish.cdn.hosts import host_of
    from release.publish.cdn.tree import files_of, lay_out

    tree = lay_out(
        options.folders,
        options.out,
        host=host_of(options.host),
        progress=Progress(quiet=options.quiet),
        npm=options.npm,
    )
    print(f"{tree.latest.name} {', '.join(tree.indices)} in {tree.folder}, for {options.host}")
    for build in tree.indices[tree.latest.version].builds:
        print(f"  ABI {build.abi} (Pyodide {build.pyodide}), module {build.module.size:,} bytes")
    total = sum({file.path: file.size for index in tree.indices.values() for file in files_of(index)}.values())
    print(f"  {total:,} bytes in files that never change; {tree.latest.loader.path} is the loader,")
    print(f"  integrity {tree.latest.loader.integrity}")
    return 0


def consume(options: argparse.Namespace) -> int:
    """Look at a published tree as browsers find it."""
    from release.artifacts import write_atomically
    from release.publish.cdn.consume import describe, examine

    report = examine(options.url, version=options.version, progress=Progress(quiet=options.quiet))
    if options.out:
        write_atomically(options.out, report.model_dump_json(indent=2) + "\n")
    print(describe(report))
    return 0 if report.passed else 1


def identity_of(options: argparse.Namespace, ref: str | None) -> Identity:
    """Return whose signature is asked for: exactly who was named, or the workflow of a repository at ``ref``."""
    from release.trust.model import GITHUB_ISSUER, Identity

    issuer = options.issuer or GITHUB_ISSUER
    if options.identity:
        return Identity(subject=options.identity, issuer=issuer)
    if ref is None:
        raise WrongUsage(
            "Whose signature it has to be is not known.", remedy="Give --tag with --repository, or --identity."
        )
    return Identity.of_workflow(_repository(options), options.workflow, ref, issuer=issuer)


def root_of(options: argparse.Namespace) -> TrustRoot:
    """Return the trust root that was asked for."""
    from release.trust.root import bundled_root, public_root, root_from

    if options.trust_root:
        return root_from(options.trust_root)
    return bundled_root() if options.offline else public_root()


def _notes(options: argparse.Namespace) -> str:
    from release.publish.notes import release_notes

    return release_notes(
        options.folder,
        repository=_repository(options),
        tag=options.tag,
        workflow=options.workflow,
        previous=options.previous,
    )


def _host(options: argparse.Namespace) -> Host:
    from release.publish.folder import FolderHost
    from release.publish.github import GitHubHost

    if options.dry_run:
        return FolderHost(_out(options), tags={options.tag: _commit(options)})
    return GitHubHost.from_environment(_repository(options))


def _out(options: argparse.Namespace) -> Path:
    folder: Path = options.folder.absolute()
    out: Path = options.out or folder.with_name(f"{folder.name}-dry-run")
    return out


def _repository(options: argparse.Namespace) -> str:
    return _given(options.repository, "GITHUB_REPOSITORY", "--repository OWNER/NAME")


def _commit(options: argparse.Namespace) -> str:
    return _given(options.commit, "GITHUB_SHA", "--commit HEX")


def _given(value: str | None, variable: str, option: str) -> str:
    if found := value or os.environ.get(variable, ""):
        return found
    raise WrongUsage(f"Neither {option.split()[0]} nor {variable} says which.", remedy=f"Give {option}.")
