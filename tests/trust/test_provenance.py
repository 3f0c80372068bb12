"""The provenance of a Triton names its sources by digests, whether they were checkouts or unpacked archives."""

from pathlib import Path

import pytest

from release.manifest.models import Manifest, SourceRecord
from release.trust.credential import Job
from release.trust.provenance import provenance

JOB = Job(
    issuer="https://token.actions.githubusercontent.com",
    repository="owner/name",
    repository_id="1",
    owner_id="2",
    ref="refs/tags/v1",
    commit="1f" * 20,
    event="push",
    workflow="owner/name/.github/workflows/release.yml@refs/tags/v1",
    signer="other/tools/.github/workflows/sign.yml@refs/heads/main",
    run="https://github.com/owner/name/actions/runs/1/attempts/1",
    environment="github-hosted",
)


@pytest.mark.parametrize(
    ("digest", "commit", "expected"),
    [
        ("git:" + "a" * 40, "5" * 40, {"gitCommit": "5" * 40, "gitTree": "a" * 40}),
        ("sha256:" + "b" * 64, None, {"treeSha256": "b" * 64}),
    ],
)
def test_sources_are_materials(released: Path, digest: str, commit: str | None, expected: dict[str, str]) -> None:
    source = SourceRecord(name="triton", version="3.6.0", commit=commit, digest=digest, changed=0)
    manifest = Manifest.model_validate_json((released / "manifest.json").read_text())
    made = provenance(JOB, manifest.model_copy(update={"sources": (source,)}))
    (triton,) = (m for m in made.build_definition.resolved_dependencies if m.name == "triton 3.6.0")
    assert (triton.uri, triton.digest) == ("git+https://github.com/triton-lang/triton", expected)
    assert made.commit == JOB.commit


def test_what_is_no_release_of_triton_has_its_repository_as_material() -> None:
    made = provenance(JOB, None)
    assert made.run_details.builder.id == f"https://github.com/{JOB.signer}"
    assert made.build_definition.external_parameters["workflow"] == {
        "ref": "refs/tags/v1",
        "repository": "https://github.com/owner/name",
        "path": ".github/workflows/release.yml",
    }
    assert len(made.build_definition.resolved_dependencies) == 1
