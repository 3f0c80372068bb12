"""The one statement about a whole release: which files, made from what, by which workflow (SLSA provenance v1).

https://slsa.dev/spec/v1.1/provenance, inside an in-toto statement v1.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from sigstore.dsse import Statement, StatementBuilder, Subject

from release.artifacts import Artifact
from release.manifest.models import Manifest, Sha256
from release.trust.credential import Job

PREDICATE = "https://slsa.dev/provenance/v1"
BUILD_TYPE = "https://actions.github.io/buildtypes/workflow/v1"
"""GitHub's own, as builds of a workflow are described by others as well."""
_GITHUB = "https://github.com"
# A checkout has git's own name of its tree; what was unpacked has one of ours, over all names and contents.
_TREES = {"git": "gitTree", "sha256": "treeSha256"}


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, populate_by_name=True)


class Material(_Part):
    """What went in: a tree, an archive or a tool. The digest is as its source has it: ``gitCommit``, ``sha256``, …."""

    name: str | None = None
    uri: str
    digest: Annotated[dict[str, str], Field(min_length=1)]


class BuildDefinition(_Part):
    """What was asked for, and from what it was made."""

    build_type: str = Field(alias="buildType")
    external_parameters: dict[str, Any] = Field(alias="externalParameters")
    internal_parameters: dict[str, Any] = Field(alias="internalParameters", default_factory=dict)
    resolved_dependencies: tuple[Material, ...] = Field(alias="resolvedDependencies")


class Builder(_Part):
    """Who ran it: the workflow file that the job is written in, with the ref."""

    id: str


class Metadata(_Part):
    """Which run it was."""

    invocation_id: str = Field(alias="invocationId")


class RunDetails(_Part):
    """Who ran it, and when."""

    builder: Builder
    metadata: Metadata


class Predicate(_Part):
    """SLSA provenance v1."""

    build_definition: BuildDefinition = Field(alias="buildDefinition")
    run_details: RunDetails = Field(alias="runDetails")

    @property
    def commit(self) -> str | None:
        """The commit of the repository whose workflow ran, which is the first of the materials that is one."""
        commits = (material.digest.get("gitCommit") for material in self.build_definition.resolved_dependencies)
        return next(filter(None, commits), None)


class SubjectDigest(_Part):
    """The SHA-256 of a file."""

    sha256: Sha256


class ReleasedFile(_Part):
    """A file that the statement is about."""

    name: str
    digest: SubjectDigest


class InTotoStatement(_Part):
    """An in-toto statement v1 with our predicate, as it is read back."""

    type: Literal["https://in-toto.io/Statement/v1"] = Field(alias="_type")
    subject: tuple[ReleasedFile, ...]
    predicate_type: Literal["https://slsa.dev/provenance/v1"] = Field(alias="predicateType")
    predicate: Predicate


def statement(released: Iterable[Artifact], predicate: Predicate) -> Statement:
    """Return the statement that is signed, over all released files."""
    subjects = [Subject.model_validate({"name": file.name, "digest": {"sha256": file.sha256}}) for file in released]
    builder = StatementBuilder().subjects(subjects).predicate_type(PREDICATE)
    return builder.predicate(predicate.model_dump(mode="json", by_alias=True, exclude_none=True)).build()


def provenance(job: Job, manifest: Manifest | None) -> Predicate:
    """Return what is known of a build: from the token of the job, and from the manifest of a release of Triton."""
    path, _, ref = job.workflow.removeprefix(f"{job.repository}/").partition("@")
    return Predicate(
        buildDefinition=BuildDefinition(
            buildType=BUILD_TYPE,
            externalParameters={
                "workflow": {"ref": ref, "repository": f"{_GITHUB}/{job.repository}", "path": path},
                **(_asked(manifest) if manifest else {}),
            },
            internalParameters={
                "github": {
                    "event_name": job.event,
                    "repository_id": job.repository_id,
                    "repository_owner_id": job.owner_id,
                    "runner_environment": job.environment,
                },
                **({"fixups": [fixup.name for fixup in manifest.fixups]} if manifest else {}),
            },
            resolvedDependencies=(
                Material(uri=f"git+{_GITHUB}/{job.repository}@{job.ref}", digest={"gitCommit": job.commit}),
                *(_materials(manifest) if manifest else ()),
            ),
        ),
        runDetails=RunDetails(builder=Builder(id=f"{_GITHUB}/{job.signer}"), metadata=Metadata(invocationId=job.run)),
    )


def _asked(manifest: Manifest) -> dict[str, Any]:
    return {"pins": manifest.pins.name, "profile": manifest.profile.name, "accepted": list(manifest.accepted)}


def _materials(manifest: Manifest) -> Iterable[Material]:
    pins, tools = manifest.pins, manifest.toolchain
    repositories = {"triton": pins.triton.repository, **{pin.name: pin.repository for pin in pins.llvm}}
    for source in manifest.sources:
        kind, _, digest = source.digest.partition(":")
        commit = {"gitCommit": source.commit} if source.commit else {}
        yield Material(
            name=f"{source.name} {source.version}",
            uri=f"git+{repositories[source.name]}",
            digest={**commit, _TREES[kind]: digest},
        )
    yield Material(
        name=f"Pyodide {pins.pyodide.version}",
        uri=f"pkg:npm/pyodide@{pins.pyodide.version}",
        digest=_integrity(pins.pyodide.integrity),
    )
    for name, version, sha256 in (
        ("emscripten", tools.emscripten, tools.emscripten_digest),
        ("binaryen", tools.binaryen, tools.binaryen_digest),
    ):
        yield Material(name=name, uri=f"pkg:generic/{name}@{version}", digest={"sha256": sha256})


def _integrity(text: str) -> dict[str, str]:
    algorithm, _, encoded = text.partition("-")
    return {algorithm: base64.b64decode(encoded).hex()}
