"""What a compiler on a 32-bit host may cut or wrap: numbers beyond 32 bits, and many arguments."""

import triton
import triton.language as tl

from release.check.kernels.declaration import (
    AMPERE,
    BLACKWELL,
    CDNA3,
    CDNA4,
    EVERYWHERE,
    GFX1250,
    HOPPER,
    RDNA3,
    Kernel,
)

NVIDIA = (AMPERE, HOPPER)
WIDER = (*EVERYWHERE, BLACKWELL, RDNA3, GFX1250)
"""The warps of 32 threads of AMD and the newest target of each backend as well."""


@triton.jit
def wide_constants(signed_ptr, unsigned_ptr, double_ptr, FACTOR: tl.constexpr, GREATEST: tl.constexpr):
    tl.store(signed_ptr, 4294967297)
    tl.store(signed_ptr + 1, -9223372036854775807 - 1)
    tl.store(signed_ptr + 2, 9223372036854775807)
    tl.store(signed_ptr + 3, tl.program_id(0).to(tl.int64) * FACTOR)
    tl.store(signed_ptr + 8589934592, 2147483648)
    tl.store(unsigned_ptr, tl.full((), GREATEST, tl.uint64))
    tl.store(unsigned_ptr + 1, tl.full((), 9223372036854775809, tl.uint64))
    tl.store(double_ptr, tl.full((), 0.1, tl.float64))
    tl.store(double_ptr + 1, tl.full((), -1.7976931348623157e308, tl.float64))
    tl.store(double_ptr + 2, tl.full((), 2.2250738585072014e-308, tl.float64))
    tl.store(double_ptr + 3, tl.full((), 3.141592653589793, tl.float64) * tl.program_id(0))


@triton.jit
def wide_offsets(x_ptr, out_ptr, stride, n, STRIDE: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    # Divisible by 2 ** 33 whatever the row: vectors of four, where a cut factor of zero would say nothing.
    x = tl.load(x_ptr + row * STRIDE + column + stride * 4294967296)
    inside = row * STRIDE + column < n
    for step in range(n, n + 17179869184, 8589934592):
        x += tl.load(x_ptr + step + column, mask=inside, other=0)
    tl.store(out_ptr + (row << 33) + column, x // 4294967311 + x % 1099511627776, mask=inside)


@triton.jit
def near_limits(x_ptr, out_ptr, ranged_ptr, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    # Of four bytes each: all below 2 ** 31 bytes, the last beyond; and an eighth of any program, of which 2 ** 31 are.
    below = (program & 1023) * 524288 + column
    beyond = (program & 1023) * 524801 + column
    eighth = (program >> 3) + column
    total = tl.load(x_ptr + below) + tl.load(x_ptr + beyond) + tl.load(x_ptr + eighth)
    programs = tl.num_programs(0)
    tl.store(out_ptr + (programs >> 3) + column, total)
    tl.store(ranged_ptr + program * BLOCK + column, total)


@triton.jit
def callee(low, high, scale):
    return high * 4294967297 + low, high.to(tl.float64) * scale


@triton.jit
def wide_arguments(
    p0, p1, p2, p3, p4, p5, p6, p7,
    l0, l1, l2, l3, l4, l5, l6, l7,
    u0, u1, u2, u3, d0, d1, d2, d3,
    b0, s0, t0, i0, i1, f0, h0, b1,
    BLOCK: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0) * l0 + tl.arange(0, BLOCK)
    x = tl.load(p0 + at, mask=(at < l1) & b0, other=l2)
    number, double = callee(l3, l4, d0)
    tl.store(p1 + at, x * number + l5 * l6 + s0 + t0, mask=b1)
    tl.store(p2 + at, x * double + d1 * d2 + f0 + h0)
    tl.store(p3 + at, (x + l7).to(tl.uint64) // (u0 + 1) + tl.umulhi(u1 + at.to(tl.uint64), u2 * u3))
    tl.store(p4 + at, tl.load(p5 + at + i0 * i1) + tl.load(p6 + at) * tl.load(p7 + at) + d3)


@triton.jit
def wide_printing(signed_ptr, unsigned_ptr, double_ptr, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    signed = tl.load(signed_ptr + at)
    unsigned = tl.load(unsigned_ptr + at)
    tl.device_print("signed, unsigned, size", signed, unsigned, n)
    tl.device_print("hexadecimal", unsigned, signed, hex=True)
    tl.device_print("double, pointer", tl.load(double_ptr + at), signed_ptr + n)
    tl.device_assert(
        signed < n,
        "a message that is longer than any short string a library keeps within the string itself, and than a line, "
        "so that its length and all that is computed from it are seen: 9223372036854775807 is the greatest of all",
    )


@triton.jit
def wide_sorting(x_ptr, sorted_ptr, sums_ptr, counts_ptr, gathered_ptr, BLOCK: tl.constexpr, BINS: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at)
    tl.store(sorted_ptr + at, tl.sort(x))
    tl.store(sums_ptr + at, tl.cumsum(x, axis=0) ^ tl.flip(tl.cumsum(x, axis=0, reverse=True), dim=0))
    tl.store(counts_ptr + tl.arange(0, BINS), tl.histogram((x >> 40).to(tl.int32) & (BINS - 1), BINS))
    tl.store(gathered_ptr + at, tl.gather(x, (x & (BLOCK - 1)).to(tl.int32), axis=0))
    both = tl.cat(x, x + 4294967296, can_reorder=True)
    tl.store(gathered_ptr + BLOCK, tl.max(both, axis=0) - tl.min(both, axis=0))
    tl.store(gathered_ptr + BLOCK + 1, tl.argmax(x, axis=0))


@triton.jit
def wide_atomics(x_ptr, unsigned_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * 4294967296 + tl.arange(0, BLOCK)
    old = tl.atomic_add(x_ptr + at, 4294967297, mask=at < n)
    tl.atomic_max(x_ptr + n + at, old)
    tl.atomic_min(unsigned_ptr + at, old.to(tl.uint64))
    tl.atomic_xchg(unsigned_ptr + n + at, old.to(tl.uint64) << 40)
    tl.atomic_cas(x_ptr + n, tl.full((), 9223372036854775807, tl.int64), n)


@triton.jit
def wide_inline_asm(x_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at)
    y = tl.inline_asm_elementwise(
        "mad.lo.s64 $0, $1, 4294967297, $2;", "=l,l,l", [x, x + 1], dtype=tl.int64, is_pure=True, pack=1
    )
    tl.store(out_ptr + at, y)


KERNELS = (
    Kernel(
        name="wide-constants",
        function=wide_constants,
        signature={"signed_ptr": "*i64:16", "unsigned_ptr": "*u64:16", "double_ptr": "*fp64:16"},
        constexprs={"FACTOR": 3 << 40, "GREATEST": (1 << 64) - 1},
        targets=WIDER,
        expect={
            "ttir": r"(?s)\A(?=.*\b4294967297 : i64)(?=.*-9223372036854775808 : i64)(?=.*\b9223372036854775807 : i64)"
            r"(?=.*\b3298534883328 : i64)(?=.*\b8589934592 : i64)(?=.*\b2147483648 : i64)(?=.* -1 : i64)"
            r"(?=.*-9223372036854775807 : i64)(?=.*1\.000000e-01 : f64)(?=.*-1\.797693134\d*[eE]\+308 : f64)"
            r"(?=.*2\.2250738585\d*[eE]-308 : f64)",
            # 2 ** 33 elements of 8 bytes; and the bits of 0.1.
            f"{AMPERE}/llir": r"(?s)\A(?=.*i64 68719476736\b)(?=.*\bi64 4591870180066957722\b)",
        },
    ),
    Kernel(
        name="wide-offsets",
        function=wide_offsets,
        signature={"x_ptr": "*i64:16", "out_ptr": "*i64:16", "stride": "i64", "n": "i64"},
        constexprs={"STRIDE": 1 << 33, "BLOCK": 512},
        targets=WIDER,
        attrs={"n": {"tt.divisibility": 1 << 30}},
        expect={
            "ttir": r"(?s)\A(?=.*tt\.divisibility = 1073741824 : i32)(?=.*\b17179869184 : i64)(?=.*4294967311)"
            r"(?=.*1099511627776)",
            f"{AMPERE}/ptx": r"(?s)ld\.global\.v2\.b64.*ld\.global\.v2\.b64",
            f"{CDNA3}/amdgcn": r"global_load_dwordx4",
        },
    ),
    Kernel(
        name="near-limits",
        function=near_limits,
        signature=dict.fromkeys(("x_ptr", "out_ptr", "ranged_ptr"), "*i32:16"),
        constexprs={"BLOCK": 256},
        targets=(CDNA3, CDNA4, RDNA3, GFX1250),
        attrs={"ranged_ptr": {"tt.pointer_range": 32}},
        # One of the three loads is left: its offset reaches 2 GiB.
        expect={
            f"{target}/ttgir": r"(?s)\A(?=(?:(?!tt\.load).)*tt\.load(?:(?!tt\.load).)*$)"
            r"(?=.*buffer_load.*buffer_load)(?=.*buffer_store.*buffer_store)"
            for target in (CDNA3, CDNA4)
        },
    ),
    Kernel(
        name="wide-arguments",
        function=wide_arguments,
        signature={
            **{f"p{i}": kind for i, kind in enumerate(("*i64:16", "*i64:16", "*fp64", "*u64", *["*fp32:16"] * 4))},
            **{f"l{i}": "i64" for i in range(8)},
            **{f"u{i}": "u64" for i in range(4)},
            **{f"d{i}": "fp64" for i in range(4)},
            "b0": "i1",
            "s0": "i16",
            "t0": "i8",
            "i0": "i32",
            "i1": "u32",
            "f0": "fp32",
            "h0": "fp16",
            "b1": "u1",
        },
        constexprs={"BLOCK": 128},
        targets=WIDER,
        expect={
            f"{AMPERE}/ptx": r"\.param \.u64 \.ptr \.global(.|\n)*_param_3[0-9]\b",
            f"{CDNA3}/amdgcn": r"\.kernarg_segment_size: (1[6-9]\d|2\d\d)\b",
        },
    ),
    Kernel(
        name="wide-printing",
        function=wide_printing,
        signature={"signed_ptr": "*i64:16", "unsigned_ptr": "*u64:16", "double_ptr": "*fp64:16", "n": "i64"},
        constexprs={"BLOCK": 128},
        options={"debug": True},
        targets=(*NVIDIA, CDNA3, CDNA4, RDNA3),
        expect={
            **{
                f"{target}/llir": r"(?s)\A(?=.*%lli)(?=.*%llu)(?=.*0x%016llx)(?=.*%p)"
                r"(?=.*@__assertfail\(ptr, ptr, i32, ptr, i64\))"
                for target in NVIDIA
            },
            "llir": r"9223372036854775807 is the greatest of all",
        },
    ),
    Kernel(
        name="wide-sorting",
        function=wide_sorting,
        signature={
            "x_ptr": "*i64:16",
            "sorted_ptr": "*i64:16",
            "sums_ptr": "*i64:16",
            "counts_ptr": "*i32:16",
            "gathered_ptr": "*i64:16",
        },
        constexprs={"BLOCK": 256, "BINS": 64},
        targets=(AMPERE, CDNA3, RDNA3),
        expect={"ttir": r"tt\.histogram(.|\n)*tt\.gather(.|\n)*tt\.cat"},
    ),
    Kernel(
        name="wide-atomics",
        function=wide_atomics,
        signature={"x_ptr": "*i64:16", "unsigned_ptr": "*u64:16", "n": "i64"},
        constexprs={"BLOCK": 128},
        expect={
            f"{AMPERE}/ptx": r"(?s)atom[.\w:]*\.add\.u64.*atom[.\w:]*\.cas\.b64",
            f"{CDNA3}/amdgcn": r"atomic_cmpswap_x2",
        },
    ),
    Kernel(
        name="wide-inline-asm",
        function=wide_inline_asm,
        signature={"x_ptr": "*i64:16", "out_ptr": "*i64:16"},
        constexprs={"BLOCK": 128},
        targets=(*NVIDIA, BLACKWELL),
        expect={"ptx": r"mad\.lo\.s64 %rd\d+, %rd\d+, 4294967297, %rd\d+"},
    ),
)
