"""Large assets are streamed: neither in a publish nor in the comparison is a file in memory."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from release.artifacts import write_atomically
from release.errors import WrongUsage
from release.manifest.checksums import NAME as CHECKSUMS
from release.manifest.checksums import checksums
from release.publish.plan import MAXIMUM_SIZE, read_build
from tests.publish.conftest import TAG, new_publishing
from tests.services.github.service import TOKEN, GitHub

_LIMIT = 200e6
_SIZE = int(os.environ.get("LARGE_ASSET_BYTES", "100000000"))  # 1900000000 takes half a minute
_PROGRAM = f"""
import re, sys
from pathlib import Path
from release.progress import Progress
from release.publish.api import Api
from release.publish.github import GitHubHost
from release.publish.publication import publish_release
repository, api, folder, commit = sys.argv[1:]
host = GitHubHost(Api(repository, token={TOKEN!r}, api=api, seconds_between_writes=0))
publish_release(Path(folder), host=host, tag={TAG!r}, commit=commit, notes="", progress=Progress(quiet=True))
# Not ru_maxrss: that begins with what our parent had when it started us.
print(int(re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024)
"""


@pytest.mark.parametrize("digests", [True, False])
def test_a_large_asset_is_streamed(github: GitHub, tmp_path: Path, digests: bool) -> None:
    folder = tmp_path / "dist"
    folder.mkdir()
    with (folder / "large.zip").open("wb") as file:
        file.truncate(_SIZE)
    write_atomically(folder / CHECKSUMS, checksums(folder))
    publishing = new_publishing(github, folder)
    github.front.rules.digests = digests
    arguments = [publishing.repository.name, github.url, str(folder), publishing.repository.commit]
    command = [sys.executable, "-c", _PROGRAM, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    peak = int(done.stdout)
    print(f"{_SIZE:,} bytes: peak memory {peak / 1e6:.0f} MB")
    assert peak < _LIMIT
    publishing.check_published()


def test_an_asset_that_github_does_not_take_is_refused_first(tmp_path: Path) -> None:
    with (tmp_path / "large.zip").open("wb") as file:
        file.truncate(MAXIMUM_SIZE + 1)
    (tmp_path / CHECKSUMS).write_text(f"{'0' * 64}  large.zip\n")
    with pytest.raises(WrongUsage, match="at most 2,147,483,647"):
        read_build(tmp_path)
