"""The signatures of a folder: whether every file is what the workflow that is named has signed.

The order of the questions makes the answers: whether a bundle is one, of which file it is, whether the signature and
its entry in the log are good, and then by whom it is. Nothing is believed before all are answered.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from cryptography.x509 import Certificate, SubjectAlternativeName, UniformResourceIdentifier
from pydantic import ValidationError
from sigstore.errors import Error as SigstoreError
from sigstore.errors import VerificationError
from sigstore.hashes import Hashed
from sigstore.models import Bundle
from sigstore.verify import Verifier, policy
from sigstore_models.common.v1 import HashAlgorithm

from release.artifacts import sha256_of
from release.errors import Finding
from release.manifest.checksums import verify as verify_checksums
from release.trust.model import PROVENANCE, Identity, bundles_of, is_bundle
from release.trust.provenance import InTotoStatement
from release.trust.root import TrustRoot

_PAYLOAD = "application/vnd.in-toto+json"
_AGAIN = "Fetch the release again; if it stays so, do not use it, and tell its publisher."


@dataclass(frozen=True, kw_only=True)
class Signed:
    """What the signatures of a folder say: who signed how many files, and which run of which workflow made them."""

    files: int
    identity: Identity
    repository: str
    workflow: str
    commit: str
    run: str


def verify_signatures(folder: Path, *, identity: Identity, root: TrustRoot) -> Signed:
    """Verify digests, signatures and provenance of a folder that ``sign_release`` has signed.

    Raises Finding for the first thing that is not as it has to be, WrongUsage for a folder that is no release.
    """
    count = verify_checksums(folder, but=is_bundle)
    digests = {path.name: sha256_of(path) for path in sorted(folder.iterdir()) if not is_bundle(path.name)}
    expected = bundles_of(digests)
    _check_complete(folder, expected)
    verifier = _Verifier(identity, root)
    certificates = [verifier.file(folder / bundle, name, digests) for name, bundle in expected.items()]
    stated, certificate = verifier.provenance(folder / PROVENANCE)
    _check_subjects(stated, digests)
    signed = _signed(stated, identity, count + 1)
    for other in (*certificates, certificate):
        _check_agreement(signed, stated, other)
    return signed


class _Anybody:
    """For the first question, whether a signature holds; by whom it is is the second."""

    def verify(self, cert: Certificate) -> None:
        """Accept."""


_ANYBODY = _Anybody()


class _Verifier:
    def __init__(self, identity: Identity, root: TrustRoot) -> None:
        self._identity = identity
        self._verifier = Verifier(trusted_root=root.keys)

    def file(self, path: Path, name: str, digests: Mapping[str, str]) -> Certificate:
        """Verify the bundle of a file and return its certificate."""
        text, bundle = _read(path)
        _check_is_of(text, path, name, digests)
        hashed = Hashed(algorithm=HashAlgorithm.SHA2_256, digest=bytes.fromhex(digests[name]))
        self._believe(path, lambda: self._verifier.verify_artifact(hashed, bundle, _ANYBODY))
        self._check_signer(path, bundle.signing_certificate)
        return bundle.signing_certificate

    def provenance(self, path: Path) -> tuple[InTotoStatement, Certificate]:
        """Verify the bundle of the statement; return that and the certificate."""
        _, bundle = _read(path)
        kind, payload = self._believe(path, lambda: self._verifier.verify_dsse(bundle, _ANYBODY))
        self._check_signer(path, bundle.signing_certificate)
        try:
            if kind != _PAYLOAD:
                raise ValueError(kind)
            return InTotoStatement.model_validate_json(payload), bundle.signing_certificate
        except (ValidationError, ValueError) as error:
            raise Finding(f"{path.name} is signed and is no provenance of ours.", remedy=_AGAIN) from error

    def _believe[T](self, path: Path, verify: Callable[[], T]) -> T:
        try:
            return verify()
        except (SigstoreError, ValueError) as error:
            raise Finding(
                f"{path.name} does not hold: {_reason(error)}.",
                remedy="Look whether the trust root is the right one and not too old. " + _AGAIN,
            ) from error

    def _check_signer(self, path: Path, certificate: Certificate) -> None:
        names = certificate.extensions.get_extension_for_class(SubjectAlternativeName).value
        found = [name.value for name in names if isinstance(name, UniformResourceIdentifier)]
        if len(list(names)) != 1 or found != [self._identity.subject]:
            raise Finding(
                f"{path.name} is signed by {', '.join(found) or 'somebody without an address'}, not by "
                f"{self._identity.subject}.",
                remedy="Verify with the identity that the project names; " + _AGAIN[0].lower() + _AGAIN[1:],
            )
        try:
            policy.OIDCIssuerV2(self._identity.issuer).verify(certificate)
        except VerificationError as error:
            raise Finding(
                f"{path.name} is signed by that name, and another issuer than {self._identity.issuer} vouches for it.",
                remedy=_AGAIN,
            ) from error


def _check_complete(folder: Path, expected: Mapping[str, str]) -> None:
    bundles = {*expected.values(), PROVENANCE}
    found = {path.name for path in folder.iterdir() if is_bundle(path.name)}
    if missing := sorted(bundles - found):
        raise Finding(f"{missing[0]} is missing, so not all of the release is signed.", remedy=_AGAIN)
    if strange := sorted(found - bundles):
        raise Finding(f"{strange[0]} is a signature of no file of the release.", remedy=_AGAIN)


def _read(path: Path) -> tuple[str, Bundle]:
    try:
        text = path.read_text()
        return text, Bundle.from_json(text)
    except (SigstoreError, ValueError) as error:
        raise Finding(f"{path.name} is no bundle that can be verified: {_reason(error)}.", remedy=_AGAIN) from error


def _check_is_of(text: str, path: Path, name: str, digests: Mapping[str, str]) -> None:
    said = json.loads(text).get("messageSignature", {}).get("messageDigest", {}).get("digest", "")
    digest = base64.b64decode(said).hex()
    if digest == digests[name]:
        return
    others = [other for other, value in digests.items() if value == digest]
    of = f"of {others[0]}, not" if others else "not"
    raise Finding(f"{path.name} is a signature {of} of the {name} that is here.", remedy=_AGAIN)


def _check_subjects(stated: InTotoStatement, digests: Mapping[str, str]) -> None:
    subjects = {subject.name: subject.digest.sha256 for subject in stated.subject}
    for name in sorted(subjects.keys() | digests.keys()):
        if subjects.get(name) != digests.get(name):
            state = (
                "does not name" if name not in subjects else "names" if name not in digests else "has other bytes for"
            )
            extra = ", which is not in the release" if name not in digests else ""
            raise Finding(f"The provenance {state} {name}{extra}.", remedy=_AGAIN)


def _signed(stated: InTotoStatement, identity: Identity, files: int) -> Signed:
    predicate = stated.predicate
    workflow = predicate.build_definition.external_parameters.get("workflow")
    workflow = workflow if isinstance(workflow, dict) else {}
    repository = str(workflow.get("repository", ""))
    return Signed(
        files=files,
        identity=identity,
        repository=repository,
        workflow=f"{repository}/{workflow.get('path', '')}@{workflow.get('ref', '')}",
        commit=predicate.commit or "",
        run=predicate.run_details.metadata.invocation_id,
    )


def _check_agreement(signed: Signed, stated: InTotoStatement, certificate: Certificate) -> None:
    """What the statement says of its making was written by the workflow; what the certificate says, by Fulcio."""
    said = (
        ("repository", policy.OIDCSourceRepositoryURI(signed.repository)),
        ("commit", policy.OIDCSourceRepositoryDigest(signed.commit)),
        ("workflow", policy.OIDCBuildConfigURI(signed.workflow)),
        ("builder", policy.OIDCBuildSignerURI(stated.predicate.run_details.builder.id)),
    )
    for what, rule in said:
        try:
            rule.verify(certificate)
        except VerificationError as error:
            raise Finding(
                f"The provenance names another {what} than the certificate of a signature beside it.", remedy=_AGAIN
            ) from error


def _reason(error: Exception) -> str:
    return str(error).strip().splitlines()[0].rstrip(".")[:200] if str(error).strip() else type(error).__name__
