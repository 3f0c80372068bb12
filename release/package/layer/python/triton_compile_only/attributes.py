"""LLVM function attributes, set on the text of a module: for Tritons that have no option for them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

OPTION = "llvm_fn_attrs"
"""The option's name, as Triton has had it since May 2026; it takes ``{name: value}``, pairs, or ``"a=1,b=2"``."""

_KERNEL = re.compile(r"^define (?:[\w()]+ )*amdgpu_kernel void @.*$", re.MULTILINE)
_GROUP = re.compile(r"#(\d+)(?= (?:[!{]|align|gc|prefix|comdat|section|personality)|\s*$)")
_DEFINITION = re.compile(r"^attributes #(\d+) = \{(.*)\}$", re.MULTILINE)


def pairs_of(value: str | Mapping[str, object] | Iterable[Sequence[object]]) -> tuple[tuple[str, str], ...]:
    """Return the attributes that an option's value names. Raises ValueError for what is none."""
    if isinstance(value, str):
        value = [part.partition("=")[::2] for part in value.split(",") if part]
    items: Iterable[Sequence[object]] = value.items() if isinstance(value, Mapping) else value
    pairs = []
    for item in items:
        if isinstance(item, str) or len(item) != 2 or not str(item[0]).strip():
            raise ValueError(f"{item!r} is not a pair of an LLVM attribute's name and value")
        pairs.append((str(item[0]).strip(), str(item[1]).strip()))
    return tuple(pairs)


def set_attributes(llir: str, attributes: Sequence[tuple[str, str]]) -> str:
    """Return the module with the attributes set on its kernel; one that is there already gets the new value.

    Raises ValueError for a module that has not exactly one kernel, or whose kernel has no attributes yet: Triton's
    always has.
    """
    kernels = _KERNEL.findall(llir)
    if len(kernels) != 1:
        raise ValueError(f"the LLVM module has {len(kernels)} kernels, not one")
    head = kernels[0]
    groups = dict(_DEFINITION.findall(llir))
    used = _GROUP.search(head)
    if not used or used[1] not in groups:
        raise ValueError(f"the kernel has no group of attributes: {head}")
    body = groups[used[1]]
    for name, value in attributes:
        body = re.sub(rf' "{re.escape(name)}"(="[^"]*")?(?= )', "", body)
        body = f'{body}"{name}"="{value}" ' if value else f'{body}"{name}" '
    new = max(map(int, groups)) + 1  # a group of its own: other functions may share the old one
    llir = llir.replace(head, f"{head[: used.start()]}#{new}{head[used.end() :]}", 1)
    last = list(_DEFINITION.finditer(llir))[-1].end()
    return f"{llir[:last]}\nattributes #{new} = {{{body}}}{llir[last:]}"
