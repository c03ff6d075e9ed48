"""The session's larger commands: passes, pictures, times, profiles, targets, compiling, saving."""

from __future__ import annotations

import os
import statistics
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from relaylang.backends import compile_module
from relaylang.backends.registry import parse_target
from relaylang.diagnostics import RelayError, error
from relaylang.interpreter import Profile
from relaylang.ir import Function, GlobalVar, IRModule
from relaylang.passes import PASSES
from relaylang.passes.describe import summary
from relaylang.passes.infer_type import InferType
from relaylang.passes.manager import Sequential
from relaylang.passes.spec import parse_passes
from relaylang.repl.pictures import picture
from relaylang.repl.saving import session_text
from relaylang.runtime.files import atomic_write
from relaylang.runtime.text import reason
from relaylang.syntax import astext
from relaylang.viz import Graph, as_html, as_text, fold_repeats, graph_of

if TYPE_CHECKING:
    from relaylang.repl.session import Session

KEYS = ("emacs", "vi")
INTERPRETER = "interpreter"
#: How an expression is named while passes run on it.
_EXPRESSION = "expression"
#: How long `:time` goes on, in seconds, and how often at most.
_TIME, _MOST_RUNS = 1.0, 1000


def _module_of(session: Session, argument: str) -> tuple[IRModule, str | None]:
    """The module for a command's argument, and the function in it that is meant (None for all)."""
    if not argument:
        if not session.module.functions:
            raise RelayError(error("R0721", "nothing is defined yet"))
        return session.module, None
    if argument.startswith("@") and argument[1:] in session.module:
        return session.module, argument[1:]
    module, expr = session.function_of(argument)
    name = _EXPRESSION
    while name in module:
        name += "_"
    out = IRModule(module.functions, module.type_definitions, module.attrs)
    out[GlobalVar(name)] = expr
    return out, name


def _only(module: IRModule, name: str | None) -> IRModule:
    if name is None or name not in module:
        return module
    return IRModule({module.get_global_var(name): module[name]}, {}, module.attrs)


def run_passes(session: Session, argument: str) -> str:
    """Run passes on an expression, a function, or everything; without a list, show which there are."""
    if not argument:
        rows = [(name, summary(pass_class)) for name, pass_class in PASSES.items()]
        width = max(len(n) for n, _ in rows)
        return "\n".join(f"{n:<{width}}  {says}".rstrip() for n, says in rows)
    at = list_end(argument)
    passes = parse_passes(argument[:at].strip())
    module, name = _module_of(session, argument[at:].strip())
    result = Sequential([InferType(), *passes, InferType()])(module)
    if name is not None and name.startswith(_EXPRESSION):
        return astext(result[name], header=False).rstrip("\n")
    return astext(_only(result, name)).rstrip("\n")


def list_end(text: str) -> int:
    """Where the list of passes ends: at the first blank that is in no bracket and next to no comma."""
    depth = 0
    for i, c in enumerate(text):
        if c in "([":
            depth += 1
        elif c in ")]":
            depth -= 1
        elif c == " " and not depth and not text[:i].rstrip().endswith(",") and not text[i:].lstrip().startswith((",", "(")):
            return i
    return len(text)


def _graph(session: Session, argument: str) -> Graph:
    module, name = _module_of(session, argument)
    session.check(module)
    shown: Any = _only(module, name)
    if name is not None and name.startswith(_EXPRESSION):
        shown = module[name]
    return graph_of(shown)


def viz(session: Session, argument: str) -> str:
    """The graph as a page in the browser; without one, drawn for the terminal."""
    if session.browse is None:
        return draw(session, argument)
    page = as_html(fold_repeats(_graph(session, argument)), argument or "session")
    file = Path(session.scratch.name) / f"{len(os.listdir(session.scratch.name))}.html"
    file.write_text(page, encoding="utf-8")
    session.browse(file.as_uri())
    return f"{file} is open in the browser; :draw draws it here"


def draw(session: Session, argument: str) -> str:
    """The graph, drawn for a terminal of the session's width."""
    style = session.style
    return as_text(_graph(session, argument), style.width, True, style.plain, style.color).rstrip("\n")


def plot(session: Session, argument: str) -> str:
    """A picture of a tensor, or of each tensor in a tuple."""
    data = session.evaluate(argument).data
    fields = data if isinstance(data, tuple) else (data,)
    if not fields or not all(isinstance(field, np.ndarray) for field in fields):
        raise RelayError(error("R0721", "only tensors have pictures", notes=[":plot EXPR takes a tensor or a tuple of tensors"]))
    return "\n".join(picture(field, session.style) for field in fields)


def time_expression(session: Session, argument: str) -> str:
    """The best and the median time of running an expression again and again, with everything ready."""
    prepared = session.prepare(argument)
    run = prepared.runner(session.target)
    times: list[float] = []
    begin = time.perf_counter()
    while len(times) < 3 or (time.perf_counter() - begin < _TIME and len(times) < _MOST_RUNS):
        started = time.perf_counter()
        run()
        times.append(time.perf_counter() - started)
        if times[0] > _TIME:
            break
    return f"best {_clock(min(times))}, median {_clock(statistics.median(times))} of {len(times)} runs ({session.target})"


def _clock(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"


def profile(session: Session, argument: str) -> str:
    """A table of the operators that an expression runs, by the interpreter."""
    prepared = session.prepare(argument)
    watch = Profile()
    started = time.perf_counter()
    prepared.evaluate(watch=watch)
    return watch.table(time.perf_counter() - started)


def set_target(session: Session, argument: str) -> str:
    """Choose what runs expressions and what `:compile` compiles for."""
    if argument and argument != INTERPRETER:
        parse_target(argument)
    session.target = argument or session.target
    return f"target {session.target}"


def compile_function(session: Session, argument: str) -> str:
    """Compile a function; `.c` files get the C text, others what the backend makes."""
    name, _, path = argument.partition(" ")
    name, path = name.removeprefix("@") or "main", path.strip()
    if name not in session.module:
        raise RelayError(error("R0721", f"there is no function @{name}", notes=[":compile @NAME [FILE]"]))
    target = "c" if session.target == INTERPRETER else session.target
    session.check(session.module)
    started = time.perf_counter()
    try:
        if path.endswith(".c"):
            from relaylang.backends.cpu import emit_c

            text = emit_c(session.module, {}, name, parse_target(target)[0].options)
            atomic_write(path, text)
            return f"{path}: {len(text.splitlines())} lines of C"
        artifact = compile_module(session.module, target, entry=name)
        took = _clock(time.perf_counter() - started)
        inputs = ", ".join(f"%{n}" for n in artifact.input_names) or "none"
        if not path:
            return f"@{name} compiled for {target} in {took}; inputs: {inputs}"
        artifact.save(path)
        return f"{path}: {Path(path).stat().st_size / 1000:.1f} kB for {target}, in {took}; inputs: {inputs}"
    except OSError as e:
        raise RelayError(error("R0725", f"cannot write {path}: {reason(e)}")) from None


def save(session: Session, argument: str, replace: bool = False) -> str:
    """Write the session to a file that `:load` reads. A file of somebody else's is not written over."""
    path = Path(argument).expanduser()
    own = str(path) in session.files or str(path) in session.saved
    if path.exists() and not own and not replace:
        raise RelayError(error("R0725", f"{argument} is there already", notes=[f":save! {argument} replaces it"]))
    text, left_out = session_text(session.module, session.values())
    try:
        atomic_write(path, text)
    except OSError as e:
        raise RelayError(error("R0725", f"cannot write {argument}: {reason(e)}")) from None
    session.saved.add(str(path))
    kept = len(session.variables()) - len(left_out)
    functions = sum(isinstance(f, Function) for f in session.module.functions.values())
    counts = ((functions, "function"), (len(session.module.type_definitions), "type"), (kept, "variable"))
    said = f"{argument}: " + ", ".join(f"{n} {what}{'s' * (n != 1)}" for n, what in counts)
    return said + (f"; not kept, as no text can hold them: {', '.join('%' + n for n in left_out)}" if left_out else "")


def reload_files(session: Session, argument: str) -> str:
    """Read every file again that the session has read."""
    if not session.files:
        raise RelayError(error("R0721", "no file was loaded", notes=[":load FILE reads one"]))
    return "\n".join(f"{path}: {said}" if said else path for path in list(session.files) for said in [session.load(path)])
