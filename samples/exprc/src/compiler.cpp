#include "compiler.h"

#include <cctype>
#include <charconv>
#include <cmath>
#include <exception>
#include <map>
#include <sstream>
#include <string_view>
#include <vector>

namespace exprc {
namespace {

// A value is the text that names it: "%x" for a parameter, "%3" for an instruction.
using Value = std::string;

std::string spell(double number) {
  char text[32];
  auto [end, error] = std::to_chars(text, text + sizeof text, number);
  return error == std::errc() ? std::string(text, end) : "nan";
}

// Emits instructions, each distinct one once.
class Builder {
public:
  Value parameter(const std::string &name) {
    for (const std::string &known : parameters)
      if (known == name)
        return "%" + name;
    parameters.push_back(name);
    return "%" + name;
  }

  Value constant(double number) {
    Value value = emit("const " + spell(number));
    constants[value] = number;
    return value;
  }

  Value binary(const std::string &operation, const Value &left, const Value &right) {
    auto a = constants.find(left), b = constants.find(right);
    if (a != constants.end() && b != constants.end())
      return constant(fold(operation, a->second, b->second));
    return emit(operation + " " + left + ", " + right);
  }

  Value unary(const std::string &operation, const Value &operand) { return emit(operation + " " + operand); }

  std::string function(const Value &result) const {
    std::ostringstream text;
    text << "func @expr(";
    for (std::size_t i = 0; i < parameters.size(); ++i)
      text << (i ? ", " : "") << "%" << parameters[i] << ": f64";
    text << ") -> f64 {\n";
    for (std::size_t i = 0; i < instructions.size(); ++i)
      text << "  %" << i << " = " << instructions[i] << "\n";
    text << "  return " << result << "\n}\n";
    return text.str();
  }

private:
  Value emit(const std::string &instruction) {
    auto [place, is_new] = numbers.emplace(instruction, instructions.size());
    if (is_new)
      instructions.push_back(instruction);
    return "%" + std::to_string(place->second);
  }

  static double fold(const std::string &operation, double a, double b) {
    if (operation == "add")
      return a + b;
    if (operation == "sub")
      return a - b;
    if (operation == "mul")
      return a * b;
    if (operation == "div")
      return a / b;
    return std::pow(a, b);
  }

  std::vector<std::string> parameters;
  std::vector<std::string> instructions;
  std::map<std::string, std::size_t> numbers;
  std::map<Value, double> constants;
};

// Recursive descent; each rule returns the value of what it has read.
class Parser {
public:
  explicit Parser(std::string_view source) : source(source) {}

  std::string parse() {
    Value result = sum();
    if (peek() != '\0')
      fail("expected an operator");
    return builder.function(result);
  }

private:
  Value sum() {
    Value left = product();
    while (peek() == '+' || peek() == '-') {
      const char *operation = take() == '+' ? "add" : "sub";
      left = builder.binary(operation, left, product());
    }
    return left;
  }

  Value product() {
    Value left = power();
    while (peek() == '*' || peek() == '/') {
      const char *operation = take() == '*' ? "mul" : "div";
      left = builder.binary(operation, left, power());
    }
    return left;
  }

  Value power() {
    if (peek() == '-') {
      take();
      return builder.unary("neg", power());
    }
    Value base = atom();
    if (peek() != '^')
      return base;
    take();
    return builder.binary("pow", base, power());
  }

  Value atom() {
    char next = peek();
    if (next == '(') {
      take();
      if (++depth > 200)
        fail("nested too deep");
      Value inner = sum();
      expect(')');
      --depth;
      return inner;
    }
    if (std::isdigit(static_cast<unsigned char>(next)) || next == '.')
      return number();
    if (std::isalpha(static_cast<unsigned char>(next)) || next == '_')
      return name();
    fail(next == '\0' ? "expected a value, found the end" : std::string("expected a value, found '") + next + "'");
  }

  Value number() {
    double value = 0;
    const char *begin = source.data() + position, *end = source.data() + source.size();
    std::string digits;
    while (begin != end && (std::isalnum(static_cast<unsigned char>(*begin)) || *begin == '.'))
      digits += *begin++;
    std::size_t read = 0;
    try {
      value = std::stod(digits, &read); // throws what std throws: the catch is part of what this sample proves
    } catch (const std::exception &) {
      fail("not a number: " + digits);
    }
    if (read != digits.size())
      fail("not a number: " + digits);
    position += digits.size();
    return builder.constant(value);
  }

  Value name() {
    std::size_t begin = position;
    while (position < source.size() &&
           (std::isalnum(static_cast<unsigned char>(source[position])) || source[position] == '_'))
      ++position;
    std::string text(source.substr(begin, position - begin));
    if (peek() != '(')
      return builder.parameter(text);
    if (text != "sqrt" && text != "abs" && text != "exp" && text != "log") {
      position = begin;
      fail("unknown function '" + text + "'");
    }
    take();
    Value argument = sum();
    expect(')');
    return builder.unary(text, argument);
  }

  char peek() {
    while (position < source.size() && std::isspace(static_cast<unsigned char>(source[position])))
      ++position;
    return position < source.size() ? source[position] : '\0';
  }

  char take() { return source[position++]; }

  void expect(char wanted) {
    if (peek() != wanted)
      fail(std::string("expected '") + wanted + "'");
    take();
  }

  [[noreturn]] void fail(const std::string &message) const { throw CompileError(message, position); }

  std::string_view source;
  std::size_t position = 0;
  int depth = 0;
  Builder builder;
};

struct CountsDestruction {
  int &count;
  ~CountsDestruction() { ++count; }
};

[[noreturn]] __attribute__((noinline)) void throw_past_a_destructor(int &count) {
  CountsDestruction guard{count};
  throw CompileError("unwound", 7);
}

} // namespace

std::string compile(const std::string &source) { return Parser(source).parse(); }

std::string self_test(const std::string &kind) {
  int destroyed = 0;
  if (kind == "throw")
    try {
      throw_past_a_destructor(destroyed);
    } catch (const CompileError &error) {
      return error.what() + std::string(" at ") + std::to_string(error.offset);
    }
  if (kind == "rethrow") {
    std::exception_ptr kept;
    try {
      throw_past_a_destructor(destroyed);
    } catch (...) {
      kept = std::current_exception();
    }
    try {
      std::rethrow_exception(kept);
    } catch (const std::runtime_error &error) {
      return std::string("rethrown ") + error.what();
    }
  }
  if (kind == "nested")
    try {
      try {
        throw 42;
      } catch (int number) {
        throw std::logic_error("from " + std::to_string(number));
      }
    } catch (const std::logic_error &error) {
      return error.what();
    }
  if (kind == "destructor") {
    try {
      throw_past_a_destructor(destroyed);
    } catch (...) {
    }
    return std::to_string(destroyed) + " destroyed";
  }
  if (kind == "standard")
    try {
      return std::to_string(std::vector<int>(3).at(destroyed + 3));
    } catch (const std::out_of_range &) {
      return "out of range";
    }
  throw std::invalid_argument("unknown kind: " + kind);
}

} // namespace exprc
