"""The distribution's metadata: what the package is called, what it is for, and that it needs nothing else."""

from __future__ import annotations

from dataclasses import dataclass

from packaging.metadata import InvalidMetadata, Metadata, RawMetadata, RFC822Message
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

import release
from release.errors import WrongUsage
from release.package.abi import wheel_tag
from release.package.model import Contents
from release.pins.model import PinSet

_DESCRIPTION = """\
{summary}.

A WebAssembly build for Pyodide {pyodide} (Python {python}, ABI {abi}). In Pyodide:

```js
await pyodide.loadPackage(url_of_the_wheel);
```
"""


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """Name and version as file names have them, and the files of the ``dist-info`` folder without ``RECORD``."""

    name: str
    version: str
    files: dict[str, bytes]

    @property
    def stem(self) -> str:
        """What every file name of the package begins with, such as ``exprc-1.0.0``."""
        return f"{self.name}-{self.version}"

    @property
    def dist_info(self) -> str:
        """The folder of the metadata, such as ``exprc-1.0.0.dist-info``."""
        return f"{self.stem}.dist-info"


def describe(contents: Contents, pins: PinSet) -> Distribution:
    """Write the metadata of ``contents`` for the Pyodide of ``pins``.

    Raises WrongUsage for a name, a version or a licence that the packaging standards do not allow.
    """
    metadata = _metadata(contents, pins)
    files = {
        "METADATA": _text(metadata),
        "WHEEL": _wheel(pins),
        **{f"licenses/{name}": path.read_bytes() for name, path in contents.license_files.items()},
    }
    if contents.entry_points:
        files["entry_points.txt"] = contents.entry_points.encode()
    return Distribution(
        name=canonicalize_name(contents.name).replace("-", "_"), version=str(metadata.version), files=files
    )


def _metadata(contents: Contents, pins: PinSet) -> Metadata:
    raw = RawMetadata(
        metadata_version="2.4",
        name=contents.name,
        version=_version(contents.version),
        summary=contents.summary,
        license_expression=contents.license,
        license_files=list(contents.license_files),
        # Not >=: a release candidate of 3.15 is older than 3.15, and the ABI binds the minor version anyway.
        requires_python=f"=={pins.pyodide.python_minor}.*",
        classifiers=["Environment :: WebAssembly :: Emscripten"],
        description_content_type="text/markdown",
        description=_DESCRIPTION.format(
            summary=contents.summary.rstrip("."),
            pyodide=pins.pyodide.version,
            python=pins.pyodide.python,
            abi=pins.pyodide.abi,
        ),
    )
    try:
        return Metadata.from_raw(raw)
    except ExceptionGroup as group:
        first = group.exceptions[0]
        field = first.field if isinstance(first, InvalidMetadata) else "metadata"
        raise WrongUsage(
            f"The package {contents.name!r} has a bad {field}: {str(first).rstrip('.')}.",
            remedy="Correct it where the package is described; packaging.python.org lists what core metadata allows.",
        ) from group


def _text(metadata: Metadata) -> bytes:
    # packaging writes `name:`; twine and Pyodide look for `Name:`, letter by letter.
    message, titled = metadata.as_rfc822(), RFC822Message()
    for field, value in message.items():
        titled[field.title()] = value
    titled.set_payload(message.get_payload())
    return titled.as_bytes()


def _version(text: str) -> str:
    try:
        return str(Version(text))
    except InvalidVersion as error:
        raise WrongUsage(
            f"The package version {text!r} is not a Python version (PEP 440).", remedy="Write one such as 3.7.0.post1."
        ) from error


def _wheel(pins: PinSet) -> bytes:
    generator = f"triton-wasm-release {release.__version__}"
    return (f"Wheel-Version: 1.0\nGenerator: {generator}\nRoot-Is-Purelib: false\nTag: {wheel_tag(pins)}\n").encode()
