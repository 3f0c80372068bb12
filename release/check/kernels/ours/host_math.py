"""Constants that the compiler computes with the mathematical library of its host, and what that library reports.

The host of WebAssembly has musl's library, which rounds some results otherwise than glibc's and reports neither errno
nor floating-point exceptions. LLVM leaves alone what overflows, underflows or is invalid, and knows it by these alone.
"""

import triton
import triton.language as tl

from release.check.kernels.declaration import AMPERE, CDNA3, CDNA4, Kernel


@triton.jit
def folded_math(out_ptr, double_ptr):
    tl.store(out_ptr, tl.exp(tl.full((), 0.3, tl.float32)))
    tl.store(out_ptr + 1, tl.exp2(tl.full((), 0.3, tl.float32)))
    tl.store(out_ptr + 2, tl.log(tl.full((), 0.3, tl.float32)))
    tl.store(out_ptr + 3, tl.log2(tl.full((), 0.3, tl.float32)))
    tl.store(out_ptr + 4, tl.sqrt(tl.full((), 0.3, tl.float32)))
    tl.store(out_ptr + 5, tl.exp(tl.full((), 1000.0, tl.float32)))
    tl.store(double_ptr, tl.exp(tl.full((), 0.3, tl.float64)))
    tl.store(double_ptr + 1, tl.log(tl.full((), 0.3, tl.float64)))
    tl.store(double_ptr + 2, tl.sqrt(tl.full((), 0.3, tl.float64)))


@triton.jit
def folded_apart(out_ptr, double_ptr):
    # Arguments for which musl's result is another one.
    tl.store(double_ptr, tl.sin(tl.full((), -6.937313015487458, tl.float64)))
    tl.store(double_ptr + 1, tl.cos(tl.full((), 29.02290533127554, tl.float64)))
    tl.store(out_ptr, tl.erf(tl.full((), 1.574828028678894, tl.float32)))


@triton.jit
def folded_late(out_ptr, LARGE: tl.constexpr):
    # This is one, which MLIR does not see and LLVM does.
    one = ((tl.program_id(0) | 1) & 1).to(tl.float32)
    tl.store(out_ptr, tl.exp(one * LARGE))
    tl.store(out_ptr + 1, tl.exp(one * -LARGE))
    tl.store(out_ptr + 2, tl.exp(one * 0.3))
    tl.store(out_ptr + 3, tl.log(one * 0.3))
    tl.store(out_ptr + 4, tl.log2(one * 0.3))
    tl.store(out_ptr + 5, tl.sqrt(-one))
    tl.store(out_ptr + 6, tl.exp2(one * LARGE))
    tl.store(out_ptr + 7, tl.sin(one * 0.3))


SIGNATURE = {"out_ptr": "*fp32:16", "double_ptr": "*fp64:16"}

KERNELS = (
    Kernel(
        name="folded-math",
        function=folded_math,
        signature=SIGNATURE,
        targets=(AMPERE, CDNA3),
        expect={
            "ttir": r"(?s)\A(?=.* 1\.34985888 : f32)(?=.* 1\.23114443 : f32)(?=.* -1\.20397282 : f32)"
            r"(?=.* -1\.73696554 : f32)(?=.* 0\.547722578 : f32)(?=.* 0x7F800000 : f32)(?=.* 1\.3498588075760032 : f64)"
            r"(?=.* -1\.2039728043259361 : f64)(?=.* 0\.54772255750516607 : f64)"
        },
    ),
    Kernel(
        name="folded-apart",
        function=folded_apart,
        signature=SIGNATURE,
        targets=(AMPERE, CDNA3),
        expect={
            "ttir": r"(?s)\A(?=.* -0\.60846724254557383 : f64)(?=.* -0\.73266187769726442 : f64)"
            r"(?=.* 0\.974062263 : f32)"
        },
    ),
    Kernel(
        name="folded-late",
        function=folded_late,
        signature={"out_ptr": "*fp32:16"},
        constexprs={"LARGE": 2000.0},
        targets=(AMPERE, CDNA3, CDNA4),
        # Overflow and underflow are left to the GPU; a result of the host's would be an infinity and a zero.
        expect={
            f"{target}/llir": r"(?s)\A(?=.*@llvm\.exp2\.f32\(float 0x40A68AC7C0000000\))"
            r"(?=.*@llvm\.exp2\.f32\(float 0xC0A68AC7C0000000\))(?=.*float 0x3FF5990580000000)"
            for target in (CDNA3, CDNA4)
        },
    ),
)
