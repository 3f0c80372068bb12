"""A Triton of one file: CMake like Triton's, and a library that prints with MLIR and lists LLVM's targets."""

from pathlib import Path

from tests.check.oracle.texts import write

CMAKE = """\
cmake_minimum_required(VERSION 3.20)
project(triton CXX C)
set(CMAKE_CXX_FLAGS "${CMAKE_CXX_FLAGS} -fPIC -std=gnu++17 -Werror -fvisibility=hidden")
find_package(MLIR REQUIRED CONFIG PATHS ${MLIR_DIR})
list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
include(TableGen)
include(AddLLVM)
include(AddMLIR)
find_package(Python3 REQUIRED COMPONENTS Development.Module Interpreter)
find_package(pybind11 CONFIG REQUIRED)
include_directories(${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
add_library(triton SHARED main.cc)
target_link_libraries(triton PRIVATE MLIRIR MLIRLLVMDialect LLVMNVPTXCodeGen LLVMAMDGPUCodeGen LLVMX86CodeGen
  Python3::Module pybind11::headers stdc++fs z)
configure_file("${LLVM_SYSPATH}/bin/FileCheck" "${TRITON_WHEEL_DIR}/FileCheck" COPYONLY)
set(CMAKE_SHARED_LINKER_FLAGS "${CMAKE_SHARED_LINKER_FLAGS} -Wl,--exclude-libs,ALL")
"""
MAIN = """\
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassPlugin.h"
#include "llvm/Support/TargetSelect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/MLIRContext.h"
#include <pybind11/pybind11.h>

PYBIND11_MODULE(libtriton, m) {
  m.def("type", [] {
    mlir::MLIRContext context;
    std::string text;
    llvm::raw_string_ostream(text) << mlir::RankedTensorType::get({2, 3}, mlir::Float32Type::get(&context));
    return text;
  });
  m.def("targets", [] {
    llvm::InitializeAllTargetInfos();
    std::string text;
    for (const auto &target : llvm::TargetRegistry::targets())
      text += std::string(target.getName()) + " ";
    return text;
  });
}
"""


def write_tiny_triton(folder: Path, main: str = MAIN) -> Path:
    """Write the sources."""
    return write(folder, {"CMakeLists.txt": CMAKE, "main.cc": main})


def write_python(folder: Path) -> Path:
    """Write what is beside the library."""
    return write(folder, {"triton/__init__.py": "", "triton/language/__init__.py": "def here():\n    pass\n"})
