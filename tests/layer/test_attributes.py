import pytest
from triton_compile_only.attributes import pairs_of, set_attributes

LLIR = """\
define amdgpu_kernel void @gemm(ptr addrspace(1) inreg %0, i32 inreg "x"="#7" %1) local_unnamed_addr #0 !dbg !4 {
  call void @helper() #1
  ret void
}

define internal void @helper() #0 {
  ret void
}

attributes #0 = { nounwind "amdgpu-agpr-alloc"="0" "amdgpu-waves-per-eu"="0, 0" }
attributes #1 = { convergent }

!0 = !{}
"""


def test_an_attribute_is_set_on_the_kernel_alone() -> None:
    text = set_attributes(LLIR, [("amdgpu-agpr-alloc", "256")])
    assert text == LLIR.replace("local_unnamed_addr #0 !dbg", "local_unnamed_addr #2 !dbg").replace(
        "{ convergent }\n",
        '{ convergent }\nattributes #2 = { nounwind "amdgpu-waves-per-eu"="0, 0" "amdgpu-agpr-alloc"="256" }\n',
    )


def test_an_attribute_may_be_new_and_may_have_no_value() -> None:
    text = set_attributes(LLIR, [("amdgpu-agpr-alloc", "0,0"), ("mine", "")])
    assert 'attributes #2 = { nounwind "amdgpu-waves-per-eu"="0, 0" "amdgpu-agpr-alloc"="0,0" "mine" }' in text
    again = set_attributes(text, [("mine", "1"), ("amdgpu-agpr-alloc", "8")])
    assert 'attributes #3 = { nounwind "amdgpu-waves-per-eu"="0, 0" "mine"="1" "amdgpu-agpr-alloc"="8" }' in again


@pytest.mark.parametrize(
    "text",
    [
        LLIR.replace("amdgpu_kernel", "amdgpu_gfx"),
        LLIR.replace("internal void @helper", "amdgpu_kernel void @helper"),
        LLIR.replace(" #0 !dbg !4", " !dbg !4"),
    ],
    ids=["no kernel", "two kernels", "no attributes"],
)
def test_a_module_of_another_shape_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="kernel"):
        set_attributes(text, [("amdgpu-agpr-alloc", "256")])


@pytest.mark.parametrize(
    "value",
    ["a=1,b=", {"a": 1, "b": ""}, (("a", "1"), ("b", "")), [["a", 1], ["b", ""]]],
    ids=["text", "mapping", "tuples", "lists"],
)
def test_the_option_is_taken_in_every_form_that_triton_takes(value: object) -> None:
    assert pairs_of(value) == (("a", "1"), ("b", ""))  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [["ab"], [("a",)], [("", "1")], [("a", "b", "c")]])
def test_what_is_no_pair_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="not a pair"):
        pairs_of(value)  # type: ignore[arg-type]
