"""An identity to sign with is looked for first, and its absence is said in one sentence."""

import pytest

from release.errors import BrokenEnvironment
from release.trust.credential import ambient_job, require_ambient
from tests.services.sigstore.service import COMMIT, REPOSITORY, github_claims
from tests.trust.conftest import Signing


@pytest.mark.parametrize("name", ["GITHUB_ACTIONS", "ACTIONS_ID_TOKEN_REQUEST_URL", "ACTIONS_ID_TOKEN_REQUEST_TOKEN"])
def test_without_an_identity_nothing_is_begun(signing: Signing, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    require_ambient()
    monkeypatch.delenv(name)
    with pytest.raises(BrokenEnvironment, match=name) as caught:
        require_ambient()
    assert "id-token: write" in caught.value.remedy


def test_the_job_is_what_the_token_says(signing: Signing) -> None:
    job, token = ambient_job()
    assert (job.repository, job.commit, job.event) == (REPOSITORY, COMMIT, "push")
    assert job.identity.subject == f"https://github.com/{REPOSITORY}/.github/workflows/release.yml@refs/tags/v1.0.0"
    assert job.run == f"https://github.com/{REPOSITORY}/actions/runs/4711/attempts/1"
    assert token.in_validity_period()


def test_a_called_workflow_signs_under_its_own_name(signing: Signing) -> None:
    called = "other/tools/.github/workflows/publish.yml@refs/heads/main"
    signing.sigstore.become(github_claims() | {"job_workflow_ref": called})
    job, _ = ambient_job()
    assert job.identity.subject == f"https://github.com/{called}"
    assert job.workflow.startswith(REPOSITORY)


def test_a_refusal_does_not_show_the_token(signing: Signing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "wrong-and-secret")
    with pytest.raises(BrokenEnvironment, match="gave none") as caught:
        ambient_job()
    assert caught.value.__cause__ is None
    assert "secret" not in str(caught.value) + caught.value.remedy


def test_a_token_endpoint_that_is_down_is_not_blamed_on_the_job(signing: Signing) -> None:
    signing.sigstore.fail({"/token": [503]})
    with pytest.raises(BrokenEnvironment, match="gave none") as caught:
        ambient_job()
    assert "run the same command again" in caught.value.remedy
    ambient_job()


def test_a_token_of_another_service_is_refused(signing: Signing) -> None:
    signing.sigstore.become({"sub": "somebody", "job_workflow_ref": "a/b/.github/workflows/c.yml@refs/heads/d"})
    with pytest.raises(BrokenEnvironment, match="GitHub Actions"):
        ambient_job()


def test_a_token_that_has_expired_is_refused(signing: Signing) -> None:
    signing.sigstore.become(github_claims() | {"lifetime": "-1m"})
    with pytest.raises(BrokenEnvironment, match="valid now"):
        ambient_job()
