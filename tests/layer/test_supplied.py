import hashlib
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from release.check.kernels.contract import CONTRACT
from release.check.kernels.supplied import kept_contract, supplied_from
from release.errors import BrokenEnvironment, Finding, WrongUsage

PARAMETERS = ", ".join(f"{name}: gl.constexpr" if name in CONTRACT.constant else name for name in CONTRACT.parameters)
KERNEL = f"""\
import math

import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def helper(x):
    return x


@gluon.jit
def v9({PARAMETERS}):
    pass


def launch(a, b):
    return v9[(1,)](a, b)
"""


def refused(source: str, **more: str) -> str:
    with pytest.raises(WrongUsage) as caught:
        kept_contract(source, where="kernel.py", **more)
    assert caught.value.remedy
    return str(caught.value)


def test_a_kernel_that_keeps_the_contract_is_found_among_its_helpers(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL)
    digest = hashlib.sha256(KERNEL.encode()).hexdigest()
    for expected in ("", digest, digest.upper()):
        supplied = supplied_from(str(path), sha256=expected)
        assert (supplied.function, supplied.source, supplied.sha256) == ("v9", KERNEL, digest)


def test_what_does_not_parse_is_refused_with_its_line() -> None:
    assert refused(KERNEL.replace("return x", "return x +")).startswith("kernel.py:11: it is not Python")
    assert "is not Python" in refused("\0")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("@gluon.jit", "@triton.jit", "kernel.py has no function at all under @gluon.jit."),
        ("stride_bn, ", "", "kernel.py:15: v9 does not take stride_bn."),
        ("stride_bn, ", "stride_bn, bias_ptr, ", "v9 takes bias_ptr, to which the contract gives no value."),
        ("M, N, ", "N, M, ", "v9 takes its parameters in another order than a_ptr, b_ptr, c_ptr, M, N, K"),
        ("K: gl.constexpr, stride_am", "K, stride_am", "v9 takes K as a variable, not as constexpr."),
        ("GROUP_SIZE_M: gl.constexpr)", "GROUP_SIZE_M: gl.constexpr, *more)", "v9 takes more than the parameters"),
        ("import math", "from common import get_pids", "kernel.py:1: it imports common, which is neither"),
        ("import math", "from .common import get_pids", "kernel.py:1: it imports .common"),
        ("def helper(x)", f"def second({PARAMETERS})", "kernel.py has several kernels that fit: second, v9."),
    ],
)
def test_what_breaks_the_contract_is_refused(old: str, new: str, said: str) -> None:
    assert old in KERNEL
    assert said in refused(KERNEL.replace(old, new))


def test_of_several_kernels_one_may_be_named() -> None:
    source = KERNEL.replace("def helper(x)", f"def second({PARAMETERS})")
    assert kept_contract(source, where="kernel.py", function="second") == "second"
    assert "no function third under @gluon.jit" in refused(source, function="third")


def test_a_module_it_imports_may_be_supplied_with_it(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(KERNEL.replace("import math", "from common import get_pids"))
    (tmp_path / "common.py").write_text("get_pids = None\n")
    supplied = supplied_from(str(tmp_path / "kernel.py"), companions=[tmp_path / "common.py"])
    assert supplied.companions == {"common": "get_pids = None\n"}


def test_another_digest_is_a_finding_with_both(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL)
    with pytest.raises(Finding, match=f"{hashlib.sha256(KERNEL.encode()).hexdigest()}, expected {'0' * 64}"):
        supplied_from(str(path), sha256="0" * 64)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{serving.server_port}"
        serving.shutdown()


def test_a_url_is_read_when_its_digest_is_known(server: str, tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(KERNEL)
    url = f"{server}/kernel.py"
    digest = hashlib.sha256(KERNEL.encode()).hexdigest()
    assert supplied_from(url, sha256=digest).source == KERNEL
    with pytest.raises(WrongUsage, match="without a SHA-256"):
        supplied_from(url)
    with pytest.raises(Finding, match="has SHA-256"):
        supplied_from(url, sha256="0" * 64)


def test_a_place_that_cannot_be_read_is_refused(server: str, tmp_path: Path) -> None:
    (tmp_path / "large.py").write_bytes(bytes(2 << 20))
    for place, kind, said in (
        (f"{server}/none.py", WrongUsage, "answered 404"),
        (f"{server}/large.py", Finding, "more than the 1,048,576 bytes"),
        ("http://127.0.0.1:1/kernel.py", BrokenEnvironment, "cannot be fetched"),
        ("gopher://127.0.0.1/kernel.py", WrongUsage, "neither https"),
        ("http://192.0.2.1/kernel.py", WrongUsage, "neither https"),
        ("nowhere.py", WrongUsage, "cannot be read"),
    ):
        with pytest.raises(kind, match=said):
            supplied_from(place, sha256="0" * 64)


def test_what_is_not_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(WrongUsage, match="not UTF-8"):
        supplied_from(str(path))
