"""The bill of materials of a release, as CycloneDX 1.6: what is in the package, what it was made with, whose it is.

What is in a package is told by what it carries: the licence texts of all that is compiled in, and the device libraries
beside the module. What a licence is known for here is in the table below; a text or a library that is not in it is
refused, for then nobody has thought about it.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from zipfile import ZipFile

from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, XsUri
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentScope, ComponentType
from cyclonedx.model.license import LicenseExpression
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL
from packaging.metadata import Metadata

import release
from release.artifacts import Artifact
from release.errors import Finding
from release.manifest.models import Manifest

_NVIDIA = "LicenseRef-NVIDIA-End-User-License-Agreement"
_ROOT = ("LICENSE", "LICENSE.triton-wasm-release")
"""The licences of the product itself, which the wheel's metadata names, and of the layer that comes from here."""


@dataclass(frozen=True, kw_only=True)
class _Part:
    """What a licence text in the package is known for; ``within`` is the tree that it comes in."""

    name: str
    license: str
    within: str | None = None


_PARTS = {
    "LICENSE.pybind11": _Part(name="pybind11", license="BSD-3-Clause"),
    "LICENSE.nanobind": _Part(name="nanobind", license="BSD-3-Clause"),
    "LICENSE.f2reduce": _Part(name="f2reduce", license="MIT", within="triton"),
    "LICENSE.llvm": _Part(name="LLVM, MLIR and LLD", license="Apache-2.0 WITH LLVM-exception", within="llvm"),
    "LICENSE.llvm-blake3": _Part(name="BLAKE3", license="Apache-2.0 OR CC0-1.0", within="llvm"),
    "LICENSE.llvm-regex": _Part(name="regular expressions", license="BSD-3-Clause AND Spencer-94", within="llvm"),
    "LICENSE.llvm-support": _Part(
        name="xxHash, strlcpy and ConvertUTF", license="BSD-2-Clause AND ISC AND Unicode-DFS-2015", within="llvm"
    ),
    # Of which libraries these are the terms; the libraries themselves are components by their digests.
    "LICENSE.rocm-device-libs": _Part(name="ROCm device libraries", license="NCSA", within="triton"),
    "NOTICE.libdevice": _Part(name="libdevice", license=_NVIDIA, within="triton"),
}
_DEVICE_LIBRARIES = {"libdevice": _NVIDIA, "ocml": "NCSA", "ockl": "NCSA", "asanrtl": "NCSA"}


def sbom(manifest: Manifest, wheel: Path) -> str:
    """Return the bill of a release, the same bytes for the same package.

    Raises Finding for a package that carries what is not known here, and for a bill that breaks its schema.
    """
    root = _root(manifest, wheel)
    shipped = [*_sources(manifest), *_parts(manifest, wheel), *_device_libraries(wheel)]
    around = list(_tools(manifest))
    # No other time than that of the build is true, and that is not the same twice: so it has none.
    bom = Bom(
        components=[*shipped, *around],
        serial_number=uuid.uuid5(uuid.NAMESPACE_URL, f"sha256:{Artifact.of(wheel).sha256}"),
    )
    bom.metadata.component = root
    bom.metadata.timestamp = None  # type: ignore[assignment]  # optional in the standard, and not in the library
    bom.metadata.tools.components.add(
        Component(name="triton-wasm-release", version=release.__version__, type=ComponentType.APPLICATION)
    )
    bom.register_dependency(root, [*shipped, *(tool for tool in around if tool.scope is ComponentScope.REQUIRED)])
    text = JsonV1Dot6(bom).output_as_string(indent=2) + "\n"
    check_sbom(text, {asset.name: asset.sha256 for asset in manifest.assets})
    return text


def check_sbom(text: str, released: Mapping[str, str]) -> None:
    """Raise Finding for a text that is no CycloneDX 1.6, or that is of other packages than these.

    ``released`` has the SHA-256 of the release's files by their names.
    """
    if reason := _fault_of(text):
        raise Finding(f"The bill of materials breaks its schema: {reason}.", remedy="Build the release again.")
    # After the schema: from_json raises whatever it meets.
    component = Bom.from_json(data=json.loads(text)).metadata.component  # type: ignore[attr-defined]
    named = {
        str(reference.url): next((hash_.content for hash_ in reference.hashes), "")
        for reference in (component.external_references if component else ())
        if reference.type is ExternalReferenceType.DISTRIBUTION
    }
    packages = {name: digest for name, digest in released.items() if name.endswith((".whl", ".zip"))}
    if named != packages:
        raise Finding(
            f"The bill of materials is of {', '.join(sorted(named)) or 'no package'} by other digests than are here.",
            remedy="Build the release again: the bill is made from the package.",
        )


def _fault_of(text: str) -> str:
    try:
        error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    except ValueError:
        return "it is no JSON"
    # What follows the first line is a copy of the whole.
    return str(error.data).splitlines()[0][:200] if error else ""


def _root(manifest: Manifest, wheel: Path) -> Component:
    purl = PackageURL(type="pypi", name=manifest.name, version=manifest.version)
    return Component(
        name=manifest.name,
        version=manifest.version,
        type=ComponentType.LIBRARY,
        bom_ref=str(purl),
        purl=purl,
        licenses=[LicenseExpression(_license_of(wheel))],
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=Artifact.of(wheel).sha256)],
        external_references=[
            ExternalReference(
                type=ExternalReferenceType.DISTRIBUTION,
                url=XsUri(asset.name),
                hashes=[HashType(alg=HashAlgorithm.SHA_256, content=asset.sha256)],
            )
            for asset in manifest.assets
            if asset.name.endswith((".whl", ".zip"))
        ],
    )


def _sources(manifest: Manifest) -> Iterable[Component]:
    pins = manifest.pins
    addresses = {"triton": pins.triton.repository, **{pin.name: pin.repository for pin in pins.llvm}}
    licenses = {"triton": "MIT"}
    for source in manifest.sources:
        where = addresses[source.name]
        yield Component(
            name=source.name,
            version=source.version,
            type=ComponentType.LIBRARY,
            bom_ref=f"source:{source.name}",
            licenses=[LicenseExpression(licenses.get(source.name, "Apache-2.0 WITH LLVM-exception"))],
            # The digest of a tree is none of an archive, which a hash here would have to be: provenance has it.
            external_references=[
                ExternalReference(
                    type=ExternalReferenceType.VCS, url=XsUri(where), comment=source.commit or source.version
                )
            ],
        )


def _parts(manifest: Manifest, wheel: Path) -> Iterable[Component]:
    versions = {source.name: source.version for source in manifest.sources}
    for text in _licence_texts(wheel):
        if text in _ROOT:
            continue
        if text not in _PARTS:
            raise Finding(
                f"{wheel.name} carries {text}, and the bill of materials does not know what that is for.",
                remedy="Say so in release/trust/sbom.py, or take it out of the package.",
            )
        part = _PARTS[text]
        yield Component(
            name=part.name,
            version=versions.get(part.within) if part.within else metadata.version(part.name),
            type=ComponentType.LIBRARY,
            bom_ref=f"part:{text}",
            description=f"Compiled in; {text} in the wheel has its terms.",
            licenses=[LicenseExpression(part.license)],
        )


def _device_libraries(wheel: Path) -> Iterable[Component]:
    with ZipFile(wheel) as archive:
        for name in sorted(name for name in archive.namelist() if name.endswith(".bc")):
            stem = Path(name).name.partition(".")[0]
            if stem not in _DEVICE_LIBRARIES:
                raise Finding(
                    f"{wheel.name} carries {name}, and the bill of materials does not know whose that is.",
                    remedy="Say so in release/trust/sbom.py, or take it out of the package.",
                )
            yield Component(
                name=Path(name).name,
                type=ComponentType.FILE,
                bom_ref=f"file:{name}",
                description="LLVM bitcode for a GPU, which compiled kernels take functions from.",
                licenses=[LicenseExpression(_DEVICE_LIBRARIES[stem])],
                hashes=[HashType(alg=HashAlgorithm.SHA_256, content=sha256(archive.read(name)).hexdigest())],
            )


def _tools(manifest: Manifest) -> Iterable[Component]:
    """What loads the package, and what made it: neither is in it."""
    pins, tools = manifest.pins, manifest.toolchain
    yield Component(
        name="pyodide",
        version=pins.pyodide.version,
        type=ComponentType.PLATFORM,
        bom_ref=f"pkg:npm/pyodide@{pins.pyodide.version}",
        purl=PackageURL(type="npm", name="pyodide", version=pins.pyodide.version),
        scope=ComponentScope.REQUIRED,
        description="Loads the package, which does not contain it.",
        licenses=[LicenseExpression("MPL-2.0")],
    )
    for name, version, digest, license_ in (
        ("emscripten", tools.emscripten, tools.emscripten_digest, "MIT OR NCSA"),
        ("binaryen", tools.binaryen, tools.binaryen_digest, "Apache-2.0"),
    ):
        yield Component(
            name=name,
            version=version,
            type=ComponentType.APPLICATION,
            bom_ref=f"tool:{name}",
            scope=ComponentScope.EXCLUDED,
            description="Built the package, which does not contain it.",
            licenses=[LicenseExpression(license_)],
            hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest)],
        )


def _licence_texts(wheel: Path) -> Sequence[str]:
    with ZipFile(wheel) as archive:
        return sorted(Path(name).name for name in archive.namelist() if ".dist-info/licenses/" in name)


def _license_of(wheel: Path) -> str:
    with ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return Metadata.from_email(archive.read(name)).license_expression or "NOASSERTION"
