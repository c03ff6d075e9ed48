"""The pass manager: passes, sequences of them, decorators for functions and classes, and checks of their results.

    @function_pass(opt_level=1)
    def my_pass(func, mod, ctx):
        return func

    mod = Sequential([SimplifyInference(), my_pass, FuseOps()])(mod)

A pass never changes the module that it gets: it works on a copy of its tables. Nodes are never changed at all. What a
pass raises is reported with the pass's name and the place in its file.
"""

from __future__ import annotations

import inspect
import linecache
import traceback
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, ClassVar, Protocol, overload

from relaylang.diagnostics import Diagnostic, Label, RelayError, did_you_mean, error
from relaylang.diagnostics.source import SourceFile, Span
from relaylang.ir import Expr, Function, IRModule
from relaylang.ir.bulk import gc_paused
from relaylang.passes.context import PassContext, PassInfo
from relaylang.typing import infer

#: A module to a module.
Transform = Callable[[IRModule], IRModule]


class Pass:
    """A pass: call it with a module for a new one. `info` has its name, its level and what it requires.

    A pass of the language is a frozen dataclass in a file of its own. Its fields are its options, its docstring is its
    help, and `run` transforms a module:

        @dataclass(frozen=True)
        class Inline(Pass):
            opt_level = 1

            def run(self, mod: IRModule) -> IRModule:
                ...

    The class attribute `name` is the pass's name where it is not the class's. A pass that requires "InferType" gets a
    module with types.
    """

    name: ClassVar[str] = ""
    opt_level: ClassVar[int] = 0
    required: ClassVar[tuple[str, ...]] = ("InferType",)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        # Passes are equal when they are the same, and print with their names, also where they are dataclasses.
        for method in ("__repr__", "__eq__", "__hash__"):
            if method not in cls.__dict__:
                setattr(cls, method, getattr(cls, method))

    def __init__(self, info: PassInfo | None = None) -> None:
        if info is not None:
            self.__dict__["info"] = info

    @cached_property
    def info(self) -> PassInfo:
        """The pass's name, its level and what it requires."""
        cls = type(self)
        ours = cls.__module__.partition(".")[0] == __name__.partition(".")[0]
        return PassInfo(self.opt_level, self.name or cls.__name__, self.required, builtin=ours)

    def __call__(self, mod: IRModule) -> IRModule:
        """The transformed module; the given module stays as it is. Raises `RelayError`."""
        if not isinstance(mod, IRModule):
            raise RelayError(
                error(
                    "R0503",
                    f"the pass {self.info.name} takes a module, not {_what(mod)}",
                    notes=["IRModule.from_expr makes one of an expression"],
                )
            )
        ctx = PassContext.current()
        if self.info.sequence:
            return self.transform(mod, ctx)
        if not all([i.should_run(mod, self.info) for i in ctx.instruments]):
            return mod
        for instrument in ctx.instruments:
            instrument.run_before_pass(mod, self.info)
        new = self._guarded(mod, ctx)
        for instrument in ctx.instruments:
            instrument.run_after_pass(new, self.info)
        return new

    def transform(self, mod: IRModule, ctx: PassContext) -> IRModule:
        """The transformed module, for a pass in a context; subclasses override this or `run`."""
        # What a pass makes it mostly keeps: looking for garbage among it takes longer than the pass.
        with gc_paused():
            if "InferType" in self.info.required:
                check_module(mod, self.info.name, before=True)
            result = self.run(mod)
        if isinstance(result, IRModule) and result is not mod and not self.info.builtin:
            check_module(result, self.info.name)
        return result

    def run(self, mod: IRModule) -> IRModule:
        """The transformed module. A subclass defines it."""
        raise AssertionError(f"{type(self).__name__} has no method run")

    def _guarded(self, mod: IRModule, ctx: PassContext) -> IRModule:
        name = self.info.name
        # A user's pass may write into the module that it gets: that one is a copy.
        input_mod = mod if self.info.builtin else IRModule(mod.functions, mod.type_definitions, mod.attrs)
        try:
            new = self.transform(input_mod, ctx)
        except RelayError as wrong:
            if self.info.builtin:
                raise
            noted = [
                Diagnostic(d.code, d.title, d.labels, (*d.notes, f"in the pass {name}"), d.fix, d.severity) for d in wrong.diagnostics
            ]
            raise RelayError(noted) from wrong
        except (KeyboardInterrupt, MemoryError, SystemExit):
            raise
        except Exception as problem:
            if self.info.builtin:
                raise
            raise RelayError(raised_in(name, problem)) from problem
        if not isinstance(new, IRModule):
            raise RelayError(error("R0503", f"the pass {name} returned {_what(new)}, not a module"))
        return mod if new is input_mod and _unchanged(input_mod, mod) else new

    def __repr__(self) -> str:
        return f"<pass {self.info.name}>"


def _unchanged(mod: IRModule, before: IRModule) -> bool:
    """Whether the tables of two modules hold the same things."""
    tables = ((mod.functions, before.functions), (mod.type_definitions, before.type_definitions), (mod.attrs, before.attrs))
    return all(len(a) == len(b) and all(k is m and v is w for (k, v), (m, w) in zip(a.items(), b.items())) for a, b in tables)


def stage(name: str, work: Callable[[Expr], Expr], expr: Expr) -> Expr:
    """A step of a backend, as a pass that always runs: the instruments of the context see it."""
    watching = PassContext.current().instruments
    if not watching:
        return work(expr)
    info = PassInfo(0, name, builtin=True)
    before = IRModule.from_expr(expr)
    for instrument in watching:
        instrument.run_before_pass(before, info)
    transformed = work(expr)
    after = IRModule.from_expr(transformed)
    for instrument in watching:
        instrument.run_after_pass(after, info)
    return transformed


def _what(value: object) -> str:
    return "nothing (None)" if value is None else f"a value of type {type(value).__name__}"


def raised_in(name: str, problem: BaseException, what: str = "the pass") -> Diagnostic:
    """What a user's code raised, at the innermost line of that code."""
    ours = __name__.partition(".")[0]  # by the module's name: a folder may have any
    frames = [
        (frame.f_code.co_filename, line)
        for frame, line in traceback.walk_tb(problem.__traceback__)
        if str(frame.f_globals.get("__name__")).partition(".")[0] != ours
    ]
    says = " ".join(str(problem).split())[:300]
    title = f"{what} {name} raised {type(problem).__name__}" + (f": {says}" if says else "")
    if not frames:
        return error("R0502", title)
    filename, number = frames[-1]
    label = place_in_file(filename, number)
    if label is None:
        return error("R0502", title, notes=[f"at {filename}, line {number}"])
    return Diagnostic("R0502", title, (label,))


def place_in_file(filename: str, line: int) -> Label | None:
    """A label at a line of a Python file, where its text is available."""
    lines = linecache.getlines(filename)
    if not 0 < line <= len(lines):
        return None
    source = SourceFile(filename, "".join(lines))
    text = lines[line - 1]
    begin = source.line_starts()[line - 1] + len(text) - len(text.lstrip())
    return Label(Span(source, begin, source.line_starts()[line - 1] + len(text.rstrip())))


class ModulePass(Pass):
    """A pass from a function `(module, context) -> module`."""

    def __init__(self, pass_func: Callable[[IRModule, PassContext], IRModule], info: PassInfo) -> None:
        super().__init__(info)
        self.pass_func = pass_func

    def transform(self, mod: IRModule, ctx: PassContext) -> IRModule:
        value = self.pass_func(mod, ctx)
        if isinstance(value, IRModule) and value is not mod and not self.info.builtin:
            check_module(value, self.info.name)
        return value


class FunctionPass(Pass):
    """A pass from a function `(function, module, context) -> function`, called for each function of a module.

    Functions of other compilers and functions marked `SkipOptimization` stay as they are.
    """

    def __init__(self, pass_func: Callable[[Function, IRModule, PassContext], Function], info: PassInfo) -> None:
        super().__init__(info)
        self.pass_func = pass_func

    def transform(self, mod: IRModule, ctx: PassContext) -> IRModule:
        check_module(mod, self.info.name, before=True)
        new: dict[Any, Function] = {}
        for gv, func in mod.functions.items():
            skip = func.body is None or "Compiler" in func.attrs or func.attrs.get("SkipOptimization")
            returned = func if skip else self.pass_func(func, mod, ctx)
            if not isinstance(returned, Function):
                raise RelayError(
                    error(
                        "R0503",
                        f"the pass {self.info.name} returned {_what(returned)} for @{gv.name_hint}, not a function",
                        func.span,
                    )
                )
            new[gv] = returned
        if all(new[gv] is func for gv, func in mod.functions.items()):
            return mod
        result = mod.with_functions(new)
        check_module(result, self.info.name)
        return result


class Sequential(Pass):
    """Passes one after the other, with the types found before each. Passes may be any functions of a module.

    Which of them run says the `PassContext`: those of its level and below, and those that it requires.
    """

    def __init__(
        self,
        passes: Sequence[Pass | Transform] | None = None,
        opt_level: int = 0,
        name: str = "sequential",
        required: Sequence[str] | None = None,
        traceable: bool = False,
    ) -> None:
        super().__init__(PassInfo(opt_level, name, required or (), traceable, builtin=True, sequence=True))
        self.passes = [as_pass(p) for p in passes or ()]

    def transform(self, mod: IRModule, ctx: PassContext) -> IRModule:
        for item in self.passes:
            if not item.info.sequence and not ctx.pass_enabled(item.info):
                continue
            if item.info.sequence and item.info.name in ctx.disabled_pass:
                continue
            check_module(mod, item.info.name, before=True)
            mod = item(mod)
        return mod


def as_pass(item: Any) -> Pass:
    """A pass, or a plain function of a module as one. Raises `RelayError`."""
    if isinstance(item, Pass):
        return item
    if callable(item) and not inspect.isclass(item):
        name = getattr(item, "__name__", type(item).__name__)

        def run(mod: IRModule, ctx: PassContext) -> IRModule:
            result = item(mod)
            if isinstance(result, Pass):
                raise RelayError(error("R0507", f"{name} is a function that makes a pass, not a pass", notes=[f"call it: {name}()"]))
            return result  # type: ignore[no-any-return]

        return ModulePass(run, PassInfo(0, name))
    hint = getattr(item, "__name__", None)
    notes = [f"call it: {hint}()"] if hint else []
    raise RelayError(error("R0507", f"{item!r:.60} is no pass", notes=notes))


def check_module(mod: IRModule, name: str, before: bool = False) -> None:
    """Find the types of a module that a pass gets (`before`) or made. Raises `RelayError`."""
    diagnostics = infer(mod)
    wrong = [d for d in diagnostics if d.severity == "error"]
    if not wrong:
        return
    if before:
        raise RelayError(diagnostics)
    first = error("R0504", f"the pass {name} made a program that is not well-typed")
    raise RelayError([first, *diagnostics])


def _decorator(kind: type, pass_func: Any, opt_level: int | None, name: str | None, required: Sequence[str] | None) -> Any:
    if opt_level is None:
        raise ValueError("module_pass and function_pass need an opt_level")
    method = "transform_module" if kind is ModulePass else "transform_function"

    def create(arg: Any) -> Any:
        info = PassInfo(opt_level, name or arg.__name__, required or ())
        if not inspect.isclass(arg):
            return kind(arg, info)
        if not hasattr(arg, method):
            raise ValueError(f"the class {arg.__name__} has no method {method}")

        def init(self: Any, *args: Any, **kwargs: Any) -> None:
            self._inst = arg(*args, **kwargs)
            base = getattr(self._inst, method)
            kind.__init__(self, base, info)  # type: ignore[misc]

        def getattr_(self: Any, attr: str) -> Any:
            return getattr(self.__dict__["_inst"], attr)

        return type(
            arg.__name__,
            (kind,),
            {"__init__": init, "__getattr__": getattr_, "__doc__": arg.__doc__, "__module__": arg.__module__},
        )

    return create(pass_func) if pass_func is not None else create


#: The functions that `module_pass` and `function_pass` take.
ModuleFunction = Callable[[IRModule, PassContext], IRModule]
FunctionFunction = Callable[[Function, IRModule, PassContext], Function]


class _ModuleDecorator(Protocol):
    @overload
    def __call__(self, pass_func: ModuleFunction) -> ModulePass: ...
    @overload
    def __call__(self, pass_func: type) -> Callable[..., ModulePass]: ...


class _FunctionDecorator(Protocol):
    @overload
    def __call__(self, pass_func: FunctionFunction) -> FunctionPass: ...
    @overload
    def __call__(self, pass_func: type) -> Callable[..., FunctionPass]: ...


@overload
def module_pass(
    pass_func: None = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Sequence[str] | None = None,
    traceable: bool = False,
) -> _ModuleDecorator: ...
@overload
def module_pass(
    pass_func: ModuleFunction,
    opt_level: int | None = None,
    name: str | None = None,
    required: Sequence[str] | None = None,
    traceable: bool = False,
) -> ModulePass: ...
@overload
def module_pass(
    pass_func: type,
    opt_level: int | None = None,
    name: str | None = None,
    required: Sequence[str] | None = None,
    traceable: bool = False,
) -> Callable[..., ModulePass]: ...
def module_pass(
    pass_func: Any = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Sequence[str] | None = None,
    traceable: bool = False,
) -> Any:
    """Make a pass of a function `(mod, ctx) -> mod`, or of a class with a method `transform_module(self, mod, ctx)`.

    Raises ValueError without `opt_level`.
    """
    return _decorator(ModulePass, pass_func, opt_level, name, required)


@overload
def function_pass(
    pass_func: None = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Sequence[str] | None = None,
    traceable: bool = False,
) -> _FunctionDecorator: ...
@overload
def function_pass(
    pass_func: FunctionFunction,
    opt_level: int | None = None,
    name: str | None = None,
    required: Sequence[str] | None = None,
    traceable: bool = False,
) -> FunctionPass: ...
@overload
def function_pass(
    pass_func: type,
    opt_level: int | None = None,
    name: str | None = None,
    required: Sequence[str] | None = None,
    traceable: bool = False,
) -> Callable[..., FunctionPass]: ...
def function_pass(
    pass_func: Any = None,
    opt_level: int | None = None,
    name: str | None = None,
    required: Sequence[str] | None = None,
    traceable: bool = False,
) -> Any:
    """Make a pass of a function `(func, mod, ctx) -> func`, or of a class with `transform_function(self, func, mod, ctx)`.

    Raises ValueError without `opt_level`.
    """
    return _decorator(FunctionPass, pass_func, opt_level, name, required)


def suggest(name: str, known: Sequence[str]) -> list[str]:
    near = did_you_mean(name, known)
    return [f"did you mean {near}?"] if near else []
