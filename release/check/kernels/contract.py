"""The contract of the "v9" kernel: a Gluon matrix product for gfx950, ours or one that is supplied at run time.

C = A · B with A of M rows of K, B of N rows of K, C of M rows of N, all contiguous in halves of 16-byte alignment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from release.check.kernels.declaration import CDNA4

_K = 4096
_TILES = (4096 // 256) ** 2


@dataclass(frozen=True, kw_only=True)
class Contract:
    """What a kernel has to take, in this order, and what it is compiled with.

    Every parameter is either in ``signature`` or in ``constexprs``; those of ``constant`` the kernel itself must
    declare as ``constexpr``.
    """

    parameters: tuple[str, ...]
    constant: frozenset[str]
    signature: Mapping[str, str]
    constexprs: Mapping[str, Any]
    options: Mapping[str, Any]
    target: str


CONTRACT = Contract(
    parameters=(
        *("a_ptr", "b_ptr", "c_ptr", "M", "N", "K"),
        *("stride_am", "stride_ak", "stride_bk", "stride_bn", "stride_cm", "stride_cn"),
        *("BLOCK_M", "BLOCK_N", "BLOCK_K", "GRID_MN", "NUM_XCDS", "GROUP_SIZE_M"),
    ),
    constant=frozenset({"K", "BLOCK_M", "BLOCK_N", "BLOCK_K", "GRID_MN", "NUM_XCDS", "GROUP_SIZE_M"}),
    signature={
        **dict.fromkeys(("a_ptr", "b_ptr", "c_ptr"), "*fp16:16"),
        **dict.fromkeys(("M", "N", "stride_am", "stride_cm"), "i32:16"),
    },
    constexprs={
        "K": _K,
        "stride_ak": 1,
        "stride_bk": 1,
        "stride_bn": _K,
        "stride_cn": 1,
        "BLOCK_M": 256,
        "BLOCK_N": 256,
        "BLOCK_K": 64,
        "GRID_MN": _TILES,
        "NUM_XCDS": 8,
        "GROUP_SIZE_M": 4,
    },
    options={"num_warps": 4, "llvm_fn_attrs": {"amdgpu-agpr-alloc": "256"}},
    target=CDNA4,
)

OUTPUT = "gfx950-v9-beyond-hotloop"
"""The files a supplied kernel gives, less their ``.ttgir``, ``.llir`` and ``.amdgcn``."""
