// The Python face of the compiler, and the places where C++ and Python exceptions cross each other's frames.
#include <cstdlib>

#include <pybind11/pybind11.h>

#include "compiler.h"

namespace py = pybind11;

PYBIND11_MODULE(_exprc, module) {
  static py::exception<exprc::CompileError> compile_error(module, "CompileError", PyExc_ValueError);
  py::register_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer)
        std::rethrow_exception(pointer);
    } catch (const exprc::CompileError &error) {
      py::object instance = py::reinterpret_borrow<py::object>(compile_error)(error.what());
      instance.attr("offset") = error.offset;
      py::set_error(compile_error, instance);
    }
  });

  module.def("compile", &exprc::compile, py::arg("source"), "Lower an expression to textual SSA.");
  module.def("self_test", &exprc::self_test, py::arg("kind"), "Throw and catch inside the archive.");
  module.def(
      "call", [](const py::function &function) { return function(); }, "Call back; exceptions pass through C++.");
  module.def(
      "call_and_catch",
      [](const py::function &function) -> std::string {
        try {
          return py::str(function());
        } catch (py::error_already_set &error) {
          return "caught " + std::string(py::str(error.type().attr("__name__")));
        }
      },
      "Call back; a Python exception is caught in C++.");
  module.def("abort", [] { std::abort(); }, "End the interpreter with a fatal error.");
  module.def(
      "word_sizes", [] { return py::make_tuple(sizeof(long), sizeof(std::size_t), sizeof(void *)); },
      "The sizes of long, size_t and void *, in bytes.");
}
