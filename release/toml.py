"""Reading TOML into a model: every mistake is reported with its file, its line and what to write instead."""

from __future__ import annotations

import difflib
import re
import tomllib
from pathlib import Path

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from release.errors import WrongUsage


def parse_toml[Model: BaseModel](path: Path, model: type[Model], *, help_page: str) -> Model:
    """Read ``path`` as a ``model``; ``help_page`` is where its keys are explained.

    Raises WrongUsage for whatever the model does not allow.
    """
    try:
        text = path.read_text(encoding="utf-8")
        return model.model_validate(tomllib.loads(text))
    except OSError as error:
        raise WrongUsage(f"Cannot read {path}: {error.strerror}.", remedy="Give the path of a TOML file.") from error
    except UnicodeDecodeError as error:
        raise WrongUsage(f"{path} is not UTF-8 text.", remedy="Write it again as UTF-8.") from error
    except tomllib.TOMLDecodeError as error:
        raise WrongUsage(f"{path} is not valid TOML: {error}.", remedy="Mend that line.") from error
    except ValidationError as error:
        # A misspelt key is both unknown and missing: the unknown one is the one to point at.
        first = min(error.errors(), key=lambda each: each["type"] != "extra_forbidden")
        line = line_of(text, first["loc"])
        where = ".".join(str(part) for part in first["loc"]) or model.__name__
        remedy = _remedy(first, error.errors(), help_page)
        raise WrongUsage(f"{path}:{line}: {where}: {_reason(first)}.", remedy=remedy) from error


def _reason(error: ErrorDetails) -> str:
    match error["type"]:
        case "extra_forbidden":
            return "unknown key"
        case "missing":
            return "missing"
        case "value_error":
            return error["msg"].removeprefix("Value error, ")
        case "string_pattern_mismatch":
            return f"{error['input']!r} is not of the form {error['ctx']['pattern']}"
        case _:
            return f"{error['msg'][0].lower()}{error['msg'][1:]}, found {error['input']!r}"


def _remedy(error: ErrorDetails, errors: list[ErrorDetails], help_page: str) -> str:
    key = str(error["loc"][-1]) if error["loc"] else ""
    if error["type"] == "extra_forbidden":
        missing = [str(other["loc"][-1]) for other in errors if other["type"] == "missing"]
        if similar := difflib.get_close_matches(key, missing, n=1):
            return f"Write {similar[0]!r} instead of {key!r}."
        return f"Remove {key!r}; {help_page} lists the keys."
    if error["type"] == "missing":
        return f"Add {key!r}; {help_page} says what it means."
    if key == "commit":
        return "Write the full 40-digit commit, as `git rev-parse` prints it."
    return f"Correct the value; {help_page} says what is allowed."


def line_of(text: str, location: tuple[int | str, ...]) -> int:
    """Find the line of a key in TOML text; a key that is not there is placed at the header of its table."""
    want = [part for part in location if isinstance(part, str)]
    index = next((part for part in location if isinstance(part, int)), 0)
    table: list[str] = []
    seen: dict[str, int] = {}
    best, depth = 1, -1
    for number, line in enumerate(text.splitlines(), start=1):
        if header := re.match(r"\s*\[(\[?)\s*([^\[\]]+?)\s*\]", line):
            table = header[2].split(".")
            if header[1]:
                seen[header[2]] = seen.get(header[2], -1) + 1
            path = table
        elif key := re.match(r"""\s*["']?([\w.-]+)["']?\s*=""", line):
            path = [*table, *key[1].split(".")]
        else:
            continue
        if path == want[: len(path)] and len(path) > depth and seen.get(".".join(table), index) == index:
            best, depth = number, len(path)
    return best
