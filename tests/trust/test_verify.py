"""What a consumer refuses, each in its own sentence, and what it accepts."""

import base64
import json
import shutil
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from sigstore.models import ClientTrustConfig
from sigstore.sign import SigningContext

from release.artifacts import sha256_of, write_atomically
from release.errors import Finding, WrongUsage
from release.manifest.checksums import NAME as CHECKSUMS
from release.manifest.checksums import checksums
from release.manifest.models import Manifest
from release.trust.credential import ambient_job
from release.trust.model import BUNDLE_SUFFIX, PROVENANCE, SBOM, Identity
from release.trust.root import bundled_root, root_from
from release.trust.sbom import sbom
from release.trust.signatures import verify_signatures
from release.trust.verify import Verification, describe, verify_release
from tests.services.installed import Services
from tests.services.sigstore.service import COMMIT, REPOSITORY, github_claims, start_sigstore
from tests.trust.conftest import Signing

IDENTITY = Identity.of_workflow(REPOSITORY, "release.yml", "refs/tags/v1.0.0")
MANIFEST_BUNDLE = f"manifest.json{BUNDLE_SUFFIX}"


@pytest.fixture
def signed(signing: Signing, dist: Path) -> Path:
    signing.sign(dist)
    return dist


@pytest.fixture
def verify(signing: Signing, dist: Path) -> Callable[..., Verification]:
    def verifying(folder: Path = dist, identity: Identity = IDENTITY) -> Verification:
        return verify_release(folder, identity=identity, root=root_from(signing.sigstore.trust_config))

    return verifying


def change(path: Path, edit: Callable[[Any], object]) -> None:
    content = json.loads(path.read_text())
    edit(content)
    path.write_text(json.dumps(content))


def relist(folder: Path) -> None:
    """Make the list anew, as somebody does who changes a release before it is signed."""
    for path in folder.glob(f"*{BUNDLE_SUFFIX}"):
        path.unlink()
    write_atomically(folder / CHECKSUMS, checksums(folder))


def test_a_release_is_what_it_says(signed: Path, verify: Callable[..., Verification]) -> None:
    said = describe(verify())
    for part in (
        f"https://github.com/{REPOSITORY}/.github/workflows/release.yml@refs/tags/v1.0.0",
        COMMIT,
        f"https://github.com/{REPOSITORY}/actions/runs/4711/attempts/1",
        "https://token.actions.githubusercontent.com",
        "0 days",
    ):
        assert part in said


def test_what_sigstore_js_has_signed_is_believed_too(
    signing: Signing, signed: Path, verify: Callable[..., Verification], tmp_path: Path
) -> None:
    envelope = json.loads((signed / PROVENANCE).read_text())["dsseEnvelope"]
    payload = tmp_path / "statement.json"
    payload.write_bytes(base64.b64decode(envelope["payload"]))
    for bundle in signed.glob(f"*{BUNDLE_SUFFIX}"):
        ours = bundle.read_bytes()
        if bundle.name == PROVENANCE:
            signing.sigstore.sign_elsewhere(payload, bundle, media_type=envelope["payloadType"])
        else:
            signing.sigstore.sign_elsewhere(signed / bundle.name.removesuffix(BUNDLE_SUFFIX), bundle)
        assert bundle.read_bytes() != ours
    assert verify()


def test_nothing_is_asked_of_the_network(
    signed: Path, verify: Callable[..., Verification], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the network was used")

    with monkeypatch.context() as patched:
        patched.setattr(socket.socket, "connect", refuse)
        verify()


@pytest.mark.parametrize("name", ["manifest.json", "tests.xml", "exprc-1.0.0.zip", "SUMMARY.md"])
def test_a_file_that_was_changed(signed: Path, verify: Callable[..., Verification], name: str) -> None:
    with (signed / name).open("ab") as file:
        file.write(b"\n")
    with pytest.raises(Finding, match=f"{name} differs"):
        verify()


def test_a_file_that_was_changed_with_the_list(signed: Path, verify: Callable[..., Verification]) -> None:
    with (signed / "manifest.json").open("ab") as file:
        file.write(b"\n")
    bundles = {path.name: path.read_bytes() for path in signed.glob(f"*{BUNDLE_SUFFIX}")}
    relist(signed)
    for name, content in bundles.items():
        (signed / name).write_bytes(content)
    with pytest.raises(Finding, match=r"SHA256SUMS\.sigstore\.json is a signature not of the SHA256SUMS"):
        verify()


def test_a_file_without_a_signature_of_its_own_is_under_the_provenance(
    signed: Path, verify: Callable[..., Verification], signing: Signing
) -> None:
    old = (signed / PROVENANCE).read_bytes()
    (signed / "SUMMARY.md").write_text("Something else.")
    relist(signed)
    signing.sign(signed)
    (signed / PROVENANCE).write_bytes(old)
    with pytest.raises(Finding, match=r"provenance has other bytes for (SHA256SUMS|SUMMARY\.md)"):
        verify()


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda f: (f / MANIFEST_BUNDLE).unlink(), "manifest.json.sigstore.json is missing"),
        (lambda f: (f / PROVENANCE).unlink(), "provenance.sigstore.json is missing"),
        (lambda f: shutil.copy(f / MANIFEST_BUNDLE, f / f"more.zip{BUNDLE_SUFFIX}"), "of no file of the release"),
        (lambda f: (f / "more.zip").write_bytes(b"x"), "more.zip is not listed"),
        (lambda f: (f / "tests.xml").unlink(), "tests.xml is missing"),
        (
            lambda f: shutil.copy(f / f"sizes.json{BUNDLE_SUFFIX}", f / MANIFEST_BUNDLE),
            "is a signature of sizes.json, not of the manifest.json",
        ),
        (lambda f: (f / MANIFEST_BUNDLE).write_text("{}"), "is no bundle that can be verified"),
        (lambda f: (f / MANIFEST_BUNDLE).write_bytes(b"\xff\xfe"), "is no bundle that can be verified"),
        (
            lambda f: change(f / MANIFEST_BUNDLE, lambda b: b["verificationMaterial"].pop("tlogEntries")),
            "is no bundle that can be verified",
        ),
        (
            lambda f: change(
                f / MANIFEST_BUNDLE,
                lambda b: b["verificationMaterial"]["tlogEntries"][0].update(
                    canonicalizedBody=json.loads((f / f"sizes.json{BUNDLE_SUFFIX}").read_text())[
                        "verificationMaterial"
                    ]["tlogEntries"][0]["canonicalizedBody"]
                ),
            ),
            "does not hold",
        ),
        (
            lambda f: change(
                f / MANIFEST_BUNDLE,
                lambda b: b["messageSignature"].update(
                    signature=json.loads((f / f"sizes.json{BUNDLE_SUFFIX}").read_text())["messageSignature"][
                        "signature"
                    ]
                ),
            ),
            "does not hold",
        ),
    ],
)
def test_a_signature_that_was_tampered_with(
    signed: Path, verify: Callable[..., Verification], damage: Callable[[Path], object], said: str
) -> None:
    damage(signed)
    with pytest.raises(Finding, match=said):
        verify()


def test_a_statement_that_was_tampered_with(signed: Path, verify: Callable[..., Verification]) -> None:
    def forge(bundle: Any) -> None:
        envelope = bundle["dsseEnvelope"]
        statement = json.loads(base64.b64decode(envelope["payload"]))
        statement["predicate"]["runDetails"]["builder"]["id"] = "https://example.com"
        envelope["payload"] = base64.b64encode(json.dumps(statement).encode()).decode()

    change(signed / PROVENANCE, forge)
    with pytest.raises(Finding, match="does not hold"):
        verify()


@pytest.mark.parametrize(
    "identity",
    [
        Identity.of_workflow("somebody/else", "release.yml", "refs/tags/v1.0.0"),
        Identity.of_workflow(REPOSITORY, "other.yml", "refs/tags/v1.0.0"),
        Identity.of_workflow(REPOSITORY, "release.yml", "refs/tags/v1.0.1"),
        Identity.of_workflow(REPOSITORY, "release.yml", "refs/tags/v1.0"),
    ],
)
def test_another_identity(signed: Path, verify: Callable[..., Verification], identity: Identity) -> None:
    with pytest.raises(Finding, match=r"is signed by .*release\.yml@refs/tags/v1\.0\.0, not by"):
        verify(identity=identity)


def test_another_issuer(signing: Signing, dist: Path, verify: Callable[..., Verification]) -> None:
    other = signing.sigstore.become(github_claims() | {"iss": "https://issuer.example"})
    signing.sign(dist)
    with pytest.raises(Finding, match=r"another issuer than https://token\.actions"):
        verify()
    assert verify(identity=other)


@pytest.mark.parametrize(
    "subject",
    [
        f"https://github.com/{REPOSITORY}/.github/workflows/release.yml@.*",
        f"^https://github.com/{REPOSITORY}/",
        "https://github.com/*",
        "https://github.com/a/b\nhttps://github.com/c/d",
        "release.yml",
    ],
)
def test_an_identity_is_no_pattern(subject: str) -> None:
    with pytest.raises(WrongUsage, match="exact identity"):
        Identity(subject=subject)


def test_another_root(signed: Path, services: Services, tmp_path_factory: pytest.TempPathFactory) -> None:
    with start_sigstore(services, tmp_path_factory.mktemp("other")) as other:
        for root in (root_from(other.trust_config), bundled_root()):
            with pytest.raises(Finding, match="does not hold"):
                verify_release(signed, identity=IDENTITY, root=root)


def test_an_entry_that_was_made_after_the_certificate_had_expired(
    signing: Signing, signed: Path, verify: Callable[..., Verification]
) -> None:
    config = ClientTrustConfig.from_json(signing.sigstore.trust_config.read_text())
    _, token = ambient_job()
    with signing.sigstore.late(), SigningContext.from_trust_config(config).signer(token) as signer:
        (signed / MANIFEST_BUNDLE).write_text(signer.sign_artifact((signed / "manifest.json").read_bytes()).to_json())
    with pytest.raises(Finding, match="does not hold"):
        verify()


def test_a_root_that_is_none(tmp_path: Path) -> None:
    for content in ("", "{}", "[]", '{"tlogs": 3}'):
        (tmp_path / "root.json").write_text(content)
        with pytest.raises(WrongUsage, match="no trust root"):
            root_from(tmp_path / "root.json")


def test_the_root_that_comes_with_us_says_its_age() -> None:
    assert "newest key is valid since 20" in bundled_root().origin


def test_files_of_two_commits(
    signing: Signing, signed: Path, verify: Callable[..., Verification], tmp_path: Path
) -> None:
    other = Path(shutil.copytree(signed, tmp_path / "other"))
    relist(other)
    signing.sigstore.become(github_claims(commit="2e" * 20))
    signing.sign(other)
    shutil.copy(other / MANIFEST_BUNDLE, signed)
    with pytest.raises(Finding, match="another commit"):
        verify()


# From here on somebody who may sign has signed something that must not be.


@pytest.fixture
def resigned(signing: Signing, dist: Path) -> Iterator[Callable[[], None]]:
    def signing_again() -> None:
        relist(dist)
        signing.sign(dist)

    yield signing_again


def test_signed_without_a_bill_of_materials(
    dist: Path, resigned: Callable[[], None], verify: Callable[..., Verification]
) -> None:
    (dist / SBOM).unlink()
    resigned()
    with pytest.raises(Finding, match="no bill of materials"):
        verify()


@pytest.mark.parametrize(
    ("name", "edit", "said"),
    [
        ("manifest.json", lambda m: m.pop("pins"), "breaks its schema at pins"),
        ("tests.json", lambda t: t.update(extra=1), "breaks its schema at extra"),
        ("tests.json", lambda t: t.update(passed=False), "have not passed"),
        ("tests.json", lambda t: t["runs"][0].update(package="0" * 64), "has checked is another package"),
        ("manifest.json", lambda m: m["assets"][0].update(sha256="0" * 64), "names another"),
        (SBOM, lambda s: s.update(bomFormat="other"), "breaks its schema"),
    ],
)
def test_signed_with_a_wrong_manifest(
    dist: Path,
    resigned: Callable[[], None],
    verify: Callable[..., Verification],
    name: str,
    edit: Callable[[Any], object],
    said: str,
) -> None:
    change(dist / name, edit)
    if name == "manifest.json" and said.startswith("breaks"):
        # What signs reads the manifest as well, so such a release is made by hand.
        with pytest.raises(WrongUsage, match="no manifest"):
            resigned()
        return
    resigned()
    with pytest.raises(Finding, match=said):
        verify()


def test_signed_with_a_gpu_binary_inside(
    dist: Path, resigned: Callable[[], None], verify: Callable[..., Verification]
) -> None:
    wheel = next(dist.glob("*.whl"))
    with ZipFile(wheel, "a") as archive:
        archive.writestr("exprc/kernel.hsaco", b"\x7fELF")
    shutil.copy(wheel, next(dist.glob("*.zip")))
    change(dist / "pyodide-lock.json", lambda lock: lock["packages"]["exprc"].update(sha256=sha256_of(wheel)))

    def tell(manifest: Any) -> None:
        for asset in manifest["assets"]:
            path = dist / asset["name"]
            asset.update(size=path.stat().st_size, sha256=sha256_of(path))

    change(dist / "manifest.json", tell)
    (dist / SBOM).write_text(sbom(Manifest.model_validate_json((dist / "manifest.json").read_text()), wheel))
    resigned()
    with pytest.raises(Finding, match=r"kernel\.hsaco"):
        verify()


def test_other_folders_can_be_signed_and_verified_too(signing: Signing, tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    (folder / "part.bin").write_bytes(b"content")
    write_atomically(folder / CHECKSUMS, checksums(folder))
    signing.sign(folder)
    root = root_from(signing.sigstore.trust_config)
    assert verify_signatures(folder, identity=IDENTITY, root=root).files == 2
