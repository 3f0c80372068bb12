// LLVM 22 moved this header; Triton of before asks for it here.
#if __has_include("llvm/Plugins/PassPlugin.h")
#include "llvm/Plugins/PassPlugin.h"
#else
#include_next "llvm/Passes/PassPlugin.h"
#endif
