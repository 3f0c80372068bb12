"""A release is signed whole, by whom it says, so that two implementations believe it; whatever happens on the way."""

import base64
import json
import os
import signal
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import pytest
from sigstore.errors import TUFError
from sigstore.models import Bundle, ClientTrustConfig

from release.artifacts import sha256_of
from release.errors import BrokenEnvironment, Finding, WrongUsage
from release.manifest.checksums import NAME as CHECKSUMS
from release.manifest.checksums import checksums
from release.progress import Progress
from release.trust.model import BUNDLE_SUFFIX, PROVENANCE, is_bundle, wants_signature
from release.trust.sign import sign_release
from tests.services.sigstore.service import REPOSITORY, github_claims
from tests.trust.conftest import Signing

_FULCIO, _REKOR, _TIMESTAMPS = "/api/v2/signingCert", "/api/v{}/log/entries", "/api/v1/timestamp"


def names_of(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def contents_of(folder: Path) -> dict[str, str]:
    return {path.name: sha256_of(path) for path in folder.iterdir()}


def test_every_package_manifest_and_list_has_a_bundle(signing: Signing, dist: Path) -> None:
    before = names_of(dist)
    signed = signing.sign(dist)
    wanted = {name + BUNDLE_SUFFIX for name in before if wants_signature(name)}
    assert {"manifest.json", "sizes.json", "tests.json", CHECKSUMS, "pyodide-lock.json"} <= {
        name.removesuffix(BUNDLE_SUFFIX) for name in wanted
    }
    assert names_of(dist) - before == wanted | {PROVENANCE}
    assert {path.name for path in signed.bundles} == wanted
    assert {path.name for path in signed.assets} == before


def test_sigstore_js_believes_them(signing: Signing, dist: Path) -> None:
    signed = signing.sign(dist)
    for bundle in signed.bundles:
        artifact = dist / bundle.name.removesuffix(BUNDLE_SUFFIX)
        assert signing.sigstore.second_opinion(bundle, signed.identity, artifact) == signed.identity.subject
        other = dist / ("tests.xml" if artifact.name != "tests.xml" else CHECKSUMS)
        assert signing.sigstore.second_opinion(bundle, signed.identity, other).startswith("error")
    assert signing.sigstore.second_opinion(signed.provenance, signed.identity) == signed.identity.subject


def test_signing_again_changes_nothing(signing: Signing, dist: Path) -> None:
    signing.sign(dist)
    before = contents_of(dist)
    signing.sign(dist)
    assert contents_of(dist) == before


@pytest.mark.parametrize("damage", ["half", "empty", "of another file", "by somebody else", "of another commit"])
def test_a_bundle_that_is_not_good_is_made_again(signing: Signing, dist: Path, damage: str) -> None:
    victim = dist / f"manifest.json{BUNDLE_SUFFIX}"
    if damage == "by somebody else":
        signing.sigstore.become(github_claims("somebody/else"))
    if damage == "of another commit":
        signing.sigstore.become(github_claims(commit="2e" * 20))
    signing.sign(dist)
    signing.sigstore.become(github_claims())
    if damage == "half":
        victim.write_bytes(victim.read_bytes()[:1000])
    elif damage == "empty":
        victim.write_bytes(b"")
    elif damage == "of another file":
        victim.write_bytes((dist / f"sizes.json{BUNDLE_SUFFIX}").read_bytes())
    bad = sha256_of(victim)
    signed = signing.sign(dist)
    assert sha256_of(victim) != bad
    assert signing.sigstore.second_opinion(victim, signed.identity, dist / "manifest.json") == signed.identity.subject


def test_a_file_that_differs_from_the_list_is_not_signed(signing: Signing, dist: Path) -> None:
    (dist / "manifest.json").write_text("{}")
    with pytest.raises(Finding, match=r"manifest\.json differs"):
        signing.sign(dist)
    assert not any(map(is_bundle, names_of(dist)))


def test_a_file_that_is_not_listed_is_not_signed(signing: Signing, dist: Path) -> None:
    (dist / "extra.zip").write_bytes(b"extra")
    with pytest.raises(Finding, match=r"extra\.zip is not listed"):
        signing.sign(dist)


def test_a_signature_of_no_file_is_refused(signing: Signing, dist: Path) -> None:
    (dist / f"old.whl{BUNDLE_SUFFIX}").write_text("{}")
    with pytest.raises(Finding, match=r"old\.whl"):
        signing.sign(dist)


def test_a_folder_that_is_no_release_is_refused(signing: Signing, tmp_path: Path) -> None:
    with pytest.raises(WrongUsage, match=CHECKSUMS):
        signing.sign(tmp_path)


def test_the_identity_is_looked_for_first(signing: Signing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ACTIONS_ID_TOKEN_REQUEST_URL")
    with pytest.raises(BrokenEnvironment, match="no identity to sign with"):
        signing.sign(tmp_path / "neither a release nor there")


def test_a_public_sigstore_out_of_reach_is_said(signing: Signing, dist: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable() -> ClientTrustConfig:
        raise TUFError("Failed to refresh TUF metadata")

    monkeypatch.setattr(ClientTrustConfig, "production", unreachable)
    with pytest.raises(BrokenEnvironment, match="TUFError"):
        sign_release(dist, progress=Progress(quiet=True))


def test_a_trust_config_that_is_none_is_refused(signing: Signing, dist: Path) -> None:
    with pytest.raises(WrongUsage, match="client trust config"):
        sign_release(dist, progress=Progress(quiet=True), trust_config=dist / "manifest.json")


@pytest.mark.parametrize("path", [_FULCIO, _REKOR, _TIMESTAMPS])
@pytest.mark.parametrize("status", [500, 502, 429, 200])  # the last with an answer that makes no sense
def test_a_service_that_stumbles_is_asked_again(signing: Signing, dist: Path, path: str, status: int) -> None:
    signing.sigstore.fail({path.format(signing.sigstore.rekor): [status, 0, status]})
    signed = signing.sign(dist)
    if path != _TIMESTAMPS or signing.sigstore.rekor == 2:  # of Rekor 1 the log tells the time
        assert signing.clock.waited
    for bundle in (*signed.bundles[:2], signed.provenance):
        artifact = None if bundle == signed.provenance else dist / bundle.name.removesuffix(BUNDLE_SUFFIX)
        assert signing.sigstore.second_opinion(bundle, signed.identity, artifact) == signed.identity.subject


def test_a_service_that_refuses_is_not_asked_again(signing: Signing, dist: Path) -> None:
    signing.sigstore.fail({_FULCIO: [403]})
    with pytest.raises(BrokenEnvironment, match="403"):
        signing.sign(dist)
    assert not signing.clock.waited
    assert not any(map(is_bundle, names_of(dist)))


def test_a_bundle_that_does_not_hold_gets_no_name(signing: Signing, dist: Path) -> None:
    with signing.sigstore.late(), pytest.raises(BrokenEnvironment, match="not valid at validation time"):
        signing.sign(dist)
    assert not any(map(is_bundle, names_of(dist)))


def test_what_was_written_is_what_is_verified(signing: Signing, dist: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Bundle.to_json
    monkeypatch.setattr(Bundle, "to_json", lambda bundle: whole(bundle)[:-100])
    with pytest.raises(BrokenEnvironment, match="InvalidBundle"):
        signing.sign(dist)
    assert not any(map(is_bundle, names_of(dist)))


class Interrupted(Progress):
    """Takes longer over the third file than a token and a certificate last."""

    def __init__(self) -> None:
        super().__init__(quiet=True)

    def note(self, text: str) -> None:
        if " 3/" in text:
            time.sleep(3.1)


def test_an_identity_that_runs_out_half_way_is_had_again(signing: Signing, dist: Path) -> None:
    signing.sigstore.become(github_claims() | {"lifetime": "3s"})
    signing.sigstore.age(598)
    signed = signing.sign(dist, Interrupted())
    bundles = [*signed.bundles, signed.provenance]
    certificates = [json.loads(path.read_text())["verificationMaterial"]["certificate"]["rawBytes"] for path in bundles]
    assert certificates[0] != certificates[2]
    for bundle in (signed.bundles[0], signed.bundles[2]):
        artifact = dist / bundle.name.removesuffix(BUNDLE_SUFFIX)
        assert signing.sigstore.second_opinion(bundle, signed.identity, artifact) == signed.identity.subject


def test_no_file_is_wholly_in_memory(signing: Signing, tmp_path: Path) -> None:
    size = 200_000_000
    with (tmp_path / "llvm.zip").open("wb") as file:
        file.truncate(size)
    (tmp_path / CHECKSUMS).write_text(checksums(tmp_path))
    tracemalloc.start()
    try:
        signing.sign(tmp_path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < size / 10


def test_a_service_that_is_down_ends_it_and_the_next_run_goes_on(signing: Signing, dist: Path) -> None:
    signing.sigstore.fail({_REKOR.format(signing.sigstore.rekor): [0, 0, *[503] * 20]})
    with pytest.raises(BrokenEnvironment, match="503"):
        signing.sign(dist)
    kept = {name: digest for name, digest in contents_of(dist).items() if is_bundle(name)}
    assert len(kept) == 2
    signing.sigstore.fail({})
    signing.sign(dist)
    assert kept.items() <= contents_of(dist).items()


def test_killed_at_any_bundle_and_run_again(signing: Signing, dist: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from release.progress import Progress;"
        "from release.trust.sign import sign_release;"
        "sign_release(Path(sys.argv[1]), progress=Progress(), trust_config=Path(sys.argv[2]))"
    )
    command = [sys.executable, "-c", program, str(dist), str(signing.sigstore.trust_config)]
    for count in (0, 1, 3):
        with subprocess.Popen(command, env=dict(os.environ), stderr=subprocess.DEVNULL) as process:
            while sum(map(is_bundle, names_of(dist))) < count and process.poll() is None:
                time.sleep(0.001)
            process.send_signal(signal.SIGKILL)
        assert process.returncode == -signal.SIGKILL, "it had ended before"
        for path in dist.iterdir():
            if is_bundle(path.name):
                json.loads(path.read_text())  # whole, whenever it is there
    (dist / f".manifest.json{BUNDLE_SUFFIX}.4711.part").write_text("half")
    signed = signing.sign(dist)
    assert names_of(dist) == {path.name for path in (*signed.assets, *signed.bundles, signed.provenance)}


def test_no_token_is_in_any_file_or_line(
    signing: Signing, dist: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    signing.sigstore.fail({_FULCIO: [401]})
    with pytest.raises(BrokenEnvironment) as caught:
        signing.sign(dist)
    signing.sign(dist)
    seen = "".join(capsys.readouterr()) + caplog.text + repr(caught.value) + caught.value.remedy
    assert "sigstore" in caplog.text, "what the libraries say at their most talkative is looked at as well"
    context = caught.value.__context__ or caught.value.__cause__
    assert context is None, "the request of a client's error has the token in its headers"
    written = b"".join(path.read_bytes() for path in dist.iterdir())
    for secret in (signing.sigstore.environment["ACTIONS_ID_TOKEN_REQUEST_TOKEN"], "eyJhbGciOiJSUzI1NiJ9"):
        assert secret not in seen
        assert secret.encode() not in written


def test_the_provenance_says_what_was_built_from_what(signing: Signing, dist: Path) -> None:
    signed = signing.sign(dist)
    envelope = json.loads(signed.provenance.read_text())["dsseEnvelope"]
    stated = json.loads(base64.b64decode(envelope["payload"]))
    subjects = {subject["name"]: subject["digest"]["sha256"] for subject in stated["subject"]}
    assert subjects == {path.name: sha256_of(path) for path in signed.assets}
    build = stated["predicate"]["buildDefinition"]
    assert build["externalParameters"]["workflow"] == {
        "ref": "refs/tags/v1.0.0",
        "repository": f"https://github.com/{REPOSITORY}",
        "path": ".github/workflows/release.yml",
    }
    manifest = json.loads((dist / "manifest.json").read_text())
    materials = {material["uri"]: material["digest"] for material in build["resolvedDependencies"]}
    assert materials[f"git+https://github.com/{REPOSITORY}@refs/tags/v1.0.0"] == {"gitCommit": "1f" * 20}
    emscripten = f"pkg:generic/emscripten@{manifest['toolchain']['emscripten']}"
    assert materials[emscripten] == {"sha256": manifest["toolchain"]["emscripten_digest"]}
