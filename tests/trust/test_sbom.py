"""The bill of materials names what is in the package and what made it, and follows the standard."""

import json
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from release.artifacts import sha256_of
from release.errors import Finding
from release.manifest.models import Manifest, SourceRecord
from release.trust.model import SBOM
from release.trust.sbom import check_sbom, sbom


@pytest.fixture
def manifest(released: Path) -> Manifest:
    return Manifest.model_validate_json((released / "manifest.json").read_text())


@pytest.fixture
def wheel(dist: Path) -> Path:
    return next(dist.glob("*.whl"))


def packages(folder: Path) -> dict[str, str]:
    return {path.name: sha256_of(path) for path in folder.iterdir() if path.suffix in (".whl", ".zip")}


def components(text: str) -> dict[str, dict[str, Any]]:
    return {component["name"]: component for component in json.loads(text)["components"]}


def add(wheel: Path, name: str, content: bytes = b"x") -> None:
    with ZipFile(wheel, "a") as archive:
        archive.writestr(name, content)


def test_a_release_has_one_that_is_of_its_packages(released: Path, manifest: Manifest) -> None:
    text = (released / SBOM).read_text()
    check_sbom(text, packages(released))
    assert text == sbom(manifest, next(released.glob("*.whl")))
    root = json.loads(text)["metadata"]["component"]
    assert (root["name"], root["version"]) == (manifest.name, manifest.version)
    assert root["licenses"] == [{"expression": "Apache-2.0 AND BSD-3-Clause"}]


def test_what_is_inside_is_told_from_what_is_not(released: Path) -> None:
    found = components((released / SBOM).read_text())
    assert set(found) == {"pybind11", "pyodide", "emscripten", "binaryen"}  # the sample has no Triton in it
    assert "scope" not in found["pybind11"]
    assert found["pyodide"]["scope"] == "required"
    assert found["emscripten"]["scope"] == found["binaryen"]["scope"] == "excluded"
    graph = {
        entry["ref"]: entry.get("dependsOn", []) for entry in json.loads((released / SBOM).read_text())["dependencies"]
    }
    assert "tool:emscripten" not in graph["pkg:pypi/exprc@1.0.0"]


def test_triton_llvm_and_the_device_libraries_are_named_with_their_licences(manifest: Manifest, wheel: Path) -> None:
    sources = (
        SourceRecord(name="triton", version="3.6.0", commit="5" * 40, digest="a" * 64, changed=2),
        SourceRecord(name="llvm", version="22.1.8", commit=None, digest="b" * 64, changed=0),
    )
    for name in ("LICENSE.llvm", "LICENSE.llvm-blake3", "NOTICE.libdevice", "LICENSE.rocm-device-libs"):
        add(wheel, f"exprc-1.0.0.dist-info/licenses/{name}")
    for name in ("libdevice.10.bc", "ocml.bc", "ockl.bc", "asanrtl.bc"):
        add(wheel, f"triton/backends/lib/{name}", name.encode())
    found = components(sbom(manifest.model_copy(update={"sources": sources}), wheel))
    assert found["triton"]["version"] == "3.6.0"
    assert found["triton"]["externalReferences"][0]["comment"] == "5" * 40
    assert found["triton"]["licenses"] == [{"expression": "MIT"}]
    assert found["llvm"]["licenses"] == [{"expression": "Apache-2.0 WITH LLVM-exception"}]
    assert found["BLAKE3"]["version"] == "22.1.8"
    assert "NVIDIA" in found["libdevice.10.bc"]["licenses"][0]["expression"]
    assert {found[f"{name}.bc"]["licenses"][0]["expression"] for name in ("ocml", "ockl", "asanrtl")} == {"NCSA"}
    assert all(found[f"{name}.bc"]["hashes"] for name in ("libdevice.10", "ocml", "ockl", "asanrtl"))


@pytest.mark.parametrize("name", ["exprc-1.0.0.dist-info/licenses/LICENSE.mystery", "exprc/mystery.bc"])
def test_what_nobody_has_thought_about_is_refused(manifest: Manifest, wheel: Path, name: str) -> None:
    add(wheel, name)
    with pytest.raises(Finding, match="does not know"):
        sbom(manifest, wheel)


@pytest.mark.parametrize(
    "damage", ["{}", '{"bomFormat": "CycloneDX", "specVersion": "1.6", "components": 3}', "no JSON"]
)
def test_a_text_that_breaks_the_schema_is_refused(released: Path, damage: str) -> None:
    with pytest.raises(Finding, match="breaks its schema"):
        check_sbom(damage, packages(released))


def test_the_bill_of_another_package_is_refused(released: Path) -> None:
    text = (released / SBOM).read_text()
    for other in (dict.fromkeys(packages(released), "0" * 64), {}, packages(released) | {"more.whl": "1" * 64}):
        with pytest.raises(Finding, match="other digests"):
            check_sbom(text, other)
