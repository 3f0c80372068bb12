"""A pin set with other sources in it: what changes, what does not, and what is refused before anything is built."""

import difflib
import shutil
from pathlib import Path

import pytest

from release.errors import BrokenEnvironment, Finding, WrongUsage
from release.pins.impact.compare import LLVM_MINUTES, MODULE_MINUTES
from release.pins.load import load_pins
from release.plan.derive import Derived, derive
from release.progress import Progress
from tests.plan import Upstream, lay_upstream
from tests.toolchain.stand_ins import CLOSED
from tests.toolchain.test_versions import registry_on_loopback


@pytest.fixture(scope="module")
def repositories(tmp_path_factory: pytest.TempPathFactory) -> Upstream:
    return lay_upstream(tmp_path_factory.mktemp("upstream"))


@pytest.fixture(scope="module")
def fetched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def upstream(repositories: Upstream, monkeypatch: pytest.MonkeyPatch) -> Upstream:
    repositories.take(monkeypatch)
    return repositories


def derived(cache: Path, name: str = "ours", *, triton: str = "", llvm: str = "", pyodide: str = "") -> Derived:
    return derive(name, triton=triton, llvm=llvm, pyodide=pyodide, cache=cache, progress=Progress(quiet=True))


def changed(upstream: Upstream, text: str, name: str = "ours") -> list[str]:
    """Return the lines that are new in the file of a pin set, and those that are gone."""
    before = (upstream.pins / f"{name}.toml").read_text().splitlines()
    lines = list(difflib.unified_diff(before, text.splitlines(), n=0, lineterm=""))
    return [line for line in lines if not line.startswith(("---", "+++", "@@"))]


def test_a_tag_moves_triton_and_the_llvm_that_it_asks_for_and_nothing_else(upstream: Upstream, fetched: Path) -> None:
    old, new, before, after = *(upstream.triton[name] for name in ("old", "new")), *list(upstream.llvm.values())[:2]
    found = derived(fetched, triton="v3.7.0")
    assert changed(upstream, found.proposal.text) == [
        f'-commit = "{old}" # of a release',
        f'+commit = "{new}" # of a release',
        f'-commit = "{before}"',
        f'+commit = "{after}"',
    ]
    assert (found.pins.triton.commit, found.pins.llvm[0].commit) == (new, after)
    known = load_pins("ours")
    assert found.pins == known.model_copy(update={"triton": found.pins.triton, "llvm": found.pins.llvm})
    assert found.proposal.title == f"Pin set ours: Triton v3.7.0 {new[:12]}, LLVM {after[:12]}"
    assert found.proposal.branch == f"pins/ours-triton-v3.7.0-{new[:12]}-llvm-{after[:12]}"
    assert (found.proposal.file, found.proposal.blocked) == ("pins/ours.toml", "")
    assert "| Triton | 3.6.0 → 3.7.0 |" in found.proposal.impact


def test_a_branch_a_tag_and_a_commit_are_followed_to_the_same_pins(upstream: Upstream, fetched: Path) -> None:
    commit = upstream.triton["fix"]
    found = [derived(fetched, triton=ref) for ref in ("release/3.6.x", commit)]
    assert found[0].pins == found[1].pins and found[0].pins.triton.commit == commit
    assert found[0].proposal.title == f"Pin set ours: Triton release/3.6.x {commit[:12]}"
    assert found[0].proposal.branch == f"pins/ours-triton-release-3.6.x-{commit[:12]}"
    assert found[1].proposal.branch == f"pins/ours-triton-{commit[:12]}"


def test_what_is_built_anew_is_what_it_takes(upstream: Upstream, fetched: Path) -> None:
    same = derived(fetched, triton=upstream.triton["fix"])
    assert same.pins.llvm == load_pins("ours").llvm
    assert same.minutes == MODULE_MINUTES
    assert "reused" in same.proposal.impact


def test_another_llvm_is_built_and_not_reused(upstream: Upstream, fetched: Path) -> None:
    other = derived(fetched, triton="v3.7.0")
    assert other.minutes == MODULE_MINUTES + LLVM_MINUTES
    assert "reused" not in other.proposal.impact


def test_the_pinned_triton_again_changes_nothing(upstream: Upstream, fetched: Path) -> None:
    for asked in ("", "v3.6.0"):
        found = derived(fetched, triton=asked)
        assert found.pins == load_pins("ours")
        assert changed(upstream, found.proposal.text) == []
        assert found.proposal.title == "Pin set ours: as it is"


def test_an_llvm_that_was_asked_for_is_taken_in_place_of_tritons(upstream: Upstream, fetched: Path) -> None:
    third = upstream.llvm["third"]
    for triton in ("", "v3.7.0"):
        found = derived(fetched, triton=triton, llvm=third)
        assert [pin.commit for pin in found.pins.llvm] == [third]
        assert found.proposal.title.endswith(f"LLVM {third[:12]}")
    for triton, wanted in (("", "first"), ("v3.7.0", "second")):
        found = derived(fetched, triton=triton, llvm=third)
        assert found.pins.llvm[0].stands_for == upstream.llvm[wanted]
        assert (
            f"{third[:12]} in place of the {upstream.llvm[wanted][:12]} that Triton asks for" in found.proposal.impact
        )
        assert found.minutes == MODULE_MINUTES + LLVM_MINUTES


def test_the_llvm_that_is_built_already_can_be_asked_for(upstream: Upstream, fetched: Path) -> None:
    found = derived(fetched, "standing", llvm=upstream.llvm["third"])
    assert found.pins == load_pins("standing")
    assert (found.minutes, found.proposal.title) == (MODULE_MINUTES, "Pin set standing: as it is")


def test_what_stands_for_tritons_llvm_stays_until_triton_asks_for_another(upstream: Upstream, fetched: Path) -> None:
    same = derived(fetched, "standing", triton=upstream.triton["fix"])
    assert same.pins.llvm == load_pins("standing").llvm
    other = derived(fetched, "standing", triton="v3.7.0")
    (pin,) = other.pins.llvm
    assert (pin.commit, pin.stands_for, pin.reason) == (upstream.llvm["second"], None, None)
    assert "-reason = " in "".join(changed(upstream, other.proposal.text, "standing"))


def test_the_llvm_that_another_stands_for_can_be_asked_for(upstream: Upstream, fetched: Path) -> None:
    (pin,) = derived(fetched, "standing", llvm=upstream.llvm["first"]).pins.llvm
    assert (pin.commit, pin.stands_for) == (upstream.llvm["first"], None)


def test_another_pyodide_brings_its_python_its_abi_and_its_emscripten(
    upstream: Upstream, fetched: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with registry_on_loopback(monkeypatch) as registry:
        registry.lay("316.0.0")
        found = derived(fetched, pyodide="316.0.0")
    known = load_pins("ours")
    assert (found.pins.triton, found.pins.llvm) == (known.triton, known.llvm)
    assert (found.pins.pyodide.version, found.pins.pyodide.python, found.pins.pyodide.abi) == (
        *("316.0.0", "3.15.1"),
        "2027_1",
    )
    assert found.pins.pyodide.integrity != known.pyodide.integrity
    assert found.pins.emscripten.version == "7.0.1"
    assert found.proposal.title == "Pin set ours: Pyodide 316.0.0"
    assert len([line for line in changed(upstream, found.proposal.text) if line.startswith("+")]) == 5


@pytest.mark.parametrize("ref", ["no-such-branch", "v3", "refs/tags/v3.7.0", "deadbeef", "--upload-pack=x"])
def test_a_name_that_leads_nowhere_is_refused(upstream: Upstream, fetched: Path, ref: str) -> None:
    with pytest.raises(WrongUsage, match=r"is no folder, and no branch, tag or commit of https://") as no:
        derived(fetched, triton=ref)
    assert str(no.value).startswith(f"{ref} ") and "40 digits" in no.value.remedy


def test_a_commit_that_is_nowhere_is_a_finding(upstream: Upstream, fetched: Path) -> None:
    with pytest.raises(Finding, match=f"^https://github.com/triton-lang/triton has no {'ab' * 20}.$"):
        derived(fetched, triton="ab" * 20)


def test_a_folder_says_no_commit_and_cannot_be_pinned(upstream: Upstream, fetched: Path) -> None:
    folder = str(upstream.folder / "triton-lang" / "triton")
    with pytest.raises(WrongUsage, match="does not say which commit it is") as no:
        derived(fetched, triton=folder)
    assert "Name a branch, a tag or a commit" in no.value.remedy


@pytest.mark.parametrize("llvm", ["main", "abc123", "AB" * 20, "ab" * 20 + "\n", f"{'ab' * 20} "])
def test_an_llvm_is_asked_for_by_its_whole_commit(upstream: Upstream, fetched: Path, llvm: str) -> None:
    with pytest.raises(WrongUsage, match="is no commit of LLVM") as no:
        derived(fetched, llvm=llvm)
    assert "all of its 40 digits" in no.value.remedy


def test_a_pin_set_that_is_not_there_is_named_with_those_that_are(upstream: Upstream, fetched: Path) -> None:
    with pytest.raises(WrongUsage, match="no pin set 'theirs'") as no:
        derived(fetched, "theirs", triton="v3.7.0")
    assert "ours, preview, standing, triton-3.7" in no.value.remedy


def test_a_repository_that_cannot_be_reached_is_the_networks_fault(
    upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    derived(tmp_path)  # the pinned tree is there already
    monkeypatch.setenv("GIT_CONFIG_KEY_0", f"url.{CLOSED}/.insteadOf")
    with pytest.raises(BrokenEnvironment, match=r"cannot be asked for v3\.7\.0") as no:
        derived(tmp_path, triton="v3.7.0")
    assert "network" in no.value.remedy
    assert derived(tmp_path).pins == load_pins("ours")


def test_what_nobody_can_build_is_blocked_and_says_why(upstream: Upstream, fetched: Path) -> None:
    found = derived(fetched, triton="nanobind")
    assert found.proposal.blocked.startswith("Needs work before it is built. bindings: nanobind, ")
    assert found.pins.triton.commit == upstream.triton["nanobind"]


@pytest.fixture
def known_bad(upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A commit of LLVM that must not be built."""
    bad = Path(shutil.copytree(upstream.pins, tmp_path / "pins")) / "known-bad" / "llvm.toml"
    commit = upstream.llvm["second"]
    bad.write_text(f'schema_version = 1\n[[llvm]]\ncommit = "{commit}"\nreason = "It miscompiles."\n')
    monkeypatch.setattr("release.pins.load.PINS", bad.parents[1])
    return commit


def test_a_triton_that_asks_for_a_bad_llvm_is_blocked(known_bad: str, fetched: Path) -> None:
    blocked = derived(fetched, triton="v3.7.0").proposal.blocked
    assert blocked.startswith(f"Cannot be built. LLVM: {known_bad[:12]} is known to be bad: It miscompiles.")


def test_a_bad_llvm_that_was_asked_for_is_blocked_too(known_bad: str, fetched: Path) -> None:
    assert "It miscompiles." in derived(fetched, llvm=known_bad).proposal.blocked
