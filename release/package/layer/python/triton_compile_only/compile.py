"""The stages of Triton's own backends, run up to the last that gives text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from typing import Any

from . import attributes
from .repairs import repair
from .targets import Target, parse_target

LAST_STAGE = {"cuda": "ptx", "hip": "amdgcn"}
"""The last stage of each backend that gives text; what follows is a binary."""


class WrongCall(TypeError):  # noqa: N818 - it names what is wrong, as Triton's own errors do
    """Arguments that do not fit the kernel, or an option that the target has not."""


def compile_text(
    fn: Any,
    signature: Mapping[str, str],
    constexprs: Mapping[str, Any] | None = None,
    target: str = "cuda:80:32",
    options: Mapping[str, Any] | None = None,
    *,
    attrs: Mapping[str, Mapping[str, int]] | None = None,
) -> dict[str, str]:
    """Compile a Triton or Gluon function; return the text of each stage by its name.

    The stages are ``ttir`` (not for Gluon), ``ttgir``, ``llir``, and ``ptx`` or ``amdgcn``. ``signature`` gives the
    type of each argument: ``"*fp16"``, ``"i32"``; ``"*fp16:16"`` says that the pointer or number is divisible by 16.
    ``constexprs`` gives the values of the arguments that are constant, a 1 that Triton would specialise on among
    them; those that have a default may be left out. ``attrs`` gives further attributes of arguments, such as
    ``{"x_ptr": {"tt.pointer_range": 32}}``. ``options`` are those of Triton's backend (``num_warps``, ``num_stages``,
    ``ptx_version``, …) and, for every Triton, ``llvm_fn_attrs``: LLVM attributes of an AMD kernel.

    Raises UnknownTarget, WrongCall, and whatever Triton has to say: CompilationError with the line of the kernel.
    """
    function = _jit_function(fn)
    goal = parse_target(target)
    types, divisible = _types(function, signature, constexprs or {})
    given = _with_defaults(function, constexprs or {}, types)
    attributes_of = _attributes(function, divisible, attrs or {})

    from triton.backends.compiler import GPUTarget
    from triton.compiler import code_generator, make_backend

    repair(code_generator)
    gpu = GPUTarget(goal.backend, goal.arch, goal.warp_size)
    backend = make_backend(gpu)
    parsed, on_text = _options(backend, goal, options or {})
    source = _source_class(function)(function, types, given, attributes_of)
    with _current_target(gpu):
        return _run(source, backend, gpu, parsed, LAST_STAGE[goal.backend], on_text)


def _run(
    source: Any, backend: Any, gpu: Any, options: Any, last: str, on_text: tuple[tuple[str, str], ...]
) -> dict[str, str]:
    from triton._C.libtriton import ir
    from triton.compiler.compiler import filter_traceback

    stages: dict[str, Any] = {}
    backend.add_stages(stages, options, source.language)
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    try:
        module = source.make_ir(
            gpu, options, backend.get_codegen_implementation(options), backend.get_module_map(), context
        )
    except Exception as error:
        filter_traceback(error)
        raise
    metadata = {"hash": "", "target": gpu, **vars(options)}  # stages read options there, and leave what they found
    texts = {}
    names = list(stages)
    for name in names[names.index(source.ext) : names.index(last) + 1]:
        module = stages[name](module, metadata)
        if name == "llir" and on_text:
            module = attributes.set_attributes(module, on_text)
        texts[name] = str(module)  # now: the next stage works on the same module
    return texts


def _jit_function(fn: Any) -> Any:
    from triton.runtime.jit import JITFunction

    while not isinstance(fn, JITFunction):
        if not hasattr(fn, "fn"):
            raise WrongCall(f"{fn!r} is not a function of triton.jit or gluon.jit")
        fn = fn.fn  # an autotuner, or heuristics: what they choose between is in the caller's constexprs
    return fn


def _source_class(function: Any) -> Any:
    if function.is_gluon():
        from triton.experimental.gluon._runtime import GluonASTSource

        return GluonASTSource
    from triton.compiler import ASTSource

    return ASTSource


def _types(
    function: Any, signature: Mapping[str, str], constexprs: Mapping[str, Any]
) -> tuple[dict[str, str], dict[str, int]]:
    """Return the type of each argument in their order, and what those are divisible by of which that was said."""
    for name in (*signature, *constexprs):
        if name not in function.arg_names:
            raise WrongCall(f"{function.__name__} has no argument {name!r}; it has {', '.join(function.arg_names)}")
    types, divisible = {}, {}
    for parameter in function.params:
        name = parameter.name
        if name in constexprs:
            types[name] = "constexpr"
        elif name in signature and signature[name] != "constexpr":
            if parameter.is_constexpr:
                raise WrongCall(f"{name} of {function.__name__} is a constexpr: it needs a value, not a type")
            types[name], _, divisor = signature[name].partition(":")
            if divisor and not divisor.isdecimal():
                raise WrongCall(f"{name}: {signature[name]!r} is not a type such as '*fp16', '*fp16:16' or 'i32:16'")
            if divisor:
                divisible[name] = int(divisor)
        elif parameter.has_default:
            types[name] = "constexpr"
        else:
            raise WrongCall(f"{function.__name__} needs {name}: its type in signature, or its value in constexprs")
    _require_types(types)
    return types, divisible


def _require_types(types: Mapping[str, str]) -> None:
    from triton.language import str_to_ty

    for name, kind in types.items():
        if kind == "constexpr" or kind.startswith(("tensordesc", "nvTmaDesc")):
            continue
        try:
            str_to_ty(kind, None)
        except (KeyError, IndexError) as error:  # Triton's look-up of the name, which says nothing more
            raise WrongCall(f"{name}: {kind!r} is not a type such as '*fp16' or 'i32'") from error


def _with_defaults(function: Any, constexprs: Mapping[str, Any], types: Mapping[str, str]) -> dict[str, Any]:
    defaults = {each.name: each.default for each in function.params if each.has_default}
    return {name: constexprs.get(name, defaults.get(name)) for name, kind in types.items() if kind == "constexpr"}


def _attributes(
    function: Any, divisible: Mapping[str, int], attrs: Mapping[str, Mapping[str, int]]
) -> dict[tuple[int], list[list[Any]]]:
    found: dict[tuple[int], list[list[Any]]] = {}
    for name, divisor in divisible.items():
        found.setdefault((function.arg_names.index(name),), []).append(["tt.divisibility", divisor])
    for name, more in attrs.items():
        if name not in function.arg_names:
            raise WrongCall(f"{function.__name__} has no argument {name!r} to give attributes to")
        found.setdefault((function.arg_names.index(name),), []).extend([key, value] for key, value in more.items())
    return found


def _options(backend: Any, target: Target, options: Mapping[str, Any]) -> tuple[Any, tuple[tuple[str, str], ...]]:
    """Return the backend's options, and the LLVM attributes that are to be set on text as it has no option for them."""
    wanted = dict(options)
    known = {field.name for field in fields(backend.parse_options({}))}
    by_option = attributes.OPTION in known
    if target.backend == "hip":
        known.add(attributes.OPTION)
    if unknown := sorted(set(wanted) - known):
        raise WrongCall(f"{target} has no option {unknown[0]!r}; its options are {', '.join(sorted(known))}")
    on_text = attributes.pairs_of(wanted.pop(attributes.OPTION, ()))
    if by_option and on_text:
        wanted[attributes.OPTION] = on_text
        on_text = ()
    if "ptx_version" in known and wanted.get("ptx_version") is None:
        wanted["ptx_version"] = target.ptx_version
    return backend.parse_options(wanted), on_text


class _NoGpu:
    """Triton's "active driver" while it compiles: kernels may ask it what they are compiled for, and no more."""

    def __init__(self, target: Any) -> None:
        self._target = target

    def get_current_target(self) -> Any:
        return self._target

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"compiling for {self._target} asked a GPU driver for {name!r}, and here is none")


@contextmanager
def _current_target(gpu: Any) -> Iterator[None]:
    from triton.runtime.driver import driver

    before = driver._active
    driver.set_active(_NoGpu(gpu))
    try:
        yield
    finally:
        driver._active = before
