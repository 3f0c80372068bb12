"""The command line: arguments in, exit codes out, and nothing more.

Exit codes: 0 done; 1 a finding (a check failed, a package was refused); 2 wrong usage (an argument, a pin set); 3 a
broken environment (a missing tool, no network, a full disk); 130 interrupted.
"""

from __future__ import annotations

import argparse
import errno
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

import release
from release import commands, publishing_commands
from release.errors import INTERRUPTED, BrokenEnvironment, Problem
from release.pins.load import DEFAULT as _PINS

_WORKFLOW, _LLVM_WORKFLOW = "release.yml", "llvm-cache.yml"
_NOBODY_READS = 141  # 128 + SIGPIPE, as shells have it
_DISK = {errno.ENOSPC: "The disk is full", errno.EDQUOT: "The disk quota is used up", errno.EROFS: "It is read-only"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        code = int(options.run(options) or 0)
        sys.stdout.flush()  # here, where a reader that has gone is expected
        return code
    except Problem as problem:
        _complain(str(problem), problem.remedy)
        code = problem.exit_code
        failure: BaseException = problem
    except KeyboardInterrupt as interrupt:
        _complain("Interrupted.", "Run the same command again: it goes on with the first stage that is not finished.")
        code, failure = INTERRUPTED, interrupt
    except BrokenPipeError:
        # Whoever read our output has seen enough. What is still buffered must not complain when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _NOBODY_READS
    except OSError as error:
        reason = _DISK.get(error.errno or 0)
        where = f": {error.filename}" if error.filename else ""
        remedy = "Make room, or give another --work, --out or TRITON_WASM_CACHE; then run again."
        if reason is None:
            reason, remedy = error.strerror or str(error), "Mend that and run again, or run with --debug to see more."
        _complain(f"{reason}{where}.", remedy)
        code, failure = BrokenEnvironment.exit_code, error
    if options.debug:
        raise failure
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="triton-wasm",
        description="Build, check and publish Triton as a compile-only WebAssembly package.",
        epilog=(
            "Exit codes: 0 done, 1 a finding, 2 wrong usage, 3 a broken environment, 4 the time is up, 130 interrupted."
        ),
    )
    parser.add_argument("--version", action="version", version=release.__version__)
    parser.add_argument("--debug", action="store_true", help="show the traceback of a failure")
    parser.add_argument("--quiet", action="store_true", help="print results and failures only")
    verbs = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    pins = verbs.add_parser("pins", help="show or check what is built").add_subparsers(required=True, metavar="VERB")
    show = pins.add_parser("show", help="print a pin set as JSON")
    show.add_argument("pins", metavar="PINS")
    show.set_defaults(run=commands.pins_show)
    check = pins.add_parser("check", help="check pin sets against their schema and the Pyodide they name")
    check.add_argument("pins", metavar="PINS", nargs="*", help="names or paths; all of the project's by default")
    check.set_defaults(run=commands.pins_check)
    impact = pins.add_parser("impact", help="say what another Triton would mean, before anything is built")
    impact.add_argument("ref", metavar="REF", help="a branch, tag or commit of the pinned repository, or a folder")
    impact.add_argument("--pins", metavar="PINS", default=_PINS, help=f"the pin set it is compared with ({_PINS})")
    impact.set_defaults(run=commands.pins_impact)

    toolchain = verbs.add_parser("toolchain", help="find or install the pinned tools and prove them")
    _add_pins(toolchain)
    toolchain.set_defaults(run=commands.toolchain)

    sources = verbs.add_parser("sources", help="find or fetch Triton and LLVM and see whether they belong together")
    _add_pins(sources)
    _add_sources(sources)
    sources.set_defaults(run=commands.sources)

    llvm = verbs.add_parser("llvm", help="build LLVM for WebAssembly, or take it from the cache")
    _add_pins(llvm)
    _add_llvm(llvm)
    _add_jobs(llvm)
    llvm.add_argument("--key-only", action="store_true", help="print the cache key and the folder to cache, and end")
    llvm.add_argument("--force", action="store_true", help="build, whatever is there")
    llvm.add_argument(
        "--stop-after", metavar="MINUTES", type=float, help="stop then and exit with 4; what is done is kept"
    )
    llvm.add_argument("--no-wait", action="store_true", help="fail when another run works in the same folder")
    llvm.add_argument("--from-release", metavar="OWNER/NAME", help="before it is built, look in a release of its key")
    _add_sources(llvm)
    _add_trust(llvm, workflow=_LLVM_WORKFLOW)
    llvm.set_defaults(run=commands.llvm)

    audit = verbs.add_parser("audit", help="audit a side module")
    _add_pins(audit)
    audit.add_argument("file", metavar="FILE", type=Path)
    audit.add_argument("--init", metavar="SYMBOL", help="the PyInit_… it must export (any one by default)")
    audit.add_argument("--floor", metavar="BYTES", type=int, default=0, help="smallest size that is believed")
    audit.add_argument("--budget", metavar="BYTES", type=int, help="largest size that is allowed")
    audit.set_defaults(run=commands.audit)

    for name, text in {
        "module": "build the side module: compile, link, optimise, audit",
        "package": "build the wheel, the zip and the lock entry",
        "check": "load the package in Pyodide and run every case",
    }.items():
        command = verbs.add_parser(name, help=text)
        _add_pipeline(command)
        command.set_defaults(run=commands.stages, until=name, oracle=False)
    _add_oracle(command)
    command = verbs.add_parser("recipe", help="write the package as Pyodide recipes, or build them with pyodide-build")
    _add_pipeline(command)
    command.add_argument("--out", metavar="DIR", type=Path, help="where the recipes go")
    command.add_argument("--build", action="store_true", help="build them and compare with the direct path's package")
    command.set_defaults(run=commands.recipe, oracle=False)
    command = verbs.add_parser("release", help="run all stages and write the release folder")
    _add_pipeline(command)
    command.add_argument("--out", metavar="DIR", type=Path, required=True, help="where the release goes")
    _add_oracle(command)
    command.add_argument("--sign", action="store_true", help="sign it, as the job of GitHub Actions that this is")
    _add_trust_config(command)
    command.set_defaults(run=commands.release)

    command = verbs.add_parser("sign", help="sign a release folder, as the job of GitHub Actions that this is")
    command.add_argument("folder", metavar="DIR", type=Path)
    _add_trust_config(command)
    command.set_defaults(run=publishing_commands.sign)
    command = verbs.add_parser("verify", help="verify a release as its consumer")
    command.add_argument("place", metavar="PATH|URL|TAG")
    command.add_argument("--tag", metavar="TAG", help="the tag that it was built for, where PLACE is none")
    _add_repository(command)
    _add_trust(command)
    command.set_defaults(run=publishing_commands.verify)
    command = verbs.add_parser("consume", help="look at a published CDN tree as browsers find it")
    command.add_argument("url", metavar="URL", help="the root of the tree")
    command.add_argument("--version", metavar="VERSION", help="of the package (what the tree itself names)")
    command.add_argument("--out", metavar="FILE", type=Path, help="where the report goes, as JSON")
    command.set_defaults(run=publishing_commands.consume)
    _add_publish(verbs.add_parser("publish", help="publish a release, or say what that would do"))
    return parser


def _add_publish(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    github = verbs.add_parser("github", help="a GitHub release: draft, upload, compare, publish, read back")
    _add_target(github)
    _add_dry_run(github)
    github.add_argument("--notes", metavar="FILE", type=Path, help="its text (made from the manifests by default)")
    github.add_argument("--previous", metavar="DIR", type=Path, help="the release before it, for what has changed")
    github.add_argument("--workflow", metavar="FILE", default=_WORKFLOW, help=f"the file that signs ({_WORKFLOW})")
    github.set_defaults(run=publishing_commands.github)
    doctor = verbs.add_parser("doctor", help="look at what is there and say what publishing would do")
    _add_target(doctor)
    doctor.set_defaults(run=publishing_commands.doctor)
    index = verbs.add_parser("index", help="a package index: check, upload once, read back")
    index.add_argument("folder", metavar="DIR", type=Path)
    index.add_argument("--index", metavar="URL", help="where files are sent (PyPI by default)")
    index.add_argument("--simple", metavar="URL", help="the root of its simple repository")
    _add_dry_run(index)
    index.set_defaults(run=publishing_commands.index)
    cdn = verbs.add_parser("cdn", help="a folder of static files for browsers: the package and its loader")
    cdn.add_argument("folders", metavar="DIR", type=Path, nargs="+", help="releases of one package")
    cdn.add_argument("--out", metavar="TREE", type=Path, required=True, help="where they go, beside what is there")
    cdn.add_argument("--host", metavar="NAME", default="any", help="what will serve it, such as pages (any by default)")
    cdn.add_argument("--npm", metavar="NAME", help="make it an npm package of that name as well")
    cdn.set_defaults(run=publishing_commands.cdn)
    cache = verbs.add_parser("llvm-cache", help="lay the packed LLVM out as a release folder")
    _add_pins(cache)
    _add_llvm(cache)
    _add_sources(cache)
    cache.add_argument("--out", metavar="DIR", type=Path, required=True, help="where the release goes")
    cache.set_defaults(run=commands.llvm_cache)


def _add_target(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="DIR", type=Path)
    parser.add_argument("--tag", metavar="TAG", required=True, help="an existing tag, without refs/tags/")
    parser.add_argument("--commit", metavar="HEX", help="what was built (GITHUB_SHA by default)")
    _add_repository(parser)


def _add_repository(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--repository", metavar="OWNER/NAME", help="at GitHub (GITHUB_REPOSITORY by default)")


def _add_dry_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--dry-run",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="do all of it into a folder, and send nothing",
    )
    parser.add_argument("--out", metavar="DIR", type=Path, help="the folder of a dry run (DIR-dry-run by default)")


def _add_trust(parser: argparse.ArgumentParser, *, workflow: str = _WORKFLOW) -> None:
    parser.add_argument("--workflow", metavar="FILE", default=workflow, help=f"the file that signs ({workflow})")
    parser.add_argument("--identity", metavar="URL", help="the exact signer, where it is no workflow of the repository")
    parser.add_argument("--issuer", metavar="URL", help="who vouches for it (GitHub Actions by default)")
    root = parser.add_mutually_exclusive_group()
    root.add_argument("--offline", action="store_true", help="use the trust root that came with this toolkit")
    root.add_argument("--trust-root", metavar="FILE", type=Path, help="use another trust root")


def _add_trust_config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--trust-config", metavar="FILE", type=Path, help="another Sigstore than the public one")


def _add_pins(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--pins", metavar="PINS", default=_PINS, help=f"a pin set, by name or path ({_PINS} by default)"
    )
    parser.add_argument(
        "--allow-toolchain-mismatch", action="store_true", help="go on with other tool versions; the manifest says so"
    )


def _add_sources(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--accept-llvm", action="store_true", help="go on with another LLVM than Triton asks for; the manifest says so"
    )
    parser.add_argument("--allow-dirty", action="store_true", help="take checkouts with local changes, likewise")


def _add_llvm(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--profile", metavar="NAME", default="full-lto", help="how it is configured (full-lto)")
    parser.add_argument("--work", metavar="DIR", type=Path, help="where it is built (in the cache by default)")


def _add_jobs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--jobs", metavar="N", type=int, help="compilers at once (what cores and memory allow)")


def _add_pipeline(parser: argparse.ArgumentParser) -> None:
    _add_pins(parser)
    _add_sources(parser)
    _add_jobs(parser)
    parser.add_argument("--sample", action="store_true", help="build the sample, which takes seconds, and not Triton")
    parser.add_argument("--supplied", metavar="PLACE", help="a kernel to compile as well: a path or an https URL")
    parser.add_argument("--sha256", metavar="HEX", default="", help="the digest that the supplied kernel has to have")
    parser.add_argument(
        "--companion", metavar="FILE", action="append", default=[], type=Path, help="a module that it imports"
    )
    parser.add_argument("--profile", metavar="NAME", help="a flag profile of the pin set (its first by default)")
    parser.add_argument("--work", metavar="DIR", type=Path, help="where the stages live (in the cache by default)")
    parser.add_argument("--force", action="store_true", help="run every stage, also when nothing changed")
    parser.add_argument("--no-wait", action="store_true", help="fail when another run works in the same folder")


def _add_oracle(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--oracle", action="store_true", help="compare the texts with those of a native Triton")
    parser.add_argument(
        "--oracle-python", metavar="PYTHON", type=Path, help="take the published wheel installed for it as oracle"
    )
    parser.add_argument("--ptxas", metavar="PLACE", type=Path, help="assemble PTX: the program, or a wheel with it")


def _complain(message: str, remedy: str) -> None:
    print(f"triton-wasm: {message}\n  {remedy}", file=sys.stderr, flush=True)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
