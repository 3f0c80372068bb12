"""A C++ exception thrown in the archive arrives in Python as its own type, with what it carries."""

import exprc

MISTAKES = {
    "1 +": (3, "expected a value, found the end"),
    "(1": (2, "expected ')'"),
    "1 2": (2, "expected an operator"),
    "2x": (0, "not a number: 2x"),
    "sin(x)": (0, "unknown function 'sin'"),
    "a ? b": (2, "expected an operator"),
    "(" * 300: (201, "nested too deep"),
}

for source, (offset, message) in MISTAKES.items():
    try:
        exprc.compile(source)
    except exprc.CompileError as error:
        assert isinstance(error, ValueError)
        assert (error.offset, str(error)) == (offset, message), (source, error.offset, str(error))
    else:
        raise AssertionError(f"{source!r} compiled")

try:
    exprc.self_test("unheard of")
except ValueError as error:  # std::invalid_argument, as pybind11 translates it
    assert "unheard of" in str(error)
else:
    raise AssertionError("no exception")
