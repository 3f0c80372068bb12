"""Checkouts that were given and checkouts that are fetched, with the real git and repositories on this disk."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from release.errors import BrokenEnvironment, Finding, WrongUsage
from release.progress import Progress
from release.toolchain.sources import Origin, Source, provide
from tests.toolchain.stand_ins import CLOSED, write_tool

ROOT = "LLVM_ROOT"
NOBODY = "0" * 39 + "1"


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def git(folder: Path, *arguments: str) -> str:
    identity = {f"GIT_{who}_{what}": "a@b.c" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    command = ["git", "-c", "init.defaultBranch=main", "-C", str(folder), *arguments]
    return subprocess.run(command, env={**os.environ, **identity}, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def upstream(tmp_path: Path) -> Path:
    """A repository of three commits; the middle one is tagged, with a message, and no branch ends there."""
    folder = tmp_path / "up stream"
    folder.mkdir()
    git(folder, "init", "--quiet")
    for number in range(3):
        (folder / "file").write_text(f"{number}\r\n")
        (folder / f"only-{number}").write_text("")
        git(folder, "add", "--all")
        git(folder, "commit", "--quiet", "--message", str(number))
        if number == 1:
            git(folder, "tag", "--annotate", "--message", "one", "llvmorg-1.2.3")
    return folder


@pytest.fixture
def middle(upstream: Path) -> str:
    return git(upstream, "rev-parse", "HEAD~1").strip()


@pytest.fixture
def take(tmp_path: Path, upstream: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Source]:
    """Provide a source, of a commit or a tag of the upstream, from ``root`` or by fetching."""

    def provided(
        commit: str | None = None,
        *,
        root: Path | None = None,
        tag: str | None = None,
        repository: str = upstream.as_uri(),
        allow_dirty: bool = False,
        any_commit: bool = False,
    ) -> Source:
        monkeypatch.delenv(ROOT, raising=False)
        if root:
            monkeypatch.setenv(ROOT, str(root))
        return provide(
            "llvm",
            Origin(repository=repository, commit=commit, tag=tag),
            variable=ROOT,
            cache=tmp_path / "a cache",
            progress=Progress(quiet=True),
            allow_dirty=allow_dirty,
            any_commit=any_commit,
        )

    return provided


@pytest.fixture
def killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Put a git first in PATH that dies of a kill after it has done the verb that is given."""
    real = shutil.which("git")

    def kill(verb: str) -> None:
        write_tool(
            tmp_path / "killed" / "git",
            f'"{real}" "$@" || exit',
            f'case " $* " in *" {verb} "*) kill -9 $$;; esac',
        )
        monkeypatch.setenv("PATH", f"{tmp_path / 'killed'}:{os.environ['PATH']}")

    return kill


def test_a_commit_is_fetched_with_nothing_before_it(take: Callable[..., Source], middle: str) -> None:
    source = take(middle)
    assert (source.commit, source.changed, source.given) == (middle, (), False)
    assert (source.path / "file").read_bytes() == b"1\r\n"
    assert git(source.path, "rev-list", "--count", "HEAD").strip() == "1"
    assert source.digest == "git:" + git(source.path, "rev-parse", "HEAD^{tree}").strip()


def test_a_release_is_fetched_by_its_tag(take: Callable[..., Source], middle: str) -> None:
    source = take(tag="llvmorg-1.2.3")
    assert source.commit == middle
    assert take(tag="llvmorg-1.2.3") == source


def test_the_files_are_those_of_the_commit_whatever_the_user_likes(
    take: Callable[..., Source], middle: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config").write_text("[core]\n\tautocrlf = input\n\teol = lf\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "a hook's repository"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "a hook's index"))
    assert (take(middle).path / "file").read_bytes() == b"1\r\n"


def test_what_was_fetched_needs_no_network(take: Callable[..., Source], middle: str, upstream: Path) -> None:
    source = take(middle)
    shutil.rmtree(upstream)
    assert take(middle) == source


def test_what_was_fetched_and_changed_is_mended(take: Callable[..., Source], middle: str, upstream: Path) -> None:
    source = take(middle)
    shutil.rmtree(upstream)
    (source.path / "file").write_text("mine")
    (source.path / "new").write_text("")
    assert take(middle) == source
    assert (source.path / "file").read_bytes() == b"1\r\n"
    assert not (source.path / "new").exists()


@pytest.mark.parametrize("ruined", ["", "objects", "refs"])
def test_what_was_fetched_and_ruined_is_fetched_anew(take: Callable[..., Source], middle: str, ruined: str) -> None:
    source = take(middle)
    for path in (source.path / ".git" / ruined).rglob("*"):
        if path.is_file():
            path.chmod(0o644)
            path.write_text("")
    assert take(middle) == source
    assert (source.path / "file").read_bytes() == b"1\r\n"


@pytest.mark.parametrize("verb", ["fetch", "checkout"])
def test_a_fetch_that_was_killed_goes_on(
    take: Callable[..., Source],
    middle: str,
    upstream: Path,
    killed: Callable[[str], None],
    verb: str,
    tmp_path: Path,
) -> None:
    killed(verb)
    with pytest.raises(BrokenEnvironment, match="killed"):
        take(middle)
    killed("no verb")
    # What git leaves when it is killed in the middle.
    partial = next((tmp_path / "a cache" / "sources").glob("*.work")) / "tree" / ".git"
    for leftover in ("index.lock", "shallow.lock", "objects/pack/tmp_pack_abc"):
        (partial / leftover).write_text("")
    shutil.rmtree(upstream)  # the fetch had come to its end, so nothing is fetched again
    source = take(middle)
    assert (source.path / "file").read_bytes() == b"1\r\n"
    assert not [*source.path.rglob("*.lock"), *source.path.rglob("tmp_*")]


def test_a_fetch_that_was_killed_before_its_end_begins_anew(
    take: Callable[..., Source], middle: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("release.toolchain.sources.resolve", interrupt)
        with pytest.raises(KeyboardInterrupt):
            take(middle)
    assert not list((tmp_path / "a cache").glob("sources/llvm-*/.git"))
    assert take(middle).commit == middle


def test_a_commit_or_a_tag_that_is_not_there_is_a_mistake_of_the_pin_set(take: Callable[..., Source]) -> None:
    with pytest.raises(Finding, match=f"has no {NOBODY}") as refusal:
        take(NOBODY)
    assert "pin set" in refusal.value.remedy
    with pytest.raises(Finding, match=r"has no llvmorg-9\.9\.9"):
        take(tag="llvmorg-9.9.9")


@pytest.mark.parametrize("repository", [f"{CLOSED}/llvm", "file:///nowhere/llvm"])
def test_with_no_network_the_variable_is_the_remedy(
    take: Callable[..., Source], repository: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for proxy in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(proxy, raising=False)
    with pytest.raises(BrokenEnvironment, match="cannot be fetched from") as refusal:
        take(NOBODY, repository=repository)
    assert ROOT in refusal.value.remedy


def test_a_repository_that_gives_another_commit_is_not_believed(
    take: Callable[..., Source], middle: str, upstream: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    latest = git(upstream, "rev-parse", "HEAD").strip()
    write_tool(
        tmp_path / "lying" / "git",
        f'for each; do case $each in +{middle}:*) each=+{latest}:${{each#*:}};; esac; set -- "$@" "$each"; shift; done',
        f'exec "{shutil.which("git")}" "$@"',
    )
    monkeypatch.setenv("PATH", f"{tmp_path / 'lying'}:{os.environ['PATH']}")
    with pytest.raises(Finding, match=f"gave {latest} where {middle} was asked for"):
        take(middle)


def test_a_checkout_is_taken_as_it_is(take: Callable[..., Source], middle: str, upstream: Path) -> None:
    git(upstream, "checkout", "--quiet", middle)
    before = sorted((path, path.stat().st_mtime_ns) for path in upstream.rglob("*"))
    source = take(middle, root=upstream)
    assert (source.path, source.commit, source.given) == (upstream, middle, True)
    assert source.digest == "git:" + git(upstream, "rev-parse", "HEAD^{tree}").strip()
    assert before == sorted((path, path.stat().st_mtime_ns) for path in upstream.rglob("*"))


def test_a_worktree_is_a_checkout_too(take: Callable[..., Source], middle: str, upstream: Path, tmp_path: Path) -> None:
    git(upstream, "worktree", "add", "--quiet", "--detach", str(tmp_path / "tree"), middle)
    assert take(middle, root=tmp_path / "tree").commit == middle


def test_another_commit_is_refused_or_left_to_the_caller(
    take: Callable[..., Source], middle: str, upstream: Path
) -> None:
    latest = git(upstream, "rev-parse", "HEAD").strip()
    with pytest.raises(Finding, match=f"{ROOT} is at commit {latest} and {middle} is wanted"):
        take(middle, root=upstream)
    assert take(middle, root=upstream, any_commit=True).commit == latest


def test_local_changes_are_refused_or_recorded(take: Callable[..., Source], middle: str, upstream: Path) -> None:
    git(upstream, "checkout", "--quiet", middle)
    (upstream / "file").write_text("mine")
    (upstream / "new").write_text("")
    with pytest.raises(Finding, match=f"{ROOT} has local changes: file and 1 more") as refusal:
        take(middle, root=upstream)
    assert "--allow-dirty" in refusal.value.remedy
    source = take(middle, root=upstream, allow_dirty=True)
    assert (source.commit, source.changed) == (middle, ("file", "new"))
    assert source.digest.startswith("sha256:")
    (upstream / "file").write_text("mine again")
    assert take(middle, root=upstream, allow_dirty=True).digest != source.digest


def test_an_archive_needs_no_git_and_its_folder_may_tell_the_commit(
    take: Callable[..., Source], middle: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    archive = tmp_path / "llvm-project"
    (archive / "llvm").mkdir(parents=True)
    (archive / "llvm" / "file").write_text("text")
    source = take(middle, root=archive)
    assert (source.path, source.commit, source.changed) == (archive, None, ())
    assert source.digest.startswith("sha256:")
    named = archive.rename(tmp_path / f"llvm-project-{middle}")
    again = take(middle, root=named)
    assert (again.commit, again.digest) == (middle, source.digest)


def test_the_digest_of_an_archive_is_kept_for_as_long_as_it_is_the_same(
    take: Callable[..., Source], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = tmp_path / "archive"
    archive.mkdir()
    (archive / "tool").write_text("text")
    (archive / "link").symlink_to("tool")
    first = take(root=archive).digest
    with monkeypatch.context() as patch:
        patch.setattr("release.toolchain.tree.sha256_of", lambda _: pytest.fail("it was read again"))
        os.link(archive / "tool", tmp_path / "another name of the same file")
        (archive / "__pycache__").mkdir()
        assert take(root=archive).digest == first
    seen = {first}
    changes: list[Callable[[], object]] = [
        lambda: (archive / "tool").chmod(0o755),
        lambda: (archive / "tool").write_text("next"),
        lambda: (archive / "tool").rename(archive / "fool"),
        lambda: (archive / "link").unlink(),
        lambda: (archive / "link").symlink_to("fool"),
    ]
    for change in changes:
        change()
        seen.add(take(root=archive).digest)
    assert len(seen) == 6


def test_a_root_that_is_no_tree_is_refused(take: Callable[..., Source], tmp_path: Path) -> None:
    with pytest.raises(WrongUsage, match="which is no folder") as refusal:
        take(root=tmp_path / "nowhere")
    assert "unset it" in refusal.value.remedy
    (tmp_path / "nothing").mkdir()
    with pytest.raises(WrongUsage, match="which is empty"):
        take(root=tmp_path / "nothing")
    git(tmp_path / "nothing", "init", "--quiet")
    with pytest.raises(WrongUsage, match=r"git cannot say what .* is at: it has no commit"):
        take(root=tmp_path / "nothing")


def test_without_git_there_is_one_sentence(
    take: Callable[..., Source], middle: str, upstream: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    for root in (None, upstream):
        with pytest.raises(BrokenEnvironment, match="There is no git on PATH") as refusal:
            take(middle, root=root)
        assert "archives" in refusal.value.remedy
