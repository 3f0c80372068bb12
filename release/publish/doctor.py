"""What a publish would find and do, said without a single request that changes anything."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from release.errors import Problem
from release.progress import Progress
from release.publish.host import Host, HostedRelease
from release.publish.marker import Marker
from release.publish.plan import Build, check_names, compare, read_build
from release.retry import Retry

_FEW_REQUESTS = 200


def examine(folder: Path, *, host: Host, tag: str, commit: str, progress: Progress, retry: Retry | None = None) -> str:
    """Return a line for each thing that was looked at, and last what `publish github` would do.

    What stands in its way is a line as well. Raises BrokenEnvironment when the host cannot be reached, WrongUsage for a
    tag or a commit that is none.
    """
    check_names(tag, commit)
    examination = _Examination(folder, host, tag, commit)
    return (retry or Retry(progress)).step("looking", lambda: "\n".join(examination.lines()))


class _Examination:
    def __init__(self, folder: Path, host: Host, tag: str, commit: str) -> None:
        self._folder, self._host, self._tag, self._commit = folder, host, tag, commit
        self._obstacles: list[str] = []

    def lines(self) -> Iterator[str]:
        self._obstacles.clear()
        build = None
        try:
            build = read_build(self._folder)
            size = sum(asset.size for asset in build.assets)
            yield f"build    {len(build.assets)} files, {size / 1e6:.1f} MB, as {build.digest[:12]}"
        except Problem as problem:
            yield self._obstacle("build", f"{problem} {problem.remedy}")
        yield self._access()
        yield self._tag_line()
        releases = self._host.releases(self._tag)
        published = next((release for release in releases if not release.draft), None)
        for release in releases:
            yield self._release_line(release, build)
        yield f"verdict  {self._verdict(build, published)}"

    def _access(self) -> str:
        access = self._host.access()
        left = ""
        if access.remaining is not None:
            left = f", {access.remaining} of {access.limit} requests left for {(access.resets_in or 0) / 60:.0f} min"
            if access.remaining < _FEW_REQUESTS:
                return self._obstacle("host", f"{self._host.name}: hardly any requests left{left}")
        if access.may_write is False:
            return self._obstacle("host", f"{self._host.name}: the token may not write; it needs `contents: write`")
        return f"host     {self._host.name}{left}"

    def _tag_line(self) -> str:
        found = self._host.tag_commit(self._tag)
        if found is None:
            return self._obstacle("tag", f"{self._tag} is not there; push it at {self._commit[:12]}")
        if found != self._commit:
            return self._obstacle("tag", f"{self._tag} leads to {found[:12]} and the build is of {self._commit[:12]}")
        return f"tag      {self._tag} leads to {found[:12]}, which was built"

    def _release_line(self, release: HostedRelease, build: Build | None) -> str:
        kind = ("draft" if release.draft else "release") + (", immutable" if release.immutable else "")
        if build is None:
            return f"{kind}  {release.url}"
        plan = compare(build, self._host.assets(release), self._host.digest)
        marker = Marker.find(release.body)
        if release.draft and (marker is None or marker.build != build.digest):
            return f"{kind}    {release.url}: not of this build, so it is left alone"
        if not release.draft and not plan.done:
            return self._obstacle(kind, f"{release.url} is published and is not this build: {plan.explain()}")
        if release.draft and plan.foreign:
            return self._obstacle(kind, f"{release.url} has {plan.foreign[0].name}, which is not of this build")
        return f"{kind}    {release.url}: {len(plan.keep)} of {len(build.assets)} files are there; {plan.explain()}"

    def _obstacle(self, what: str, text: str) -> str:
        self._obstacles.append(text)
        return f"{what:<8} ! {text}"

    def _verdict(self, build: Build | None, published: HostedRelease | None) -> str:
        if self._obstacles or build is None:
            return f"publishing would stop: {self._obstacles[0]}"
        if published:
            return "all is published already; publishing would change nothing"
        return "publishing would fill a draft, compare it, and publish it"
