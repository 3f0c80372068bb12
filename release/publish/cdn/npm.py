"""A CDN tree as a package of npm, from where jsDelivr and unpkg serve it."""

from __future__ import annotations

import json
import re
from email.parser import BytesParser
from email.policy import default
from pathlib import Path
from zipfile import ZipFile

from packaging.version import Version

from release.errors import WrongUsage

PACKAGE = "package.json"
README = "README.md"

_NAME = re.compile(r"(@[a-z0-9-~][a-z0-9-._~]*/)?[a-z0-9-~][a-z0-9-._~]*")  # https://docs.npmjs.com/cli/configuring-npm
_LONGEST = 214
_PRE = {"a": "alpha", "b": "beta", "rc": "rc"}


def npm_files(name: str, wheel: Path, loader: str, types: str) -> dict[str, str]:
    """Return what makes a tree the npm package ``name``: ``package.json`` and a readme, by path.

    Version, license and summary are those of ``wheel``; importing the package gives ``loader``, of the ``types``.
    Raises WrongUsage for a name or a version that npm would not take.
    """
    if not _NAME.fullmatch(name) or len(name) > _LONGEST:
        raise WrongUsage(
            f"{name!r} is no name of an npm package.", remedy="Use lower case letters, digits and -, or @SCOPE/NAME."
        )
    said = _metadata(wheel)
    version = semantic_version(str(said["Version"]))
    package = {
        "name": name,
        "version": version,
        "description": str(said["Summary"] or ""),
        "license": str(said["License-Expression"] or "SEE LICENSE IN README.md"),
        "type": "module",
        "exports": {".": {"types": f"./{types}", "default": f"./{loader}"}, "./*": "./*"},
        "types": types,
        "sideEffects": False,
    }
    readme = f"""# {name}

{package["description"]}

```js
import {{ loadTriton }} from "https://cdn.jsdelivr.net/npm/{name}@{version.partition("+")[0]}/{loader}";
const {{ pyodide }} = await loadTriton();
```
"""
    return {PACKAGE: json.dumps(package, indent=2) + "\n", README: readme}


def semantic_version(version: str) -> str:
    """Write a Python version (PEP 440) as npm has it (Semantic Versioning 2.0.0), in the same order of age.

    Raises WrongUsage for an epoch, a post-release, one that is both a pre-release and in development, and more than
    three numbers: npm has no word for them.
    """
    parsed = Version(version)
    both = parsed.pre is not None and parsed.dev is not None
    if parsed.epoch or parsed.is_postrelease or both or len(parsed.release) > len(("major", "minor", "patch")):
        raise WrongUsage(f"npm has no version like {version}.", remedy="Publish this one without --npm.")
    numbers = ".".join(str(number) for number in (*parsed.release, 0, 0)[:3])
    # A development version comes before all others of its number, and "0" before every letter.
    before = f"-0.dev.{parsed.dev}" if parsed.dev is not None else ""
    if parsed.pre is not None:
        before = f"-{_PRE[parsed.pre[0]]}.{parsed.pre[1]}"
    return numbers + before + (f"+{parsed.local}" if parsed.local else "")


def _metadata(wheel: Path) -> dict[str, str | None]:
    with ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        said = BytesParser(policy=default).parsebytes(archive.read(name))
    return {key: said[key] for key in ("Version", "Summary", "License-Expression")}
