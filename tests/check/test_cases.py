from pathlib import Path

import pytest

from release.check.cases import load_cases
from release.check.model import Case
from release.errors import WrongUsage

GOOD = '[[case]]\nname = "one"\nprogram = "one.py"\nlimit_seconds = 10\n\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "one.py").write_text("")
    return tmp_path


def test_cases_come_in_the_order_of_the_file(folder: Path) -> None:
    (folder / "cases.toml").write_text(GOOD.replace('"one"', '"two"') + GOOD.replace("10", "0.5"))
    assert load_cases(folder) == (
        Case(name="two", program=folder / "one.py", limit_seconds=10),
        Case(name="one", program=folder / "one.py", limit_seconds=0.5),
    )


@pytest.mark.parametrize(
    ("text", "line", "what", "remedy"),
    [
        (GOOD + GOOD.replace("limit_seconds", "limit_second"), 9, "unknown key", "Write 'limit_seconds'"),
        (GOOD + GOOD.replace('program = "one.py"\n', ""), 6, "missing", "Add 'program'"),
        (GOOD + GOOD, 7, "there is a case 'one' above", "another name"),
        (GOOD.replace("one.py", "on.py"), 3, "there is no file 'on.py' in ", "Write that program"),
        (GOOD.replace("one.py", "../one.py"), 3, "'../one.py' is not of the form", "docs/check.md"),
        (GOOD.replace('"one"', '"a/b"'), 2, "'a/b' is not of the form", "docs/check.md"),
        (GOOD.replace("10", "0"), 4, "greater than 0, found 0", "docs/check.md"),
        (GOOD.replace("10", "inf"), 4, "finite number", "docs/check.md"),
        ("case = []\n", 1, "at least 1 item", "docs/check.md"),
        ("", 1, "missing", "Add 'case'"),
    ],
)
def test_a_mistake_is_refused_with_its_line(folder: Path, text: str, line: int, what: str, remedy: str) -> None:
    (folder / "cases.toml").write_text(text)
    with pytest.raises(WrongUsage) as refusal:
        load_cases(folder)
    assert str(refusal.value).startswith(f"{folder / 'cases.toml'}:{line}: ")
    assert what in str(refusal.value)
    assert remedy in refusal.value.remedy


def test_a_folder_without_a_list_is_wrong_usage(tmp_path: Path) -> None:
    with pytest.raises(WrongUsage, match=r"Cannot read .*cases\.toml"):
        load_cases(tmp_path)
