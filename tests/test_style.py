"""What a reviewer need not look for."""

import re
import subprocess
import sys
import tomllib

import pytest

from release.places import CHECKOUT


@pytest.mark.parametrize(
    "command", [("ruff", "check", "--no-cache"), ("ruff", "format", "--check", "--no-cache"), ("mypy",)], ids=" ".join
)
def test_the_linters_are_content(command: tuple[str, ...]) -> None:
    cache = ["--cache-dir=/dev/null"] if command[0] == "mypy" else []
    done = subprocess.run([sys.executable, "-m", *command, *cache], cwd=CHECKOUT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_dependency_has_its_reason_and_every_reason_its_dependency() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    declared = {re.match(r"[\w-]+", entry)[0] for entry in project["dependencies"]}  # type: ignore[index]
    explained = re.findall(r"^\| ([\w-]+) \| ", (CHECKOUT / "docs" / "dependencies.md").read_text(), re.MULTILINE)
    assert set(explained) - {"package", "---"} == declared


def test_every_link_of_the_documentation_leads_somewhere() -> None:
    for page in (*CHECKOUT.glob("*.md"), *CHECKOUT.glob("docs/**/*.md"), *CHECKOUT.glob("samples/**/*.md")):
        for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_versions_are_written_in_the_pins_and_nowhere_else() -> None:
    pinned = re.compile(r"315\.0\.0-alpha|314\.0\.7|22\.1\.8|[0-9a-f]{40}")
    code = [*CHECKOUT.glob("release/**/*.py"), *CHECKOUT.glob("release/**/*.mjs"), *CHECKOUT.glob("scripts/*.py")]
    assert code
    for path in code:
        assert not pinned.search(path.read_text()), path
