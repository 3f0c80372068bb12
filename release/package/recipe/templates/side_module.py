"""Build backend (PEP 517) of one package: link the side module, and pack it with the files that lie here.

``recipe.json`` says how; ``link`` holds the objects, ``files`` what belongs into site-packages. Run by pyodide-build,
which says in WASM_LIBRARY_DIR where the host libraries are and, through sysconfig, what it builds for.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path
from typing import Any

# What pyodide-build sets for a Python that is to say it were the target's. em++ is a Python program, too.
_TARGETS = ("PYTHONPATH", "_PYTHON_HOST_PLATFORM", "_PYTHON_SYSCONFIGDATA_NAME")


def build_wheel(
    wheel_directory: str, config_settings: dict[str, Any] | None = None, metadata_directory: str | None = None
) -> str:
    """Make the wheel in ``wheel_directory`` and return its name."""
    here = Path.cwd()
    recipe = json.loads((here / "recipe.json").read_text())
    module = _link(recipe, here)
    files = {path.relative_to(here / "files").as_posix(): path for path in (here / "files").rglob("*")}
    contents = {name: path.read_bytes() for name, path in files.items() if path.is_file()}
    contents[recipe["module"]] = module.read_bytes()
    version = f"cp{sys.version_info.major}{sys.version_info.minor}"
    tag = f"{version}-{version}-{re.sub(r'[-.]', '_', sysconfig.get_platform())}"
    wheel = f"{recipe['dist_info']}/WHEEL"
    contents[wheel] = re.sub(rb"(?m)^Tag: .*$", f"Tag: {tag}".encode(), contents[wheel])
    name = f"{recipe['dist_info'].removesuffix('.dist-info')}-{tag}.whl"
    _pack(Path(wheel_directory) / name, contents, record=f"{recipe['dist_info']}/RECORD")
    return name


def _link(recipe: dict[str, Any], here: Path) -> Path:
    library = os.environ.get("WASM_LIBRARY_DIR")
    if not library:
        raise SystemExit("WASM_LIBRARY_DIR is not set: this is built by `pyodide build-recipes`, with its host library")
    for name, place in recipe["libraries"].items():
        found, link = Path(library) / place, here / "link" / name
        if not found.exists():
            raise SystemExit(f"{found} is missing: the recipe of the host library did not put it there")
        link.unlink(missing_ok=True)
        link.symlink_to(found)
    environment = {name: value for name, value in os.environ.items() if name not in _TARGETS}
    prefix = recipe["fixed_addresses"]
    try:
        allowed = subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        allowed = False
    for command in recipe["commands"]:
        print(" ".join(command), flush=True)
        before = prefix if allowed and command[0] == "em++" else []
        subprocess.run([*before, *command], cwd=here / "link", env=environment, check=True)
    return here / str(recipe["output"])


def _pack(wheel: Path, contents: dict[str, bytes], *, record: str) -> None:
    lines = []
    for name, content in sorted(contents.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        quoted = '"' + name.replace('"', '""') + '"' if re.search('[",]', name) else name
        lines.append(f"{quoted},sha256={digest},{len(content)}\n")
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:  # it is packed again
        for name, content in sorted(contents.items()):
            archive.writestr(name, content)
        archive.writestr(record, "".join([*lines, f"{record},,\n"]))
