"""Whether a pin set, a Triton tree and an LLVM tree belong together.

Triton is made for one commit of LLVM and says which. The pin set builds that one, or another with a reason: it then
says once for which commit it ``stands_for``, and with any other Triton tree it disagrees.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from release.errors import Finding
from release.pins.model import LLVMPin, PinSet
from release.pins.upstream import LLVMTree, TritonTree, UpstreamLLVM


def agreement(pins: PinSet, triton: TritonTree, llvm: Mapping[str, LLVMTree]) -> tuple[str, ...]:
    """Compare the three; each difference is one sentence.

    ``llvm`` holds the trees by the names of the pin set; one that is not there (yet) is not compared.
    """
    return tuple(_differences(pins, triton, llvm))


def check_agreement(
    pins: PinSet, triton: TritonTree, llvm: Mapping[str, LLVMTree], *, accept: bool = False
) -> tuple[str, ...]:
    """Raise Finding when the three disagree; with ``accept`` return the differences, to be recorded in the manifest."""
    findings = agreement(pins, triton, llvm)
    if findings and not accept:
        raise Finding(
            f"Pin set {pins.name} and its sources disagree: {' '.join(findings)}",
            remedy="Change the pin set or the checkout, or pass --accept-llvm: the manifest then says so.",
        )
    return findings


def _differences(pins: PinSet, triton: TritonTree, llvm: Mapping[str, LLVMTree]) -> Iterator[str]:
    wanted = {upstream.name: upstream for upstream in triton.llvm}
    pinned = {pin.name: pin for pin in pins.llvm}
    for name in sorted(wanted.keys() | pinned.keys(), key=[*wanted, *pinned].index):
        if name not in pinned:
            upstream = wanted[name]
            yield f"Triton takes an LLVM {name!r} ({upstream.commit}, {upstream.file}) and the pin set has none."
        elif name not in wanted:
            yield f"The pin set has an LLVM {name!r} and Triton takes none."
        else:
            yield from _pin_and_triton(pinned[name], wanted[name])
        if name in pinned and name in llvm:
            yield from _pin_and_tree(pinned[name], llvm[name])


def _pin_and_triton(pin: LLVMPin, upstream: UpstreamLLVM) -> Iterator[str]:
    expected = f"Triton's {upstream.file} wants LLVM {upstream.commit}"
    if pin.stands_for is not None:
        if pin.stands_for != upstream.commit:
            yield f"{expected} and the pin set's {pin.what} stands for {pin.stands_for}."
    elif pin.commit != upstream.commit:
        yield f"{expected} and the pin set builds {pin.what}."
    elif upstream.repository not in (None, pin.repository):
        yield f"{expected} from {upstream.repository} and the pin set fetches from {pin.repository}."


def _pin_and_tree(pin: LLVMPin, tree: LLVMTree) -> Iterator[str]:
    if pin.release is not None:
        if tree.version != pin.release:
            yield f"The pin set builds LLVM {pin.what} and {tree.path} is version {tree.version}."
    elif tree.commit is None:
        yield f"The pin set builds LLVM {pin.what} and {tree.path} (version {tree.version}) has no commit to compare."
    elif tree.commit != pin.commit:
        yield f"The pin set builds LLVM {pin.what} and {tree.path} is at {tree.commit}."
