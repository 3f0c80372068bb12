"""What a run does is decided once: from what was asked for and where, to names, keys, stages and a publication."""

from dataclasses import replace
from pathlib import Path

import pytest

from release import toolchain as tools
from release.actions import FAILURES
from release.errors import BrokenEnvironment, WrongUsage
from release.pins.impact.compare import LLVM_MINUTES, MODULE_MINUTES
from release.pins.load import available
from release.plan import Asked, Plan, make_plan
from release.plan.make import SAMPLE
from release.progress import Progress
from tests.pins import trees
from tests.plan import Upstream, lay_upstream, toolchain
from tests.toolchain.stand_ins import CLOSED

MAIN = Asked(ref="refs/heads/main", commit="c" * 40, repository="owner/name")
TAGGED = replace(MAIN, pins=SAMPLE, ref="refs/tags/v1.2.0")
VARIABLES = (
    *("PINS", "PROFILE", "TRITON", "LLVM", "PYODIDE", "DRY_RUN", "RUNNER"),
    *("GITHUB_REF", "GITHUB_SHA", "GITHUB_REPOSITORY", "GITHUB_RUN_ID", "GITHUB_RUN_ATTEMPT"),
)


@pytest.fixture(autouse=True)
def _nothing_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of a step, and nobody who answers outside."""
    for name in (*VARIABLES, "TRITON_ROOT", "LLVM_ROOT", "NEW_TRITON_ROOT", "TRITON_WASM_LLVM_TOOLS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", f"url.{CLOSED}/.insteadOf")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "https://github.com/")
    monkeypatch.setenv("npm_config_registry", CLOSED)


@pytest.fixture(scope="module")
def repositories(tmp_path_factory: pytest.TempPathFactory) -> Upstream:
    return lay_upstream(tmp_path_factory.mktemp("upstream"))


@pytest.fixture(scope="module")
def fetched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def upstream(repositories: Upstream, monkeypatch: pytest.MonkeyPatch) -> Upstream:
    """Small repositories and a toolchain that was proved before."""
    repositories.take(monkeypatch)
    monkeypatch.setattr(tools, "prepare", lambda *_, **__: toolchain())
    return repositories


def plan(asked: Asked, cache: Path) -> Plan:
    return make_plan(asked, cache=cache, progress=Progress(quiet=True))


def asked_for(monkeypatch: pytest.MonkeyPatch, **variables: str) -> Asked:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return Asked.of_environment()


# What runs.


def test_the_sample_needs_no_llvm_no_sources_and_no_network(tmp_path: Path) -> None:
    made = plan(replace(MAIN, pins=SAMPLE), tmp_path / "cache")
    assert (made.product, made.stages, made.llvm, made.handovers.llvm) == (
        *("sample", ("module", "check", "publish")),
        *(None, None),
    )
    assert (made.pins.name, made.minutes, made.proposal) == ("preview", 1, None)
    assert not (tmp_path / "cache").exists()


def test_triton_needs_llvm_first(upstream: Upstream, fetched: Path) -> None:
    made = plan(replace(MAIN, pins="ours"), fetched)
    assert (made.product, made.stages) == ("triton", ("llvm", "module", "check", "publish"))
    assert made.llvm is not None and made.handovers.llvm is not None
    assert made.minutes == LLVM_MINUTES + MODULE_MINUTES
    # Where one job leaves the libraries is where the next one looks for them.
    assert made.handovers.llvm.path == made.llvm.kept.path
    assert 0 < made.llvm.stop_after < 350


def test_without_sources_there_is_no_plan_of_triton(tmp_path: Path) -> None:
    with pytest.raises(BrokenEnvironment, match="cannot be fetched from https://github"):
        plan(MAIN, tmp_path)


def test_it_is_checked_in_node_in_a_worker_and_on_the_main_thread(tmp_path: Path) -> None:
    made = plan(replace(MAIN, pins=SAMPLE), tmp_path)
    assert made.checks == ("node", "chromium-worker", "chromium-main")
    for where in made.checks:
        assert made.check(where) == where
    with pytest.raises(WrongUsage, match="No check in 'firefox' is planned") as no:
        made.check("firefox")
    assert "node, chromium-worker, chromium-main" in no.value.remedy


def test_it_runs_where_it_was_asked_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert plan(asked_for(monkeypatch, PINS=SAMPLE), tmp_path).runner == "ubuntu-24.04"
    assert plan(asked_for(monkeypatch, PINS=SAMPLE, RUNNER="big"), tmp_path).runner == "big"
    assert plan(asked_for(monkeypatch, PINS=SAMPLE, RUNNER=""), tmp_path).runner == "ubuntu-24.04"


def test_what_jobs_leave_for_one_another_has_names_and_places_of_its_own(upstream: Upstream, fetched: Path) -> None:
    made = plan(replace(MAIN, pins="ours"), fetched)
    handovers = [getattr(made.handovers, name) for name in type(made.handovers).model_fields]
    names = [handover.name for handover in handovers]
    assert len(set(names)) == len(names) == 5
    assert len({handover.path for handover in handovers}) == 5
    # `tests-*` and `failure-*` are patterns: no other artifact may answer to them.
    assert [name for name in names if name.startswith(made.handovers.tests.name)] == [made.handovers.tests.name]
    assert not [name for name in names if name.startswith(FAILURES)]
    below = [Path(handover.path) for handover in handovers if handover is not made.handovers.llvm]
    assert not any(path.is_absolute() or ".." in path.parts for path in below)


# The pin set and the profile.


def test_the_profile_is_the_first_of_the_pin_set_unless_asked_for(upstream: Upstream, fetched: Path) -> None:
    assert plan(replace(MAIN, pins=SAMPLE), fetched).profile.name == "release"
    assert plan(replace(MAIN, pins="ours"), fetched).profile.name == "seed"
    assert plan(replace(MAIN, pins="ours", profile="release"), fetched).profile.name == "release"


def test_an_unknown_profile_or_pin_set_is_named_with_the_choices(tmp_path: Path) -> None:
    with pytest.raises(WrongUsage, match="Pin set preview has no profile 'fast'") as no:
        plan(replace(MAIN, pins=SAMPLE, profile="fast"), tmp_path)
    assert "release, seed" in no.value.remedy
    with pytest.raises(WrongUsage, match="There is no pin set 'tritn'") as no:
        plan(replace(MAIN, pins="tritn"), tmp_path)
    for name in available():
        assert name in no.value.remedy


@pytest.mark.parametrize(
    ("pins", "ref", "name"),
    [
        ("", "refs/heads/main", "preview"),
        ("", "refs/tags/v1.2.0", "preview"),
        ("", "refs/tags/v1.2.0+ours", "ours"),
        ("", "refs/tags/v1.2.0+", "preview"),
        ("", "refs/heads/v1.2.0+ours", "preview"),
        ("ours", "refs/tags/v1.2.0+preview", "ours"),
    ],
)
def test_a_tag_names_its_pin_set_behind_a_plus(
    upstream: Upstream, fetched: Path, pins: str, ref: str, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    roots = trees.preview(tmp_path)
    trees.lay(Path(roots["TRITON_ROOT"]), {"python/CMakeLists.txt": "target_link_libraries(x LLVMPasses)\n"})
    if name == "preview":
        for variable, root in roots.items():
            monkeypatch.setenv(variable, root)
    made = plan(replace(MAIN, pins=pins, ref=ref), fetched)
    assert (made.product, made.pins.name) == ("triton", name)


def test_a_tag_of_the_sample_and_one_of_no_pin_set(tmp_path: Path) -> None:
    assert plan(replace(TAGGED, pins="", ref="refs/tags/v0.1.0+sample"), tmp_path).product == "sample"
    with pytest.raises(WrongUsage, match="There is no pin set 'nightly'") as no:
        plan(replace(TAGGED, pins="", ref="refs/tags/v0.1.0+nightly"), tmp_path)
    assert "preview" in no.value.remedy


# The publication.


@pytest.mark.parametrize(
    ("asked", "ref", "dry_run"),
    [
        ("", "refs/heads/main", True),
        ("", "refs/tags/v1.2.0", False),
        ("", "refs/pull/3/merge", True),
        ("true", "refs/heads/main", True),
        ("true", "refs/tags/v1.2.0", True),
        ("false", "refs/tags/v1.2.0", False),
    ],
)
def test_only_a_tag_is_published_and_only_where_it_is_no_dry_run(
    asked: str, ref: str, dry_run: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = asked_for(
        monkeypatch, PINS=SAMPLE, DRY_RUN=asked, GITHUB_REF=ref, GITHUB_SHA="d" * 40, GITHUB_REPOSITORY="me/mine"
    )
    where = plan(given, tmp_path).publication
    assert (where.dry_run, where.environment) == (dry_run, "dry-run" if dry_run else "release")
    assert (where.ref, where.commit, where.repository) == (ref, "d" * 40, "me/mine")


@pytest.mark.parametrize("ref", ["refs/heads/main", "refs/heads/v1.2.0", "refs/pull/3/merge"])
def test_what_is_no_tag_is_not_published(ref: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(WrongUsage, match=f"^A release is published of a tag, and {ref} is none.$") as no:
        plan(asked_for(monkeypatch, PINS=SAMPLE, DRY_RUN="false", GITHUB_REF=ref), tmp_path)
    assert "Push a tag" in no.value.remedy


@pytest.mark.parametrize("text", ["no", "True", "FALSE", "0", " ", "true\n"])
def test_a_dry_run_is_true_or_false_or_not_said(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(WrongUsage, match=r"^DRY_RUN is ") as no:
        asked_for(monkeypatch, DRY_RUN=text)
    assert repr(text) in str(no.value) and "true or false" in no.value.remedy


@pytest.mark.parametrize(
    ("ref", "tag"),
    [
        ("refs/tags/v1.2.0", "v1.2.0"),
        ("refs/tags/v1.2.0+sample", "v1.2.0+sample"),
        ("refs/heads/main", "v0.0.0-main"),
        ("refs/heads/pins/ours b", "v0.0.0-pins-ours-b"),
    ],
)
def test_a_release_is_called_as_its_tag_and_a_rehearsal_as_its_branch(ref: str, tag: str, tmp_path: Path) -> None:
    assert plan(replace(MAIN, pins=SAMPLE, ref=ref), tmp_path).publication.tag == tag


def test_on_a_laptop_nothing_has_to_be_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = plan(asked_for(monkeypatch, PINS=SAMPLE), tmp_path).publication
    assert (where.dry_run, where.tag, where.repository) == (True, "v0.0.0-main", "owner/name")


# The keys of what is kept.


def key(made: Plan) -> str:
    assert made.llvm is not None
    return made.llvm.key


def test_the_same_again_has_the_same_key_wherever_it_is_made(upstream: Upstream, fetched: Path, tmp_path: Path) -> None:
    first, again, elsewhere = (plan(replace(MAIN, pins="ours"), cache) for cache in (fetched, fetched, tmp_path))
    assert first == again
    assert key(first) == key(elsewhere) and len(key(first)) == 64
    # A tag, another commit of ours or a check more build no other LLVM.
    other = replace(MAIN, pins="ours", ref="refs/tags/v1", commit="e" * 40, runner="big")
    assert plan(other, fetched).llvm == first.llvm


def test_another_llvm_another_fixup_and_another_compiler_have_other_keys(
    upstream: Upstream, fetched: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = replace(MAIN, pins="ours")
    keys = {"ours": key(plan(ours, fetched))}
    keys["another LLVM"] = key(plan(replace(ours, triton="v3.7.0"), fetched))
    keys["one that stands for it"] = key(plan(replace(ours, pins="standing"), fetched))
    monkeypatch.setattr(tools, "prepare", lambda *_, **__: toolchain("b" * 64))
    keys["another compiler"] = key(plan(ours, fetched))
    assert len(set(keys.values())) == len(keys), keys
    monkeypatch.setattr(tools, "prepare", lambda *_, **__: toolchain())
    # The profile of the module has no part in LLVM, where both link the same libraries.
    assert key(plan(replace(ours, profile="release"), fetched)) == keys["ours"]
    assert key(plan(replace(ours, triton=upstream.triton["fix"]), fetched)) == keys["ours"]


def test_another_profile_of_llvm_has_another_key(
    upstream: Upstream, fetched: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = plan(replace(MAIN, pins="ours"), fetched)
    full = upstream.pins / "llvm" / "full-lto.toml"
    other = full.with_name("other.toml")
    seed = upstream.pins / "profiles" / "seed.toml"
    text = seed.read_text()
    try:
        other.write_text(full.read_text().replace('"full-lto"', '"other"').replace('"-O3"', '"-O1"'))
        seed.write_text(text.replace('llvm = "full-lto"', 'llvm = "other"'))
        after = plan(replace(MAIN, pins="ours"), fetched)
    finally:
        seed.write_text(text)
        other.unlink()
    assert key(after) != key(before)
    assert before.llvm and after.llvm and after.llvm.compiler.prefix == "llvm-objects-other-5.0.3-"


def test_what_is_kept_is_found_again_by_its_key_alone(
    upstream: Upstream, fetched: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_RUN_ID", "77")
    monkeypatch.setenv("GITHUB_RUN_ATTEMPT", "2")
    first = plan(replace(MAIN, pins="ours"), fetched).llvm
    monkeypatch.setenv("GITHUB_RUN_ATTEMPT", "3")
    again = plan(replace(MAIN, pins="ours"), fetched).llvm
    other = plan(replace(MAIN, pins="standing"), fetched).llvm
    assert first and again and other
    assert first.kept.key == again.kept.key == f"llvm-{first.key}"
    # A compiler's cache is saved anew by each attempt, and any of before will do.
    assert (first.compiler.key, again.compiler.key) == (
        f"llvm-objects-full-lto-5.0.3-{first.key[:12]}-77-2",
        f"llvm-objects-full-lto-5.0.3-{first.key[:12]}-77-3",
    )
    assert other.compiler.key.startswith(first.compiler.prefix) and first.compiler.key.startswith(first.compiler.prefix)
    for cached in (first.kept, first.compiler):
        assert len(cached.key) <= 512 and "," not in cached.key  # what GitHub takes
    assert not first.kept.key.startswith(first.compiler.prefix)


def test_a_folder_below_home_is_named_as_on_every_machine(
    upstream: Upstream, fetched: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = plan(replace(MAIN, pins="ours"), fetched).llvm
    monkeypatch.setenv("HOME", str(fetched))
    home = plan(replace(MAIN, pins="ours"), fetched).llvm
    assert plain and home
    assert plain.kept.path.startswith(f"{fetched}/llvm/") and plain.compiler.path == f"{fetched}/ccache"
    assert home.kept.path == "~" + plain.kept.path.removeprefix(str(fetched))
    assert home.compiler.path == "~/ccache"


# A trial of other sources.


def test_a_trial_is_planned_and_proposed_with_its_own_pins(upstream: Upstream, fetched: Path) -> None:
    made = plan(replace(MAIN, pins="ours", triton="v3.7.0"), fetched)
    assert made.proposal is not None
    assert made.pins.triton.commit == upstream.triton["new"]
    assert made.pins.llvm[0].commit == upstream.llvm["second"]
    assert made.stages == ("llvm", "module", "check", "publish")
    assert f"### What {made.proposal.title} would mean" in made.describe()


def test_a_trial_that_is_blocked_runs_nothing_and_fetches_no_llvm(upstream: Upstream, tmp_path: Path) -> None:
    made = plan(replace(MAIN, pins="ours", triton="nanobind"), tmp_path)
    assert made.proposal is not None and made.proposal.blocked
    assert (made.stages, made.llvm, made.handovers.llvm) == ((), None, None)
    assert not list((tmp_path / "sources").glob("llvm-*"))


def test_a_trial_of_another_llvm_than_tritons_is_planned(upstream: Upstream, fetched: Path) -> None:
    made = plan(replace(MAIN, pins="ours", llvm=upstream.llvm["third"]), fetched)
    assert made.pins.llvm[0].commit == upstream.llvm["third"]
    assert key(made) != key(plan(replace(MAIN, pins="ours"), fetched))


def test_a_trial_of_the_sample_needs_minutes(
    upstream: Upstream, fetched: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    roots = trees.preview(fetched / "trees")
    new = trees.preview(fetched / "new")
    trees.lay(Path(new["TRITON_ROOT"]), trees.what_the_layer_imports())
    monkeypatch.setenv("TRITON_ROOT", roots["TRITON_ROOT"])
    monkeypatch.setenv("NEW_TRITON_ROOT", new["TRITON_ROOT"])
    made = plan(replace(MAIN, pins=SAMPLE, triton="ab" * 20), fetched)
    assert (made.product, made.llvm, made.minutes) == ("sample", None, 1)
    assert made.proposal is not None and made.proposal.file == "pins/preview.toml"


# What goes from job to job.


def test_a_plan_fits_into_the_outputs_of_a_job(upstream: Upstream, fetched: Path) -> None:
    made = plan(replace(MAIN, pins="ours", triton="v3.7.0"), fetched)
    # GitHub takes 1 MB, in UTF-16, for all outputs of a job; one variable of Linux 128 KiB.
    assert len(made.model_dump_json().encode("utf-16")) < 100_000
    assert "\n" not in made.model_dump_json()
