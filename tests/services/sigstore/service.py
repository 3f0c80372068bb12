"""A Sigstore on loopback with the token endpoint of GitHub Actions, and sigstore-js as a second opinion on bundles."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import requests

from release.process import run
from release.trust.model import GITHUB_ISSUER, Identity
from tests.services.installed import Services

_HERE = Path(__file__).parent
_REQUEST_TOKEN = "request-token-that-must-not-be-seen"  # noqa: S105 - of a service that ends with the test

REPOSITORY = "triton-wasm/triton-wasm-release"
WORKFLOW = "release.yml"
COMMIT = "1f" * 20
TAG = "v1.0.0"


def github_claims(
    repository: str = REPOSITORY, *, workflow: str = WORKFLOW, ref: str = f"refs/tags/{TAG}", commit: str = COMMIT
) -> dict[str, str]:
    """Return what GitHub says in the token of a job of a workflow of its own repository."""
    workflow_ref = f"{repository}/.github/workflows/{workflow}@{ref}"
    return {
        "sub": f"repo:{repository}:ref:{ref}",
        "repository": repository,
        "repository_id": "1001",
        "repository_owner": repository.split("/")[0],
        "repository_owner_id": "1002",
        "repository_visibility": "public",
        "ref": ref,
        "sha": commit,
        "workflow": "Release",
        "workflow_ref": workflow_ref,
        "workflow_sha": commit,
        "job_workflow_ref": workflow_ref,
        "job_workflow_sha": commit,
        "event_name": "push",
        "run_id": "4711",
        "run_attempt": "1",
        "runner_environment": "github-hosted",
    }


@dataclass(frozen=True, kw_only=True)
class Sigstore:
    """A running Sigstore: its address, the version of its Rekor, and the client trust config that leads to it."""

    url: str
    rekor: int
    trust_config: Path
    services: Services

    @property
    def environment(self) -> dict[str, str]:
        """What GitHub Actions sets for a job that may ask for an identity."""
        return {
            "GITHUB_ACTIONS": "true",
            "ACTIONS_ID_TOKEN_REQUEST_URL": f"{self.url}/token?api-version=2",
            "ACTIONS_ID_TOKEN_REQUEST_TOKEN": _REQUEST_TOKEN,
        }

    def become(self, claims: Mapping[str, str]) -> Identity:
        """Have the tokens that follow carry ``claims``; return the identity that certificates then have.

        ``iss`` among them makes another issuer, ``lifetime`` (such as ``10s``) another time of validity.
        """
        self._put("/claims", claims)
        return Identity(
            subject=f"https://github.com/{claims['job_workflow_ref']}", issuer=claims.get("iss", GITHUB_ISSUER)
        )

    def fail(self, faults: Mapping[str, Sequence[int]]) -> None:
        """Answer the next requests, by path, with these status codes; 0 lets one through."""
        self._put("/faults", faults)

    def age(self, *ages: int) -> None:
        """Have the next certificates be so many seconds old when they are issued; they last for 600."""
        self._put("/ages", ages)

    @contextmanager
    def late(self) -> Iterator[None]:
        """Have entries of the log and timestamps made an hour later than they are, within the block."""
        self._put("/late", 3600)
        try:
            yield
        finally:
            self._put("/late", 0)

    def second_opinion(self, bundle: Path, identity: Identity, artifact: Path | None = None) -> str:
        """Return what sigstore-js says of a bundle: the signer, or after ``error`` why it refuses."""
        arguments: list[str | Path] = [self.trust_config, bundle, identity.subject, identity.issuer]
        arguments += [artifact] if artifact else []
        done = run([self.services.node, _HERE / "judge.mjs", *arguments], env=self.services.env, timeout=60)
        return done.output.strip() if done.returncode == 0 else f"error {done.output.strip()}"

    def sign_elsewhere(self, file: Path, bundle: Path, *, media_type: str = "") -> None:
        """Have sigstore-js make a bundle, over an artifact or over the payload of an envelope, with Rekor v1."""
        arguments: list[str | Path] = [self.url, bundle, file, *([media_type] if media_type else [])]
        env = {**self.services.env, **self.environment}
        done = run([self.services.node, _HERE / "sign.mjs", *arguments], env=env, timeout=60)
        assert done.returncode == 0, done.tail

    def _put(self, path: str, body: object) -> None:
        requests.put(self.url + path, data=json.dumps(body), timeout=10).raise_for_status()


@contextmanager
def start_sigstore(services: Services, folder: Path, *, rekor: int = 1) -> Iterator[Sigstore]:
    """Run a Sigstore with Rekor 1 or 2, the latter with a timestamp authority, until the block ends."""
    config = folder / f"sigstore-{rekor}.json"
    environment = {**services.env, "REKOR": str(rekor), "REQUEST_TOKEN": _REQUEST_TOKEN}
    command = [services.node, _HERE / "serve.mjs", config]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            url = process.stdout.readline().strip()
            assert url.startswith("http://127.0.0.1:"), "the Sigstore did not start: see its stderr"
            sigstore = Sigstore(url=url, rekor=rekor, trust_config=config, services=services)
            sigstore.become(github_claims())
            yield sigstore
        finally:
            process.kill()
