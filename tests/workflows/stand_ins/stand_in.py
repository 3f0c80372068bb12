"""What the actions do that need GitHub, done with folders: ``stand_in.py ACTION``, with the inputs in INPUT_….

STAND_IN_CHECKOUT is the repository. STAND_IN_STATE is a folder with ``cache``, which outlives a run, and ``artifacts``,
which is of one run.
"""

import fnmatch
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from urllib.parse import quote, unquote

STATE = Path(os.environ["STAND_IN_STATE"])
DEFAULT_BRANCH = "refs/heads/main"


def given(name: str) -> str:
    return os.environ.get(f"INPUT_{name.upper().replace('-', '_')}", "").strip()


def output(name: str, value: str) -> None:
    with Path(os.environ["GITHUB_OUTPUT"]).open("a") as file:
        file.write(f"{name}={value}\n")


def fail(message: str) -> None:
    print(f"::error::{message}")
    sys.exit(1)


def path_of(text: str) -> Path:
    return Path(text).expanduser()


def checkout() -> None:
    # `act` knows neither job.workflow_repository nor job.workflow_sha; without them the action takes where it runs.
    for name, here in (("repository", os.environ["GITHUB_REPOSITORY"]), ("ref", os.environ["GITHUB_REF"])):
        if given(name) not in ("", here):
            fail(f"There is no {name} {given(name)} here")
    into = Path(os.environ["GITHUB_WORKSPACE"]) / given("path")
    archive = subprocess.run(
        ["git", "-C", os.environ["STAND_IN_CHECKOUT"], "archive", "HEAD"], check=True, stdout=subprocess.PIPE
    )
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
        tar.extractall(into, filter="tar")


def scopes() -> list[str]:
    """Whose entries may be read: those of this ref, and those of the default branch."""
    return list(dict.fromkeys([os.environ["GITHUB_REF"], DEFAULT_BRANCH]))


def entry(scope: str, key: str) -> Path:
    return STATE / "cache" / quote(scope, safe="") / f"{quote(key, safe='')}.tar"


def restore() -> None:
    key, prefixes = given("key"), [line for line in given("restore-keys").splitlines() if line.strip()]
    output("cache-primary-key", key)
    for scope in scopes():
        for wanted in (key, *prefixes):
            there = [path for path in entry(scope, "x").parent.glob("*.tar") if matches(path, wanted, wanted == key)]
            if there:
                newest = max(there, key=lambda path: path.stat().st_mtime_ns)
                with tarfile.open(newest) as tar:
                    tar.extractall("/", filter="fully_trusted")  # noqa: S202 - absolute names, which we have written
                matched = unquote(newest.stem)
                output("cache-hit", "true" if matched == key else "false")
                output("cache-matched-key", matched)
                print(f"Cache restored from key: {matched}")
                return
    output("cache-hit", "")
    print(f"Cache not found for input keys: {', '.join([key, *prefixes])}")


def matches(path: Path, wanted: str, exactly: bool) -> bool:
    name = unquote(path.stem)
    return name == wanted if exactly else name.startswith(wanted.strip())


def save() -> None:
    key, paths = given("key"), [path_of(line) for line in given("path").splitlines()]
    target = entry(os.environ["GITHUB_REF"], key)
    if target.exists():
        print(f"Unable to reserve cache with key {key}, another job may be creating this cache.")
        return
    if not any(path.exists() for path in paths):
        print("Path Validation Error: Path(s) specified in the action for caching do(es) not exist.")
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(target, "w") as tar:
        for path in paths:
            tar.add(path.resolve())
    print(f"Cache saved with key: {key}")


def upload() -> None:
    name, root = given("name") or "artifact", path_of(given("path"))
    found = [path for path in root.rglob("*") if path.is_file()] if root.is_dir() else [root] if root.is_file() else []
    files = [path for path in found if not any(part.startswith(".") for part in path.relative_to(root.parent).parts)]
    if not files:
        how = given("if-no-files-found") or "warn"
        print(f"::{'error' if how == 'error' else 'warning'}::No files were found with the provided path: {root}")
        sys.exit(how == "error")
    target = STATE / "artifacts" / name
    if target.exists():
        if given("overwrite") != "true":
            fail(f"Failed to CreateArtifact: an artifact with this name already exists on the workflow run: {name}")
        shutil.rmtree(target)
    for path in files:
        # Permissions are not kept.
        copy = target / (path.relative_to(root) if root.is_dir() else path.name)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
    output("artifact-id", "1")
    print(f"Artifact {name} has {len(files)} files")


def download() -> None:
    name, pattern, into = given("name"), given("pattern"), path_of(given("path") or ".")
    there = sorted(path.name for path in (STATE / "artifacts").glob("*"))
    wanted = [one for one in there if one == name] if name else [one for one in there if fnmatch.fnmatch(one, pattern)]
    if name and not wanted:
        fail(f"Unable to download artifact(s): Artifact not found for name: {name}")
    for one in wanted:
        # As the action has it: of several artifacts each gets a folder, and a single one none.
        target = into if len(wanted) == 1 or given("merge-multiple") == "true" else into / one
        shutil.copytree(STATE / "artifacts" / one, target, dirs_exist_ok=True)
    print(f"Downloaded {', '.join(wanted) or 'nothing'}")


def attest() -> None:
    subjects = [path for path in sorted(Path().glob(given("subject-path"))) if path.is_file()]
    if not subjects:
        fail("Could not find subject at path")
    if not os.environ.get("ACTIONS_ID_TOKEN_REQUEST_URL"):
        fail("Failed to get ID token: missing `id-token: write`")
    statement = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in subjects}
    (STATE / "attestation.json").write_text(json.dumps(statement))
    output("attestation-id", "1")


{"checkout": checkout, "restore": restore, "save": save, "upload": upload, "download": download, "attest": attest}[
    sys.argv[1]
]()
