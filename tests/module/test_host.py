"""The mathematical functions that the module brings, in a stock Pyodide, beside Emscripten's and this host's."""

import json
import math
import random
import struct
from collections.abc import Sequence
from pathlib import Path

import pybind11
import pytest

from release.check.model import Case
from release.check.node import check_package
from release.module.build import link
from release.module.triton import HOST_OBJECT, compile_host
from release.package.build import build_package
from release.package.model import Contents, Package
from release.pins.load import load_profile
from release.pins.model import PinSet
from release.places import CHECKOUT
from release.progress import Progress
from release.toolchain.model import Toolchain

pytestmark = pytest.mark.slow

QUIET = Progress(quiet=True)
# Through a pointer, as LLVM's constant folding calls them.
MAIN = """\
#include <pybind11/pybind11.h>
#include <cerrno>
#include <cmath>
#include <map>
#include <string>
using Function = double (*)(double);
using FloatFunction = float (*)(float);
PYBIND11_MODULE(hostmath, module) {
  static const std::map<std::string, Function> functions{{"exp", exp}, {"log", log}, {"sqrt", sqrt}, {"sin", sin},
                                                         {"cos", cos}, {"tan", tan}, {"erf", erf}};
  module.def("call", [](const std::string &name, double x) {
    errno = 0;
    double result = functions.at(name)(x);
    return pybind11::make_tuple(result, errno);
  });
  static const std::map<std::string, FloatFunction> floats{
      {"acos", acosf}, {"asin", asinf}, {"atan", atanf}, {"cosh", coshf}, {"erf", erff}, {"expm1", expm1f},
      {"log10", log10f}, {"log1p", log1pf}, {"sinh", sinhf}, {"tan", tanf}, {"tanh", tanhf}};
  module.def("call_float", [](const std::string &name, float x) { return floats.at(name)(x); });
  module.attr("EDOM") = EDOM;
  module.attr("ERANGE") = ERANGE;
}
"""
PROGRAM = """\
import json
from hostmath import EDOM, ERANGE, call, call_float

names = {{EDOM: "EDOM", ERANGE: "ERANGE", 0: None}}
results = []
for name, x in {calls!r}:
    if name.endswith("f") and name != "erf":
        value, number = call_float(name.removesuffix("f"), float.fromhex(x)), 0
    else:
        value, number = call(name, float.fromhex(x))
    results.append((value.hex(), names[number]))
with open("/out/results.json", "w") as file:
    json.dump(results, file)
"""

type Calls = Sequence[tuple[str, float]]


@pytest.fixture(scope="module")
def built(pins: PinSet, toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("host")
    profile = load_profile("release", pins)
    compile_host(profile, toolchain, folder)
    (folder / "main.cc").write_text(MAIN)
    include = (f"-isystem{toolchain.python_include}", f"-isystem{pybind11.get_include()}")
    compiled = toolchain.run(["em++", *profile.compile.flags, *include, "-c", "main.cc", "-o", "main.o"], cwd=folder)
    assert compiled.returncode == 0, compiled.tail
    for name, objects in (("with", ["main.o", HOST_OBJECT]), ("without", ["main.o"])):
        link(objects, folder, "PyInit_hostmath", profile, toolchain, folder / f"{name}.wasm")
        (folder / name / "python").mkdir(parents=True)
        contents = Contents(
            name="hostmath",
            version="1.0",
            summary="Functions",
            license="Apache-2.0",
            license_files={"LICENSE": CHECKOUT / "LICENSE"},
            module=folder / f"{name}.wasm",
            extension="hostmath",
            python=folder / name / "python",
            imports=("hostmath",),
        )
        build_package(contents, pins, pyodide=toolchain.pyodide, folder=folder / name / "package")
    return folder


def results(built: Path, name: str, calls: Calls, toolchain: Toolchain, folder: Path) -> list[tuple[float, str | None]]:
    """Return what each call gives, and the name of the error that it sets."""
    place = built / name / "package"
    program = folder / "program.py"
    program.write_text(PROGRAM.format(calls=[(name, x.hex()) for name, x in calls]))
    package = Package(wheel=next(place.glob("*.whl")), zip=next(place.glob("*.zip")), lock=place / "pyodide-lock.json")
    report = check_package(
        package,
        [Case(name="calls", program=program, limit_seconds=60)],
        loaders=("wheel",),
        imports=("hostmath",),
        toolchain=toolchain,
        keep=folder / name,
        progress=QUIET,
    )
    assert report.passed, report.results[0].message
    found = json.loads((folder / name / "wheel" / "calls" / "files" / "results.json").read_text())
    return [(float.fromhex(value), error) for value, error in found]


def test_errors_are_reported_as_llvm_expects_and_emscripten_does_not(
    built: Path, toolchain: Toolchain, tmp_path: Path
) -> None:
    calls = (("exp", 1000.0), ("exp", -1000.0), ("log", -1.0), ("log", 0.0), ("sqrt", -1.0), ("sin", math.inf))
    fine = (("exp", 0.3), ("exp", math.inf), ("log", 2.0), ("sqrt", 2.0), ("sin", 0.0), ("cos", 1.0))
    errors = [error for _, error in results(built, "with", (*calls, *fine), toolchain, tmp_path)]
    assert errors == ["ERANGE", "ERANGE", "EDOM", "ERANGE", "EDOM", "EDOM", *[None] * 6]
    assert {error for _, error in results(built, "without", calls, toolchain, tmp_path)} == {None}


def test_results_are_rounded_as_on_this_host_far_more_often_than_emscriptens(
    built: Path, toolchain: Toolchain, tmp_path: Path
) -> None:
    arguments = [random.Random(number).uniform(-100, 100) for number in range(4000)]  # noqa: S311 - no secret
    for name, function in (("sin", math.sin), ("cos", math.cos)):
        calls = [(name, x) for x in arguments]
        wanted = [function(x) for x in arguments]
        different = {}
        for variant in ("with", "without"):
            found = [value for value, _ in results(built, variant, calls, toolchain, tmp_path)]
            different[variant] = sum(value != want for value, want in zip(found, wanted, strict=True))
        print(f"{name}: of {len(arguments)}, {different}")
        assert different["without"] > 20
        assert different["with"] * 4 < different["without"]


def test_results_of_float_are_rounded_correctly_as_glibcs_are_and_emscriptens_are_not(
    built: Path, toolchain: Toolchain, tmp_path: Path
) -> None:
    names = ("acos", "asin", "atan", "cosh", "erf", "expm1", "log10", "log1p", "sinh", "tan", "tanh")
    arguments = [single(random.Random(number).uniform(0.001, 1)) for number in range(1000)]  # noqa: S311 - no secret
    calls = [(f"{name}f", x) for name in names for x in arguments]
    wanted = [single(getattr(math, name)(x)) for name in names for x in arguments]
    assert [value for value, _ in results(built, "with", calls, toolchain, tmp_path)] == wanted
    found = [value for value, _ in results(built, "without", calls, toolchain, tmp_path)]
    assert sum(value != want for value, want in zip(found, wanted, strict=True)) > 100


def single(x: float) -> float:
    """Return ``x`` rounded to a float of 32 bits."""
    return float(struct.unpack("f", struct.pack("f", x))[0])
