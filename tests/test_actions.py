"""A step of a job ends as its problem says, and says so where it runs: in a terminal, or to GitHub Actions."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from release import actions
from release.errors import WrongUsage
from release.places import CHECKOUT

FINDING = "raise Finding('Two of 3 are bad.', remedy='Look at them.')"
ENDS = [
    (FINDING, 1, "Two of 3 are bad.", "Look at them."),
    ("raise WrongUsage('X is no name.', remedy='Write a name.')", 2, "X is no name.", "Write a name."),
    ("raise BrokenEnvironment('No git.', remedy='Install it.')", 3, "No git.", "Install it."),
    ("raise Unfinished('Time is up.', remedy='Run it again.')", 4, "Time is up.", "Run it again."),
    (
        "raise OSError(28, 'No space left on device', '/a/file')",
        3,
        "No space left on device: /a/file.",
        "Look at the disk of the machine.",
    ),
    ("raise OSError('It is odd.')", 3, "It is odd.", "Look at the disk of the machine."),
]
CRASH = "raise LookupError('no such thing')"


@dataclass(frozen=True, kw_only=True)
class Job:
    """A folder that a step works in, and the files which GitHub gives it."""

    folder: Path

    @property
    def outputs(self) -> dict[str, str]:
        """Read the outputs as GitHub does: one line, or all lines up to one that the first names."""
        found: dict[str, str] = {}
        lines = iter((self.folder / "output").read_text().splitlines())
        for line in lines:
            name, heredoc, delimiter = line.partition("<<")
            if heredoc:
                value = []
                while (more := next(lines)) != delimiter:
                    value.append(more)
                found[name] = "\n".join(value)
            else:
                name, _, found[name] = line.partition("=")
        return found

    @property
    def summary(self) -> str:
        return (self.folder / "summary").read_text()

    def step(
        self, body: str, *, within: bool = True, together: bool = False, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a step whose main is ``body``; with ``together`` its streams are one log, as a job has it."""
        script = self.folder / "bake.py"
        lines = "".join(f"    {line}\n" for line in body.splitlines())
        script.write_text(
            "import os, signal, sys\nfrom release import actions\n"
            "from release.errors import BrokenEnvironment, Finding, Unfinished, WrongUsage\n\n"
            f"def main() -> None:\n{lines}\nactions.step(main)\n"
        )
        ours = ("GITHUB_", "PYTHON")
        outside = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
        if within:
            files = {"GITHUB_OUTPUT": self.folder / "output", "GITHUB_STEP_SUMMARY": self.folder / "summary"}
            for path in files.values():
                path.touch()
            outside |= {"GITHUB_ACTIONS": "true", **{name: str(path) for name, path in files.items()}}
        return subprocess.run(
            [sys.executable, script],
            cwd=self.folder,
            env={**outside, "PYTHONPATH": str(CHECKOUT), **(env or {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if together else subprocess.PIPE,
            text=True,
            timeout=60,
        )


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(folder=tmp_path)


@pytest.fixture
def outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GITHUB_ACTIONS", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def within(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Job:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    for name, file in (("GITHUB_OUTPUT", "output"), ("GITHUB_STEP_SUMMARY", "summary")):
        (tmp_path / file).touch()
        monkeypatch.setenv(name, str(tmp_path / file))
    return Job(folder=tmp_path)


@pytest.mark.parametrize(("body", "code", "sentence", "remedy"), ENDS)
def test_in_a_terminal_a_problem_is_two_lines_and_a_code(
    job: Job, body: str, code: int, sentence: str, remedy: str
) -> None:
    done = job.step(f"print('before')\n{body}", within=False)
    assert (done.returncode, done.stdout, done.stderr) == (code, "before\n", f"bake: {sentence}\n  {remedy}\n")
    assert [path.name for path in job.folder.iterdir()] == ["bake.py"]  # word is left for other jobs only


@pytest.mark.parametrize(("body", "code", "sentence", "remedy"), ENDS)
def test_in_a_job_it_is_annotated_summed_up_and_left_as_word(
    job: Job, body: str, code: int, sentence: str, remedy: str
) -> None:
    done = job.step(body)
    assert (done.returncode, done.stdout, done.stderr) == (code, f"::error title=bake::{sentence}%0A{remedy}\n", "")
    assert job.summary == f"**bake failed.** {sentence}\n\nNext: {remedy}\n"
    word = {"step": "bake", "message": sentence, "remedy": remedy, "exit_code": code}
    assert json.loads((job.folder / "failure" / "bake.json").read_text()) == word


@pytest.mark.parametrize("within", [False, True])
def test_a_step_that_goes_well_leaves_no_word(job: Job, within: bool) -> None:
    done = job.step("print('done')", within=within)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
    assert not list(job.folder.glob("failure*"))
    assert not within or (job.outputs, job.summary) == ({}, "")


@pytest.mark.parametrize("within", [False, True])
def test_a_crash_shows_where_and_is_told_from_a_finding(job: Job, within: bool) -> None:
    done = job.step(CRASH, within=within)
    said = done.stdout if within else done.stderr
    assert done.returncode == 3
    assert "The toolkit itself failed: LookupError: no such thing" in said and "Report it, with the log." in said
    assert "line 6, in main" in done.stderr and "Traceback" in done.stderr
    assert (job.folder / "failure").exists() is within


@pytest.mark.parametrize("within", [False, True])
def test_an_interrupt_is_no_failure_to_report(job: Job, within: bool) -> None:
    done = job.step("os.kill(os.getpid(), signal.SIGINT)", within=within)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "bake: interrupted\n")
    assert not list(job.folder.glob("failure*"))


def test_outputs_come_back_as_they_were_whatever_is_in_them(job: Job) -> None:
    values = {
        "plain": "a1b2",
        "empty": "",
        "lines": "one\ntwo\n\nfour",
        "equals": "a=b",
        "heredoc": "x<<EOF\ny\nEOF",
        "command": "::error::100 % no\n::stop-commands::x",
        "unicode": "größer ≥ 1",
    }
    done = job.step(f"for name, value in {values!r}.items(): actions.output(name, value)")
    assert (done.returncode, done.stdout) == (0, "")
    assert job.outputs == values


def test_an_output_that_was_set_before_the_failure_is_kept(job: Job) -> None:
    done = job.step(f"actions.output('compiled', 'true')\n{FINDING}")
    assert done.returncode == 1
    assert job.outputs == {"compiled": "true"}


def test_what_a_message_says_is_no_command_and_no_line_of_its_own(
    within: Job, capsys: pytest.CaptureFixture[str]
) -> None:
    actions.error("50% of it\r\n::set-output name=x::y", title="a: b, c%\nd")
    assert capsys.readouterr().out == "::error title=a%3A b%2C c%25%0Ad::50%25 of it%0D%0A::set-output name=x::y\n"


@pytest.mark.parametrize("kind", ["notice", "warning", "error"])
def test_each_annotation_has_its_level(within: Job, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    getattr(actions, kind)("What there is.", title="there")
    assert capsys.readouterr() == (f"::{kind} title=there::What there is.\n", "")


@pytest.mark.usefixtures("outside")
def test_in_a_terminal_there_is_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    assert not actions.within()
    with actions.group("Tools"):
        print("inside")
    actions.output("key", "a1b2")
    actions.summary("### Done")
    actions.mask("a secret")
    assert capsys.readouterr() == ("Tools\ninside\nkey=a1b2\n### Done\n", "")
    actions.warning("Odd.", title="bake")
    assert capsys.readouterr() == ("", "bake: Odd.\n")


def test_a_group_ends_whatever_happens_in_it(within: Job, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(WrongUsage), actions.group("100 % tools"):
        print("inside")
        raise WrongUsage("No.", remedy="None.")
    assert capsys.readouterr().out == "::group::100 %25 tools\ninside\n::endgroup::\n"


def test_the_title_of_a_group_is_in_the_log_before_what_is_in_it(job: Job) -> None:
    body = "with actions.group('Tools'):\n    print('inside', file=sys.stderr)\nprint('after', file=sys.stderr)"
    assert job.step(body, together=True).stdout.splitlines() == ["::group::Tools", "inside", "::endgroup::", "after"]


def test_an_annotation_is_in_the_log_where_it_was_made(job: Job) -> None:
    body = "actions.warning('Odd.', title='x')\nprint('after', file=sys.stderr)"
    assert job.step(body, together=True).stdout.splitlines() == ["::warning title=x::Odd.", "after"]


def test_a_secret_is_masked_with_all_its_lines_and_nothing_is_for_none(
    within: Job, capsys: pytest.CaptureFixture[str]
) -> None:
    actions.mask("")
    assert capsys.readouterr().out == ""
    actions.mask("50%\nmore")
    assert capsys.readouterr().out == "::add-mask::50%25%0Amore\n"


def test_a_secret_is_masked_before_anything_else_can_be_printed(job: Job) -> None:
    said = job.step("actions.mask('hush')\nprint('hush', file=sys.stderr)", together=True).stdout
    assert said.splitlines()[0] == "::add-mask::hush"


def test_summaries_are_added_and_each_begins_on_a_line_of_its_own(within: Job) -> None:
    actions.summary("### One")
    actions.summary("### Two")
    assert within.summary == "### One\n### Two\n"


def test_a_summary_that_is_too_long_is_cut_at_a_line_and_says_so(within: Job) -> None:
    actions.summary("\n".join(["ä" * 50] * 20_000))
    assert len(within.summary.encode()) < 1 << 20
    *lines, blank, last = within.summary.rstrip("\n").split("\n")
    assert (set(lines), blank, last) == ({"ä" * 50}, "", "Cut here: it is longer than a summary may be.")
    assert len(lines) > 9_000


def test_a_setting_is_read_or_has_its_default_or_is_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHERE", "node")
    monkeypatch.setenv("EMPTY", "")
    monkeypatch.delenv("NOWHERE", raising=False)
    assert actions.setting("WHERE") == actions.setting("WHERE", "browser") == "node"
    assert actions.setting("EMPTY", "browser") == actions.setting("NOWHERE", "browser") == "browser"
    assert actions.setting("NOWHERE", "") == ""
    for name in ("NOWHERE", "EMPTY"):
        with pytest.raises(WrongUsage, match=f"^{name} is not set.$") as refusal:
            actions.setting(name)
        assert f"env: {name}" in refusal.value.remedy


@pytest.mark.parametrize("where", ["GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT"])
def test_a_full_disk_does_not_hide_what_failed(job: Job, where: str) -> None:
    done = job.step("raise WrongUsage('X is no name.', remedy='Write a name.')", env={where: "/dev/full"})
    assert "::error title=bake::X is no name." in done.stdout
    assert (done.returncode, "Traceback" in done.stderr) == (2, False), done.stderr


def test_word_is_left_once_for_a_step_that_is_run_again(job: Job) -> None:
    job.step(FINDING)
    job.step("raise WrongUsage('X is no name.', remedy='Write a name.')")
    (word,) = (job.folder / "failure").iterdir()
    assert json.loads(word.read_text())["message"] == "X is no name."


@pytest.mark.parametrize("value", ["", "false", "TRUE", "1"])
def test_only_what_github_says_is_github(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", value)
    assert not actions.within()
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    assert actions.within()
