"""A Python exception passes through C++ frames, or is caught by them."""

import exprc


def fail():
    raise LookupError("from Python")


def fail_in_cxx():
    exprc.compile("1 +")


for function, expected in ((fail, LookupError), (fail_in_cxx, exprc.CompileError)):
    try:
        exprc.call(function)
    except expected:
        pass
    else:
        raise AssertionError("the exception was lost")
    assert exprc.call_and_catch(function) == f"caught {expected.__name__}"

assert exprc.call(lambda: exprc.call(lambda: 42)) == 42
