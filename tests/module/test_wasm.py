from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from release.errors import WrongUsage
from release.module.wasm import Export, Import, Limits, read_wasm
from tests.module.wasm_builder import HEADER, Side, body, custom, dylink, memory_import, section

GOOD = Side().encode()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "sample.so"


def test_reads_every_part(file: Path) -> None:
    file.write_bytes(GOOD)
    module = read_wasm(file)
    assert module.size == len(GOOD)
    assert [each.name for each in module.sections] == [
        "custom:dylink.0",
        "type",
        "import",
        "function",
        "export",
        "code",
        "data",
        "custom:target_features",
    ]
    assert module.dylink is not None
    assert (module.dylink.memory_size, module.dylink.memory_align) == (64, 4)
    assert module.imports[0] == Import(
        module="env", name="memory", kind="memory", limits=Limits(minimum=1, maximum=None, shared=False)
    )
    assert Import(module="env", name="PyErr_SetString", kind="func", signature="(i32, i32) -> ()") == module.imports[6]
    assert [each.kind for each in module.imports].count("tag") == 1
    assert module.exports[0] == Export(name="PyInit_sample", kind="func", signature="() -> (i32)")
    assert module.target_features == ("+mutable-globals", "+exception-handling")
    assert module.data_bytes == 25
    data = module.section("data")
    assert data is not None
    assert GOOD[data.start : data.end].endswith(b"hello from a side module\0")


def test_reads_sizes_of_bodies_and_the_index_of_the_largest(file: Path) -> None:
    large = replace(Side(), bodies=(body(b""), body(b"\x01" * 500), body(b"")))
    file.write_bytes(large.encode())
    module = read_wasm(file)
    assert module.body_sizes == (2, 502, 2)
    assert module.largest_body == (3, 502)  # two functions are imported


def test_reads_limits_and_dylink_lists(file: Path) -> None:
    side = replace(
        Side(),
        dylink=dylink(needed=["libz.so"], weak=[("env", "maybe")], rpath=["/lib"]),
        imports=(memory_import(b"\3\1\x10"), *Side().imports[1:]),
    )
    file.write_bytes(side.encode())
    module = read_wasm(file)
    assert module.dylink is not None
    assert module.dylink.needed == ("libz.so",)
    assert module.dylink.runtime_paths == ("/lib",)
    assert module.dylink.weak_imports == {("env", "maybe")}
    assert module.imports[0].limits == Limits(minimum=1, maximum=16, shared=True)


def test_dylink_counts_in_first_place_only(file: Path) -> None:
    file.write_bytes(replace(Side(), before=custom("producers", b"\0")).encode())
    assert read_wasm(file).dylink is None


def test_an_unknown_part_of_dylink_goes_unsaid(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    known = Side().dylink
    extended = section(0, known[2:] + b"\x09\1\0")
    file.write_bytes(replace(Side(), dylink=extended).encode())
    assert read_wasm(file).dylink is not None
    assert capsys.readouterr().out == ""


def test_types_beyond_the_reader_leave_signatures_open(file: Path) -> None:
    side = Side()
    file.write_bytes(replace(side, types=(*side.types, b"\x5f\0")).encode())  # an empty struct
    module = read_wasm(file)
    assert {each.signature for each in module.exports} == {None}


@pytest.mark.parametrize("content", [b"", b"\0as", b"PK\3\4" + bytes(40), HEADER[:4] + b"\x0d\0\1\0" + bytes(10)])
def test_refuses_what_is_not_wasm(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    with pytest.raises(WrongUsage, match="is not a WebAssembly module"):
        read_wasm(file)


def test_refuses_a_missing_file(file: Path) -> None:
    with pytest.raises(WrongUsage, match="No such file"):
        read_wasm(file)


def test_refuses_a_file_cut_anywhere_inside_a_section(file: Path) -> None:
    borders = {len(HEADER)}
    for each in Side().sections():
        borders.add(max(borders) + len(each))
    for length in range(len(GOOD)):
        file.write_bytes(GOOD[:length])
        if length in borders:
            read_wasm(file)  # well formed as far as it goes: what it lacks is for the audit to find
            continue
        with pytest.raises(WrongUsage) as refused:
            read_wasm(file)
        assert str(refused.value).count("\n") == 0
        assert str(file) in str(refused.value)


def test_says_where_a_file_is_cut(file: Path) -> None:
    file.write_bytes(GOOD[:-80])
    with pytest.raises(WrongUsage, match=r"is cut short: its data section ends at byte [\d,]+ of [\d,]+\.$"):
        read_wasm(file)


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_damage_is_refused_in_one_sentence_or_read(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    damaged = bytearray(GOOD)
    for at in data.draw(st.lists(st.integers(0, len(GOOD) - 1), min_size=1, max_size=4)):
        damaged[at] = data.draw(st.integers(0, 255))
    file = tmp_path_factory.getbasetemp() / "damaged.so"
    file.write_bytes(damaged)
    try:
        read_wasm(file)
    except WrongUsage as refused:
        assert "\n" not in str(refused)


def test_reads_the_main_modules_of_pyodide(pyodide: Path) -> None:
    module = read_wasm(pyodide / "pyodide.asm.wasm")
    assert len(module.exports) > 8000
    assert {each.name: each.signature for each in module.exports}["PyErr_Occurred"] == "() -> (i32)"
