"""LLVM, MLIR and LLD as bitcode libraries for WebAssembly: just those that Triton links, built once and kept.

>>> libraries = build_llvm(request, toolchain, store=DirectoryStore(cache_folder() / "llvm"), progress=Progress())
>>> libraries.prefix / "lib" / "cmake" / "mlir"
"""

from release.llvm.build import LLVMLibraries, build_llvm
from release.llvm.key import LLVMRequest, key_inputs, llvm_key
from release.llvm.store import DirectoryStore, Store

__all__ = ["DirectoryStore", "LLVMLibraries", "LLVMRequest", "Store", "build_llvm", "key_inputs", "llvm_key"]
