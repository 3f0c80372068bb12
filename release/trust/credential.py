"""Who signs: the job of GitHub Actions that we are, as the token says that GitHub gives it.

>>> require_ambient()  # before anything long
>>> job, token = ambient_job()
"""

from __future__ import annotations

import base64
import json
import os
from dataclasses import dataclass
from typing import Any

from sigstore.oidc import IdentityError, IdentityToken, detect_credential

from release.errors import BrokenEnvironment
from release.trust.model import Identity

_ENVIRONMENT = ("GITHUB_ACTIONS", "ACTIONS_ID_TOKEN_REQUEST_URL", "ACTIONS_ID_TOKEN_REQUEST_TOKEN")
_GITHUB = "https://github.com"
_REMEDY = "Run it as a job of GitHub Actions that has `permissions: id-token: write`, its caller as well."


@dataclass(frozen=True, kw_only=True)
class Job:
    """A job of GitHub Actions: what ran, of which commit of which repository, and where it may be looked at.

    ``workflow`` is the file that the event started, ``signer`` the one that the job is written in: the same, or a
    reusable workflow that the first calls. Both are ``OWNER/NAME/.github/workflows/FILE@REF``.
    """

    issuer: str
    repository: str
    repository_id: str
    owner_id: str
    ref: str
    commit: str
    event: str
    workflow: str
    signer: str
    run: str
    environment: str

    @property
    def identity(self) -> Identity:
        """The signer as Fulcio writes it into a certificate."""
        return Identity(subject=f"{_GITHUB}/{self.signer}", issuer=self.issuer)


def require_ambient() -> None:
    """Raise BrokenEnvironment where no identity can be had: at once, and without asking anybody for it."""
    missing = [name for name in _ENVIRONMENT if not os.environ.get(name)]
    if missing:
        raise BrokenEnvironment(
            f"There is no identity to sign with: {', '.join(missing)} not set, so this is no job that may ask for one.",
            remedy=_REMEDY,
        )


def ambient_job() -> tuple[Job, IdentityToken]:
    """Ask GitHub for a token and read what it says of the job. Raises BrokenEnvironment when there is none."""
    require_ambient()
    try:
        text = detect_credential()
        token = IdentityToken(text or "")
    except IdentityError:
        # Without its cause: that may hold an answer, and so the token.
        raise BrokenEnvironment(
            "GitHub was asked for an identity and gave none that is valid now.",
            remedy="Look at https://www.githubstatus.com and run the same command again: what is signed is kept.",
        ) from None
    return _job_of(_claims(str(token))), token


def _claims(token: str) -> dict[str, Any]:
    payload = token.split(".")[1]
    claims: dict[str, Any] = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return claims


def _job_of(claims: dict[str, Any]) -> Job:
    try:
        run = f"{_GITHUB}/{claims['repository']}/actions/runs/{claims['run_id']}/attempts/{claims['run_attempt']}"
        return Job(
            issuer=claims["iss"],
            repository=claims["repository"],
            repository_id=claims["repository_id"],
            owner_id=claims["repository_owner_id"],
            ref=claims["ref"],
            commit=claims["sha"],
            event=claims["event_name"],
            workflow=claims["workflow_ref"],
            signer=claims["job_workflow_ref"],
            run=run,
            environment=claims["runner_environment"],
        )
    except KeyError as error:
        raise BrokenEnvironment(
            f"The identity of this job has no {error.args[0]!r}, so it is none of GitHub Actions.", remedy=_REMEDY
        ) from None
