// A compiler for arithmetic expressions: source text in, textual SSA out.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>

namespace exprc {

// The source does not compile; `offset` is the byte at which that was noticed.
class CompileError : public std::runtime_error {
public:
  CompileError(const std::string &message, std::size_t offset) : std::runtime_error(message), offset(offset) {}
  std::size_t offset;
};

// Lowers an expression over f64 to one function whose parameters are the names it uses, in order of first use.
// Equal subexpressions are computed once and constants are folded. Throws CompileError.
std::string compile(const std::string &source);

// Throws and catches inside this translation unit; returns what arrived. An object linked without wasm exceptions fails
// here and nowhere else. Kinds: "throw", "rethrow", "nested", "destructor", "standard". Throws std::invalid_argument.
std::string self_test(const std::string &kind);

} // namespace exprc
