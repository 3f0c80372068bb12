"""The caller of docs/workflows.md: it calls what there is with what that asks for, and signs as our release does."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from release.places import CHECKOUT
from tests.workflows import lint
from tests.workflows.policy import judge
from tests.workflows.test_lint import copy_to

PAGE = CHECKOUT / "docs" / "workflows.md"
CALLER = ".github/workflows/caller.yml"


def example() -> str:
    (text,) = re.findall(r"^```yaml\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return str(text)


def at_home(text: str) -> str:
    """Have the example call the workflows of this checkout, whose inputs linters can then look up."""
    return re.sub(r"uses: OWNER/NAME/(\S+)@COMMIT", r"uses: ./\1", text)


def lay(folder: Path, text: str) -> Path:
    checkout = copy_to(folder)
    (checkout / CALLER).write_text(at_home(text))
    return checkout


def wrong_calls(checkout: Path) -> list[str]:
    return [finding.message for finding in judge(checkout) if finding.file == CALLER and finding.rule == "call"]


def test_the_example_is_a_workflow_that_linters_find_nothing_in(tmp_path: Path) -> None:
    checkout = lay(tmp_path, example())
    found = [*lint.actionlint(checkout), *lint.jactionlint(checkout), *lint.zizmor(checkout)]
    assert [finding for finding in found if finding.file == CALLER] == []
    assert wrong_calls(checkout) == []


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("      workflow: release.yml\n", "", "is not given its input workflow"),
        ("released-by:", "released-from:", "has no input released-from"),
        ("/check.yml@", "/checks.yml@", "is nothing that can be used"),
        ("needs: [plan, sign]", "needs: sign", "needs.plan is not among what it needs"),
    ],
)
def test_an_example_of_what_is_not_there_is_seen(tmp_path: Path, old: str, new: str, says: str) -> None:
    text = example()
    assert text.count(old) == 1
    assert any(says in message for message in wrong_calls(lay(tmp_path, text.replace(old, new))))


def jobs(text: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(text)["jobs"]
    return found


def test_it_signs_as_the_release_does(tmp_path: Path) -> None:
    theirs, ours = (
        jobs(text)["sign"] for text in (example(), (CHECKOUT / ".github/workflows/release.yml").read_text())
    )
    given = theirs["steps"][0]["with"]
    assert (given.pop("repository"), given.pop("ref")) == ("OWNER/NAME", "COMMIT")
    assert theirs == ours


def test_every_input_and_output_is_in_the_table() -> None:
    page = PAGE.read_text()
    for name in ("plan", "llvm", "module", "check", "publish"):
        workflow = yaml.safe_load((CHECKOUT / f".github/workflows/{name}.yml").read_text())
        called = workflow[True]["workflow_call"]
        inputs = ", ".join(
            f"**`{key}`**" if said.get("required") else f"`{key}`" for key, said in called["inputs"].items()
        )
        outputs = ", ".join(f"`{key}`" for key in called.get("outputs", {}))
        assert f"| `{name}.yml` | {inputs} | {outputs}{' ' if outputs else ''}|" in page, name
