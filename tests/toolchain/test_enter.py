"""A script that a bare ``python3`` starts goes on in the locked environment, as if it had been started there."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.command import copy_of_checkout, edit
from tests.toolchain.stand_ins import write_tool

BARE = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}"
SCRIPT = '''\
#!/usr/bin/env python3
"""Says what it was started as."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from scripts import bootstrap

print("begins", flush=True)
bootstrap.enter(__file__)

import json
import os

said = {"prefix": sys.prefix, "arguments": sys.argv[1:], "cwd": os.getcwd(), "environment": dict(os.environ)}
print(json.dumps({**said, "stdin": sys.stdin.read()}), flush=True)
sys.exit(int(sys.argv[1]) if sys.argv[1:] else 0)
'''
DOORS = sorted(
    path.name
    for path in (Path(__file__).parents[2] / "scripts").glob("*.py")
    if "bootstrap.enter(__file__)" in path.read_text()
)


@dataclass(frozen=True, kw_only=True)
class Place:
    """A checkout in a folder with a space in its name, and a uv that makes environments without any network.

    ``syncs`` has a line for each time that uv was asked for one.
    """

    checkout: Path
    tools: Path
    cache: Path

    @property
    def environment(self) -> Path:
        return self.checkout / ".venv"

    @property
    def syncs(self) -> list[str]:
        log = self.tools / "log"
        return log.read_text().splitlines() if log.exists() else []

    def start(
        self,
        *arguments: str,
        script: str = "scripts/says.py",
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        python: Path | None = BARE,
        stdin: str = "",
    ) -> subprocess.CompletedProcess[str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL"))}
        path = f"{self.tools}:{BARE.parent}:/usr/bin:/bin"
        return subprocess.run(
            [*([python] if python else []), self.checkout / script, *arguments],
            cwd=cwd or self.checkout,
            env={**inherited, "PATH": path, "TRITON_WASM_CACHE": str(self.cache), **(env or {})},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
        )

    def said(self, done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
        """Read what the script said at its end."""
        assert done.stdout, done.stderr
        found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return found


def make_place(folder: Path) -> Place:
    checkout = copy_of_checkout(folder / "a checkout")
    script = checkout / "scripts" / "says.py"
    script.write_text(SCRIPT)
    script.chmod(0o755)
    tools = folder / "tools"
    packages = next(path for path in sys.path if path.endswith("site-packages"))
    write_tool(
        tools / "uv",
        'if [ "$1" = --version ]; then',
        f'  echo "uv $(sed -n "s/^required-version = .==\\(.*\\).$/\\1/p" "{checkout}/pyproject.toml") (a stand-in)"',
        'elif [ "$1 $2" = "python find" ]; then',
        f'  echo "{BARE}"',
        "else",
        f'  echo "$*" >> "{tools}/log"',
        f'  "{BARE}" -m venv --without-pip "$UV_PROJECT_ENVIRONMENT"',
        f'  echo "{packages}" > "$(echo "$UV_PROJECT_ENVIRONMENT"/lib/python*/site-packages)/locked.pth"',
        "fi",
    )
    return Place(checkout=checkout, tools=tools, cache=folder / "a cache")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return make_place(tmp_path)


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A place whose environment is there; do not change it."""
    place = make_place(tmp_path_factory.mktemp("ready"))
    assert place.start().returncode == 0
    return place


def test_a_script_goes_on_in_the_environment_which_is_made_once(place: Place) -> None:
    first = place.start()
    assert first.returncode == 0, first.stderr
    # Twice, for it was started twice: bare, and in the environment.
    assert [line for line in first.stdout.splitlines() if line == "begins"] == ["begins", "begins"]
    assert place.said(first)["prefix"] == str(place.environment)
    assert f"synchronise {place.environment}" in first.stderr
    assert len(place.syncs) == 1 and "--locked" in place.syncs[0] and "--no-dev" in place.syncs[0]
    again = place.start()
    assert (again.returncode, again.stderr) == (0, "")
    assert place.said(again)["prefix"] == str(place.environment)
    assert len(place.syncs) == 1


def test_arguments_input_folder_and_environment_are_kept(ready: Place, tmp_path: Path) -> None:
    elsewhere = tmp_path / "else where"
    elsewhere.mkdir()
    arguments = ["0", "", "two words", "--flag=$HOME", "*", "'quoted\"", "größer", "--"]
    env = {"PLAN": '{"a": "b c"}\nd', "EMPTY": "", "GITHUB_ACTIONS": "true"}
    done = ready.start(*arguments, cwd=elsewhere, env=env, stdin="what is read\n")
    said = ready.said(done)
    assert said["arguments"] == arguments
    assert (said["cwd"], said["stdin"]) == (str(elsewhere), "what is read\n")
    assert env.items() <= said["environment"].items()
    assert said["environment"]["TRITON_WASM_CACHE"] == str(ready.cache)


@pytest.mark.parametrize("code", [0, 1, 2, 4, 130])
def test_the_exit_code_is_the_scripts(ready: Place, code: int) -> None:
    assert ready.start(str(code)).returncode == code


def test_inside_of_the_environment_nothing_happens(ready: Place) -> None:
    done = ready.start(python=ready.environment / "bin" / "python", env={"PATH": "/nowhere"})
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("begins") == 1
    said = ready.said(done)
    # Nothing is added either: the cache is where it was.
    assert said["environment"]["TRITON_WASM_CACHE"] == str(ready.cache)
    assert "PYTHONPYCACHEPREFIX" not in said["environment"]
    assert len(ready.syncs) == 1


def test_an_environment_with_more_in_it_will_do(place: Place) -> None:
    place.start()
    stamp = place.environment / ".bootstrap"
    stamp.write_text(f"{stamp.read_text()} tests")
    assert place.start(python=place.environment / "bin" / "python").stdout.count("begins") == 1
    assert place.start().stdout.count("begins") == 2
    assert len(place.syncs) == 1


@pytest.mark.parametrize("file", ["uv.lock", "pyproject.toml"])
def test_an_environment_of_another_lock_file_is_brought_up_to_date(place: Place, file: str) -> None:
    place.start()
    path = place.checkout / file
    path.write_text(f"{path.read_text()}\n# something else\n")
    # Started by its own Python it is no locked environment any more, and so it is entered again.
    done = place.start(python=place.environment / "bin" / "python")
    assert (done.returncode, done.stdout.count("begins")) == (0, 2)
    assert len(place.syncs) == 2
    assert place.start().stderr == ""


def test_an_environment_that_is_not_ours_is_left_for_ours(ready: Place, tmp_path: Path) -> None:
    other = tmp_path / "other"
    subprocess.run([BARE, "-m", "venv", "--without-pip", other], check=True)
    done = ready.start(python=other / "bin" / "python")
    assert ready.said(done)["prefix"] == str(ready.environment)
    (other / ".bootstrap").write_text("something else")
    done = ready.start(python=other / "bin" / "python")
    assert ready.said(done)["prefix"] == str(ready.environment)
    assert len(ready.syncs) == 1


def test_a_script_is_found_by_a_relative_name_a_link_and_its_first_line(ready: Place, tmp_path: Path) -> None:
    link = tmp_path / "a link"
    link.symlink_to(ready.checkout)
    for command in ([str(BARE), "./a link/scripts/says.py", "5"], [str(ready.checkout / "scripts" / "says.py"), "5"]):
        done = subprocess.run(command, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True)
        assert done.returncode == 5, done.stderr
        assert json.loads(done.stdout.splitlines()[-1])["prefix"] == str(ready.environment)
    assert len(ready.syncs) == 1


def test_a_machine_that_cannot_is_one_sentence_before_anything_runs(place: Place) -> None:
    edit(place.checkout / "pyproject.toml", 'required-version = "==', 'required-version = "==9.')
    write_tool(place.tools / "uv", "echo uv 0.0.1")
    done = place.start("0")
    assert (done.returncode, done.stdout) == (3, "begins\n")
    assert "which pyproject.toml asks for" in done.stderr and "Traceback" not in done.stderr


def test_a_uv_that_fails_leaves_no_environment_that_looks_whole(place: Place) -> None:
    uv = place.tools / "uv"
    text = uv.read_text()
    uv.write_text(text.replace("else\n", "else\n  echo 'error: no such package' >&2; exit 2\n"))
    done = place.start("0")
    assert done.returncode == 3
    assert "bootstrap: Cannot install uv.lock: " in done.stderr and "no such package" in done.stderr
    assert not (place.environment / ".bootstrap").exists()
    uv.write_text(text)
    assert place.start("0").returncode == 0


@pytest.mark.parametrize("door", DOORS)
def test_every_door_of_the_workflows_opens_for_a_bare_python(ready: Place, door: str, tmp_path: Path) -> None:
    """Each is asked for nothing that it can do, and says so in the end, from the environment."""
    env = {"PLAN": "no plan", "PINS": "no-such-pins", "GITHUB_REPOSITORY": "", "GITHUB_ACTIONS": "false"}
    done = ready.start(script=f"scripts/{door}", cwd=tmp_path, env=env)
    assert done.returncode == 2, done.stderr
    assert done.stderr.splitlines()[-2].startswith(f"{Path(door).stem}: ")
    assert "Traceback" not in done.stderr


def test_there_are_doors() -> None:
    assert {"plan.py", "llvm.py", "module.py", "check.py", "sign.py", "publish.py", "verify.py"} <= set(DOORS)
