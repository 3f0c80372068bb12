# What the overlays have in common: Triton with its two backends as a Python module, and nothing else of it.

# Triton copies FileCheck into its wheel, for tests that ours has not.
set(LLVM_SYSPATH "${CMAKE_BINARY_DIR}/nothing")
file(WRITE "${LLVM_SYSPATH}/bin/FileCheck" "")
set(TRITON_WHEEL_DIR "${CMAKE_BINARY_DIR}/wheel")

set(TRITON_BUILD_PYTHON_MODULE ON CACHE BOOL "")
set(TRITON_BUILD_PROTON OFF CACHE BOOL "")
set(TRITON_BUILD_UT OFF CACHE BOOL "")
set(TRITON_BUILD_WITH_CCACHE OFF CACHE BOOL "")
set(TRITON_CODEGEN_BACKENDS "nvidia;amd" CACHE STRING "")
set(PYBIND11_NOPYTHON ON CACHE BOOL "")
set(pybind11_DIR "${CMAKE_BINARY_DIR}/pybind11/share/cmake/pybind11" CACHE PATH "" FORCE)

include_directories("${CMAKE_CURRENT_LIST_DIR}/include")
# Comes after the -Werror that Triton adds to the flags: another LLVM deprecates other things.
add_compile_options(-Wno-error)
add_subdirectory("${CMAKE_BINARY_DIR}/source" triton EXCLUDE_FROM_ALL)
