import inspect
import re
from pathlib import Path
from typing import Any

from triton_compile_only.targets import parse_target

from release.check.cases import load_cases
from release.check.kernels import MODULES
from release.check.kernels.contract import CONTRACT, OUTPUT
from release.check.kernels.programs import kernels_program, supplied_program, write_cases
from release.check.kernels.supplied import Supplied

STAGES = {"ttir", "ttgir", "llir", "ptx", "amdgcn"}


def test_names_are_file_names_and_unique(kernels: dict[str, tuple[Any, ...]]) -> None:
    names = [kernel.name for declared in kernels.values() for kernel in declared]
    assert len(set(names)) == len(names) >= 14
    assert all(re.fullmatch(r"[a-z0-9-]+", name) for name in names)


def test_every_parameter_has_a_type_or_a_value(kernels: dict[str, tuple[Any, ...]]) -> None:
    for kernel in (kernel for declared in kernels.values() for kernel in declared):
        parameters = inspect.signature(kernel.function).parameters
        assert set(kernel.signature) | set(kernel.constexprs) == set(parameters), kernel.name
        assert not set(kernel.signature) & set(kernel.constexprs), kernel.name
        assert set(kernel.attrs) <= set(parameters), kernel.name


def test_targets_exist_and_what_is_expected_is_of_them(kernels: dict[str, tuple[Any, ...]]) -> None:
    for kernel in (kernel for declared in kernels.values() for kernel in declared):
        assert kernel.targets, kernel.name
        for target in kernel.targets:
            parse_target(target)
        for key, pattern in kernel.expect.items():
            *target, stage = key.split("/")
            assert stage in STAGES, kernel.name
            assert set(target) <= set(kernel.targets), kernel.name
            re.compile(pattern)
        assert set(kernel.options_for) <= set(kernel.targets), kernel.name


def test_the_four_paths_of_the_mission_are_there(kernels: dict[str, tuple[Any, ...]]) -> None:
    assert all({"cuda:80:32", "hip:gfx942:64"} <= set(kernel.targets) for kernel in kernels["matmul"])
    (gemm,) = kernels["gluon_gemm"]
    assert gemm.targets == ("hip:gfx950:64",)
    assert gemm.options["num_warps"] == 4
    assert gemm.options["llvm_fn_attrs"] == {"amdgpu-agpr-alloc": "256"}
    assert gemm.constexprs["stride_bk"] == 1
    assert gemm.constexprs["stride_bn"] == gemm.constexprs["K"]
    assert all(gemm.signature[name].endswith(":16") for name in ("a_ptr", "b_ptr", "c_ptr"))


def test_the_contract_gives_every_parameter_something() -> None:
    assert set(CONTRACT.signature) | set(CONTRACT.constexprs) == set(CONTRACT.parameters)
    assert not set(CONTRACT.signature) & set(CONTRACT.constexprs)
    assert set(CONTRACT.constexprs) >= CONTRACT.constant


def test_the_cases_are_as_a_check_takes_them(tmp_path: Path) -> None:
    kernel = Supplied(function="v9", source="'''kernel'''\n", sha256="0" * 64, companions={"common": "x = 1\n"})
    cases = load_cases(write_cases(tmp_path, kernel))
    names = [case.name for case in cases]
    assert names == [*(module.replace("_", "-") for module in MODULES), "kernel-error", "unknown-target", OUTPUT]
    for case in cases:
        compile(case.program.read_text(), case.program.name, "exec")


def test_a_program_carries_what_it_compiles_and_no_more() -> None:
    program = kernels_program("softmax")
    assert "def softmax(" in program
    assert "def matmul(" not in program
    assert "import requests" not in program
    kernel = Supplied(function="v9", source="'''kernel'''\n", sha256="0" * 64, companions={"common": "x = 1\n"})
    program = supplied_program(kernel)
    assert "kernel'''" in program
    assert "'common.py': 'x = 1\\n'" in program
    assert "def softmax(" not in program
