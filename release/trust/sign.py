"""Signing a release folder: a Sigstore bundle beside each package, manifest and list, and one provenance over all.

>>> require_ambient()
>>> signed = sign_release(Path("dist"), progress=Progress())

Nothing but the files' digests leaves the machine. Each bundle is read back and verified before it gets its name, as a
consumer verifies it. Run again, it keeps the bundles that are good and makes the others.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from requests import HTTPError, RequestException
from sigstore.errors import Error as SigstoreError
from sigstore.errors import VerificationError
from sigstore.hashes import Hashed
from sigstore.models import Bundle, ClientTrustConfig
from sigstore.sign import Signer, SigningContext
from sigstore.verify import Verifier, policy
from sigstore_models.common.v1 import HashAlgorithm

from release.artifacts import Artifact, replacing, sweep
from release.errors import BrokenEnvironment, Finding, WrongUsage
from release.manifest.checksums import NAME as CHECKSUMS
from release.manifest.checksums import verify as verify_checksums
from release.manifest.models import Manifest
from release.progress import Progress
from release.retry import Patience, Retry, Transient
from release.trust.credential import Job, ambient_job
from release.trust.model import BUNDLE_SUFFIX, PROVENANCE, SignedRelease, bundles_of, is_bundle, wants_signature
from release.trust.provenance import InTotoStatement, provenance, statement

MANIFEST = "manifest.json"
_AGAIN = (408, 425, 429)
_PATIENCE = Patience(attempts=5)


def sign_release(
    folder: Path,
    *,
    progress: Progress,
    trust_config: Path | None = None,
    staging: bool = False,
    retry: Retry | None = None,
) -> SignedRelease:
    """Sign a release folder as the job that this is; ``trust_config`` names another Sigstore than the public one.

    ``staging`` signs at Sigstore's own place for trying out: for what is no release, and must be in no public log.

    Raises BrokenEnvironment without an identity or when Sigstore cannot be reached, WrongUsage for a folder that is no
    release, Finding for one that is not what its SHA256SUMS says or that has signatures of other files.
    """
    job, _ = ambient_job()
    sweep(folder)  # what a run that was killed has left is no file of the release
    verify_checksums(folder, but=is_bundle)
    released = [Artifact.of(path) for path in sorted(folder.iterdir()) if not is_bundle(path.name)]
    _refuse_strangers(folder, released)
    signatory = _Signatory(job, _config(trust_config, staging=staging), retry or Retry(progress, patience=_PATIENCE))
    wanted = [file for file in released if wants_signature(file.name)]
    bundles = []
    with progress.steps("sign", len(wanted) + 1) as steps:
        for file in wanted:
            steps.begin(file.name)
            bundles.append(folder / (file.name + BUNDLE_SUFFIX))
            signatory.sign(file, bundles[-1])
        steps.begin("provenance")
        signatory.attest(released, _manifest(folder), folder / PROVENANCE)
    return SignedRelease(
        folder=folder,
        assets=tuple(folder / file.name for file in released),
        bundles=tuple(bundles),
        provenance=folder / PROVENANCE,
        identity=job.identity,
    )


class _Signatory:
    """Signs as one job, with a certificate that lasts ten minutes and is had again when it has run out."""

    def __init__(self, job: Job, config: ClientTrustConfig, retry: Retry) -> None:
        self._job, self._retry = job, retry
        self._context = SigningContext.from_trust_config(config)
        self._verifier = Verifier(trusted_root=config.trusted_root)
        self._policy = policy.AllOf(
            [
                policy.Identity(identity=job.identity.subject, issuer=job.identity.issuer),
                policy.OIDCSourceRepositoryDigest(job.commit),  # a tag that was moved is another release
            ]
        )
        self._signer: Signer | None = None

    def sign(self, file: Artifact, path: Path) -> None:
        """Have a bundle for a file at ``path``."""
        hashed = Hashed(algorithm=HashAlgorithm.SHA2_256, digest=bytes.fromhex(file.sha256))
        self._provide(
            path,
            make=lambda signer: signer.sign_artifact(hashed),
            check=lambda bundle: self._verifier.verify_artifact(hashed, bundle, self._policy),
        )

    def attest(self, released: list[Artifact], manifest: Manifest | None, path: Path) -> None:
        """Have the provenance at ``path``."""
        stated = statement(released, provenance(self._job, manifest))
        self._provide(
            path,
            make=lambda signer: signer.sign_dsse(stated),
            check=lambda bundle: self._check_subjects(bundle, released),
        )

    def _check_subjects(self, bundle: Bundle, released: list[Artifact]) -> None:
        _, payload = self._verifier.verify_dsse(bundle, self._policy)
        found = {file.name: file.digest.sha256 for file in InTotoStatement.model_validate_json(payload).subject}
        if found != {file.name: file.sha256 for file in released}:
            raise VerificationError("the statement is about other files")

    def _provide(self, path: Path, *, make: Callable[[Signer], Bundle], check: Callable[[Bundle], None]) -> None:
        if path.is_file() and _passes(check, path):
            return
        self._retry.step(path.name, lambda: self._attempt(path, make, check))

    def _attempt(self, path: Path, make: Callable[[Signer], Bundle], check: Callable[[Bundle], None]) -> None:
        try:
            with replacing(path) as unproved:
                unproved.write_text(make(self._current()).to_json())
                check(Bundle.from_json(unproved.read_text()))
            return
        except Exception as error:
            if not _is_sigstores(error):
                raise
            self._signer = None  # a fresh token and a fresh certificate: either may be what has expired
            status = _status_of(error)
            reason = f"Sigstore answered {status}" if status else _reason(error)
        # Outside of the handler, and without the error: the request that it holds has the token in it.
        if status and 400 <= status < 500 and status not in _AGAIN:
            raise BrokenEnvironment(
                f"{reason}.", remedy="Look at https://status.sigstore.dev, and at the permissions of the job."
            )
        raise Transient(reason)

    def _current(self) -> Signer:
        if self._signer is None:
            _, token = ambient_job()
            with self._context.signer(token) as signer:
                self._signer = signer
        return self._signer


def _passes(check: Callable[[Bundle], None], path: Path) -> bool:
    try:
        check(Bundle.from_json(path.read_text()))
    except (SigstoreError, ValueError):
        return False
    return True


def _is_sigstores(error: Exception) -> bool:
    # The clients of Fulcio, Rekor and the timestamp authorities raise errors that are not among the public ones, and
    # let through what reading an answer raises that is well-formed and another than the one they expect.
    known = (SigstoreError, RequestException, ValueError, KeyError, TypeError)
    return isinstance(error, known) or type(error).__module__.startswith("sigstore.")


def _reason(error: Exception) -> str:
    # Only what the verifier says is told: it has never seen a token, and other errors may quote a request.
    said = f": {str(error).strip().rstrip('.')}" if isinstance(error, VerificationError) else ""
    return f"Sigstore: {type(error).__name__}{said}"


def _status_of(error: Exception) -> int | None:
    """Find the status code in what a client has made of it."""
    for cause in (error, error.__cause__, error.__context__):
        if isinstance(cause, HTTPError) and cause.response is not None:
            return cause.response.status_code
    return None


def _config(path: Path | None, *, staging: bool) -> ClientTrustConfig:
    if path is None:
        try:
            return ClientTrustConfig.staging() if staging else ClientTrustConfig.production()
        except (OSError, SigstoreError) as error:
            raise BrokenEnvironment(
                f"The public Sigstore does not say where to sign ({type(error).__name__}).",
                remedy="Look at https://status.sigstore.dev, and whether this machine reaches sigstore.dev; run again.",
            ) from error
    try:
        return ClientTrustConfig.from_json(path.read_text())
    except (OSError, SigstoreError, ValueError) as error:
        raise WrongUsage(
            f"{path} is no client trust config of Sigstore ({type(error).__name__}).",
            remedy="Give the file of your own Sigstore, or none for the public one.",
        ) from error


def _manifest(folder: Path) -> Manifest | None:
    path = folder / MANIFEST
    if not path.is_file():
        return None
    try:
        return Manifest.model_validate_json(path.read_text())
    except ValueError as error:
        raise WrongUsage(
            f"{path} is no manifest of a release.", remedy="Build the release with this version of the toolkit."
        ) from error


def _refuse_strangers(folder: Path, released: list[Artifact]) -> None:
    expected = {PROVENANCE, *bundles_of(file.name for file in released).values()}
    for path in sorted(folder.iterdir()):
        if is_bundle(path.name) and path.name not in expected:
            raise Finding(
                f"{path.name} is a signature of no file that is released.",
                remedy=f"Delete it, or put back the file and list it in {CHECKSUMS}.",
            )
