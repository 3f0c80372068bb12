import pytest
from triton_compile_only.targets import Target, UnknownTarget, parse_target, targets


def test_every_target_is_read_as_it_is_written() -> None:
    assert len(targets()) > 20
    for target in targets():
        assert parse_target(str(target)) == target


def test_the_architecture_is_a_number_for_nvidia_and_a_name_for_amd() -> None:
    assert parse_target("cuda:80:32") == Target("cuda", 80, 32)
    assert parse_target("hip:gfx942:64") == Target("hip", "gfx942", 64)


@pytest.mark.parametrize(
    "text",
    ["", "cuda", "cuda:80", "cuda:080:32", "cuda:80:64", "cuda:81:32", "hip:gfx942:32", "hip:gfx9:64", "CUDA:80:32"],
)
def test_another_is_refused_with_the_list_of_those_there_are(text: str) -> None:
    with pytest.raises(UnknownTarget) as caught:
        parse_target(text)
    message = str(caught.value)
    assert repr(text) in message
    assert all(str(target) in message for target in targets())


@pytest.mark.parametrize(
    ("text", "meant"), [("cuda:80", "cuda:80:32"), ("cuda:80:64", "cuda:80:32"), ("hip:gfx942:32", "hip:gfx942:64")]
)
def test_a_wrong_warp_size_is_put_right(text: str, meant: str) -> None:
    with pytest.raises(UnknownTarget, match=f"Did you mean '{meant}'"):
        parse_target(text)


def test_a_target_gets_a_ptx_version_that_knows_it() -> None:
    assert parse_target("cuda:80:32").ptx_version == 87
    assert parse_target("cuda:121:32").ptx_version == 88
