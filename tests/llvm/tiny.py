"""Two trees with the shape of LLVM and Triton: a few small libraries that are exported, chosen and installed alike."""

from pathlib import Path

CMAKE = r"""
cmake_minimum_required(VERSION 3.20)
project(LLVM CXX)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
add_custom_command(OUTPUT table.inc
  COMMAND ${CMAKE_COMMAND} -E copy ${CMAKE_CURRENT_SOURCE_DIR}/table.td table.inc DEPENDS table.td)
add_custom_target(tables DEPENDS table.inc)
function(library name)
  add_library(${name} STATIC lib/${name}.cpp)
  add_dependencies(${name} tables)
  target_include_directories(${name} PRIVATE include ${CMAKE_BINARY_DIR})
  target_link_libraries(${name} PUBLIC ${ARGN})
  install(TARGETS ${name} EXPORT LLVMExports ARCHIVE DESTINATION lib COMPONENT ${name})
  set_property(GLOBAL APPEND PROPERTY LIBRARIES ${name})
endfunction()
library(LLVMSupport)
library(LLVMCore LLVMSupport)
library(LLVMPasses PRIVATE LLVMCore)
library(LLVMUnused LLVMCore)
set_source_files_properties(lib/LLVMPasses.cpp PROPERTIES COMPILE_OPTIONS -fconstexpr-steps=1000000000)
get_property(libraries GLOBAL PROPERTY LIBRARIES)
export(TARGETS ${libraries} FILE lib/cmake/llvm/LLVMExports.cmake)
install(DIRECTORY include/ DESTINATION include COMPONENT llvm-headers)
install(EXPORT LLVMExports DESTINATION lib/cmake/llvm COMPONENT cmake-exports)
foreach(extra llvm-headers cmake-exports mlir-headers mlir-cmake-exports lld-headers lld-cmake-exports)
  add_custom_target(${extra})
endforeach()
add_custom_target(distribution)
add_custom_target(install-distribution)
foreach(component ${LLVM_DISTRIBUTION_COMPONENTS})
  add_custom_target(install-${component} DEPENDS ${component}
    COMMAND ${CMAKE_COMMAND} -DCMAKE_INSTALL_COMPONENT=${component} -P ${CMAKE_BINARY_DIR}/cmake_install.cmake)
  add_dependencies(distribution ${component})
  add_dependencies(install-distribution install-${component})
endforeach()
"""
VERSION = "99.0.0git"
SLOW = """\
constexpr int work() { int s = 0; for (int i = 0; i < 2000000; ++i) s ^= i; return s; }
constexpr int w = work();
"""


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def tiny_llvm(root: Path) -> Path:
    """LLVMPasses takes seconds to compile, so that there is something to interrupt."""
    write(root / "llvm/CMakeLists.txt", CMAKE)
    write(root / "llvm/table.td", "inline const char *table() { return __FILE__; }\n")
    write(root / "llvm/include/llvm/value.h", "inline const char *where() { return __FILE__; }\n")
    for name in ("LLVMSupport", "LLVMCore", "LLVMUnused", "LLVMPasses"):
        slow = SLOW if name == "LLVMPasses" else "constexpr int w = 1;\n"
        body = f"const char *{name}(int i) {{ return i > w ? where() : i ? table() : __FILE__; }}\n"
        write(root / f"llvm/lib/{name}.cpp", f'#include "llvm/value.h"\n#include "table.inc"\n{slow}{body}')
    for target in ("X86", "WebAssembly"):
        (root / "llvm/lib/Target" / target).mkdir(parents=True)
    return root


def table_generators(folder: Path, version: str) -> Path:
    """Make a table generator that says it is of a version."""
    program = folder / "llvm-tblgen"
    write(program, f"#!/bin/sh\necho LLVM version {version}\n")
    program.chmod(0o755)
    return folder


def tiny_triton(root: Path) -> Path:
    write(root / "CMakeLists.txt", "# MLIRGone\ntarget_link_libraries(triton LLVMPasses LLVMX86CodeGen ${LLVM_DIR})\n")
    write(root / "lib/CMakeLists.txt", "add_library(LLVMOwn x.cpp)\n")
    return root
