"""Repositories of Triton and LLVM that git takes for the real ones, and pin sets of what is in them."""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from release.pins import load
from release.places import CHECKOUT
from release.plan import derive
from release.toolchain.model import Tool, Toolchain
from tests.pins import trees

OURS = """\
# A pin set of small trees.
schema_version = 1
name = "ours"
profiles = ["seed", "release"]

[triton]
repository = "https://github.com/triton-lang/triton"
commit = "{triton}" # of a release

[[llvm]]
name = "llvm"
repository = "https://github.com/llvm/llvm-project"
{llvm}

[pyodide]
version = "314.0.0"
integrity = "sha512-{digits}=="
python = "3.14.2"
abi = "2026_0"

[emscripten]
version = "5.0.3"
"""


@dataclass(frozen=True, kw_only=True)
class Upstream:
    """The two repositories, below a folder that stands for github.com; commits by what they are."""

    folder: Path
    triton: dict[str, str]
    llvm: dict[str, str]

    @property
    def pins(self) -> Path:
        return self.folder / "pins"

    def take(self, patch: pytest.MonkeyPatch) -> None:
        """Have git and the toolkit take what is here for what is at GitHub and in the project."""
        for name in ("TRITON_ROOT", "LLVM_ROOT", "NEW_TRITON_ROOT"):
            patch.delenv(name, raising=False)
        there = {"KEY_0": f"url.{self.folder}/.insteadOf", "VALUE_0": "https://github.com/", "COUNT": "1"}
        for name, value in there.items():
            patch.setenv(f"GIT_CONFIG_{name}", value)
        patch.setattr(load, "PINS", self.pins)
        patch.setattr(derive, "PINS", self.pins)


def lay_upstream(folder: Path) -> Upstream:
    """Make the repositories: LLVM has moved twice, and Triton with it once."""
    llvm = folder / "llvm" / "llvm-project"
    trees.llvm(llvm, 23, 0, 0, "git")
    llvms = {"first": _commit(llvm, "first")}
    for name in ("second", "third"):
        trees.lay(llvm, {"llvm/lib/Passes.cpp": name, "llvm/lib/Target/X86/X86.cpp": ""})
        llvms[name] = _commit(llvm, name)
    triton = folder / "triton-lang" / "triton"
    common = {**trees.what_the_layer_imports(), "python/CMakeLists.txt": "target_link_libraries(x LLVMPasses)\n"}
    trees.triton(triton, common, llvm=llvms["first"])
    tritons = {"old": _commit(triton, "old", tag="v3.6.0")}
    trees.lay(triton, {"lib/fix.cpp": ""})
    tritons["fix"] = _commit(triton, "fix", branch="release/3.6.x")
    newer = "python/triton/__init__.py"
    text = (triton / newer).read_text().replace("3.6.0", "3.7.0")
    trees.lay(triton, {newer: text, "cmake/llvm-hash.txt": f"{llvms['second']}\n"})
    tritons["new"] = _commit(triton, "new", tag="v3.7.0")
    trees.lay(triton, {"CMakeLists.txt": trees.NANOBIND})
    tritons["nanobind"] = _commit(triton, "nanobind", branch="nanobind")
    shutil.copytree(CHECKOUT / "pins", folder / "pins")
    upstream = Upstream(folder=folder, triton=tritons, llvm=llvms)
    commit = f'commit = "{llvms["first"]}"'
    another = f'{commit.replace(llvms["first"], llvms["third"])}\nstands_for = "{llvms["first"]}"\nreason = "A test."'
    for name, pinned in (("ours", commit), ("standing", another)):
        text = OURS.format(triton=tritons["old"], llvm=pinned, digits="A" * 86)
        (upstream.pins / f"{name}.toml").write_text(text.replace('"ours"', f'"{name}"'))
    return upstream


def toolchain(digest: str = "a" * 64) -> Toolchain:
    """Tools that nobody runs: of them a plan needs the digest that goes into the key of LLVM."""
    nowhere = Path("/nowhere")
    return Toolchain(
        provider="path",
        emscripten=Tool(name="em++", version="5.0.3", digest=digest),
        binaryen=Tool(name="wasm-opt", version="126", digest=digest),
        node=nowhere,
        node_version="24",
        pyodide=nowhere,
        python_include=nowhere,
        python_include_digest="",
    )


def _commit(folder: Path, message: str, *, tag: str = "", branch: str = "") -> str:
    if not (folder / ".git").exists():
        _git(folder, "init", "--quiet", "--initial-branch=main")
    _git(folder, "add", "--all")
    _git(folder, "commit", "--quiet", "--message", message)
    if tag:
        _git(folder, "tag", "--annotate", "--message", tag, tag)
    if branch:
        _git(folder, "branch", branch)
    return _git(folder, "rev-parse", "HEAD")


def _git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=x", "-c", "user.email=x@example.com")
    done = subprocess.run(["git", "-C", folder, *who, *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()
