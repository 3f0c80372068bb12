"""Kernels of our own, declared once: for the cases in Pyodide, the native oracle and the benchmark."""

from __future__ import annotations

MODULES = (
    "vector_add",
    "softmax",
    "matmul",
    "reduction",
    "atomics",
    "device_math",
    "fp8",
    "sort_scan",
    "attention",
    "descriptors",
    "print_assert",
    "gluon_gemm",
    "host_width",
    "host_order",
    "host_math",
)
"""The modules of ``ours``, which declare the kernels."""
