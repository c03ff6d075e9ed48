"""The values that a program needs to run, and their sources: --input, --params, --random-params, in this order."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from relaylang.cli.common import report
from relaylang.cli.inputs import bad_value, fit_array, literal_array, load_array, missing, unknown_names
from relaylang.diagnostics import Diagnostic, RelayError, did_you_mean, error
from relaylang.ir import (
    Expr,
    IRModule,
    MetaRef,
    TensorType,
    TupleType,
    Type,
    Var,
    is_incomplete,
    type_text,
)
from relaylang.ir.missing import fill_missing
from relaylang.runtime.params import load_params
from relaylang.runtime.random import random_params

if TYPE_CHECKING:
    from relaylang.repl.session import Session

Needed = Sequence[Var | MetaRef]


def add_load_option(parser: argparse.ArgumentParser) -> None:
    """`--load`: Python files with code generators, operators and the like, and texts of operators."""
    doc = "code generators, operators and passes of your own (Python), or operators as a text (.kernel)"
    parser.add_argument("--load", action="append", default=[], metavar="FILE", help=doc)


def load_files(args: argparse.Namespace) -> None:
    """Run the files of `--load`. Raises `RelayError` (R0512)."""
    if args.load:
        from relaylang.plugins.files import load_file

        for path in args.load:
            load_file(path)


def add_value_options(parser: argparse.ArgumentParser) -> None:
    """The options that give parameters their values."""
    parser.add_argument("--params", metavar="FILE", help="parameter values: .npz, .params or .safetensors")
    parser.add_argument(
        "--random-params",
        type=int,
        metavar="SEED",
        help="random values for every parameter (and missing constant) that nothing else gives",
    )


def _value(
    node: Var | MetaRef,
    args: argparse.Namespace,
    inputs: Mapping[str, str],
    file_values: Mapping[str, Any],
    session: Session,
) -> Any:
    """The value of one name from the first source that has it; None where none has. Raises `RelayError`."""
    name = node.name_hint
    ty = node.checked_type if node.checked_type is not None else node.type_annotation
    if name in inputs:
        return input_value(name, inputs[name], ty, session)
    if name in file_values:
        array = file_values[name]
        return fit_array(array, ty, f"{name} in {args.params}", exact=True) if isinstance(ty, TensorType) else array
    if getattr(args, "fill", None) is not None and isinstance(ty, TensorType) and not is_incomplete(ty):
        return filled_with(args.fill, ty)
    if args.random_params is None:
        return None
    if ty is None or is_incomplete(ty):
        raise RelayError([_untyped(node)])
    return random_params(args.random_params, [node])[name]


def values_for(
    needed: Needed,
    args: argparse.Namespace,
    inputs: Mapping[str, str],
    session: Session,
    open_ended: bool = False,
) -> tuple[dict[str, Any], list[Diagnostic]]:
    """A value for each required name, and notes. Raises `RelayError` for a missing or wrong value.

    `session` evaluates the inputs that are Relay expressions. In an `open_ended` call only constants must have values.
    """
    names = [node.name_hint for node in needed]
    wrong = unknown_names(inputs, names)
    file_values = load_params(args.params) if args.params else {}
    values: dict[str, Any] = {}
    absent: list[Var | MetaRef] = []
    for node in needed:
        try:
            value = _value(node, args, inputs, file_values, session)
        except RelayError as e:
            wrong += e.diagnostics
            continue
        if value is not None:
            values[node.name_hint] = value
        elif isinstance(node, MetaRef) or not open_ended:
            absent.append(node)
    unused = [name for name in file_values if name not in names]
    if absent:
        wrong += missing(absent, [_unused(args.params, unused, names).title] if unused else ()).diagnostics
    if wrong:
        raise RelayError(wrong)
    return values, [_unused(args.params, unused, names)] if unused else []


def with_values(mod: IRModule, needed: Needed, args: argparse.Namespace, open_ended: bool = True) -> tuple[IRModule, dict[str, Any]]:
    """The module with its missing constants filled in, and the values of the other names. Reports what `values_for` notes."""
    from relaylang.repl.session import Session

    values, notes = values_for(needed, args, {}, Session(mod), open_ended)
    report(notes)
    constants = {node.name_hint: values.pop(node.name_hint) for node in needed if isinstance(node, MetaRef)}
    return fill_missing(mod, constants), values


def filled_with(what: str, ty: TensorType) -> np.ndarray:
    """A tensor of zeros or ones. Raises `RelayError` for a type of unknown extents."""
    if not all(isinstance(d, int) for d in ty.shape):
        raise bad_value(f"--fill {what} wants known extents, not {type_text(ty)}")
    return np.full(tuple(map(int, ty.shape)), what == "ones", np.dtype(ty.dtype))  # type: ignore[arg-type]


def _untyped(node: Var | MetaRef) -> Diagnostic:
    """The error for a random value of a variable without a type."""
    name = node.name_hint
    notes = [f"say it with --input '{name}=Tensor[(1, 3), float32]', or give a value with --input {name}=x.npy"]
    return error("R0706", f"no random value for parameter {name}: its type is not known", node.span, notes=notes)


def _unused(path: str, unused: Sequence[str], names: Sequence[str]) -> Diagnostic:
    """The note on names of a file that no parameter has."""
    shown = ", ".join(unused[:5]) + (", ..." if len(unused) > 5 else "")
    near = {name: nearest for name in unused[:5] if (nearest := did_you_mean(name, names))}
    notes = [f"did you mean {nearest} for {name}?" for name, nearest in near.items()]
    title = f"{path} has {shown}, which no parameter is called"
    return error("R0705", title, severity="note", notes=notes)


def input_value(name: str, text: str, ty: Type | None, session: Session) -> Any:
    """The value of one --input: a .npy file, a literal, or a Relay expression."""
    what = f"--input {name}"
    if text.endswith(".npy"):
        array = load_array(text)
        return fit_array(array, ty, what, exact=True) if isinstance(ty, TensorType) else array
    array_or_none = None if isinstance(ty, TupleType) else literal_array(text, what)
    if array_or_none is not None and isinstance(ty, TensorType):
        return fit_array(array_or_none, ty, what, exact=False)
    if not text:
        raise bad_value(f"{what} is empty")
    value = session.evaluate(text, f"<{what}>")
    if isinstance(ty, TensorType) and isinstance(value.data, np.ndarray):
        return fit_array(value.data, ty, what, exact=True)
    if ty is not None and value.type is not None and not is_incomplete(ty) and value.type != ty:
        raise bad_value(f"{what} is of type {type_text(value.type)}, not {type_text(ty)}")
    return value.data


def free_inputs(args: argparse.Namespace, inputs: Mapping[str, str]) -> dict[str, Any]:
    """Values for the free variables of an expression (-e), which have no types: those of --params and --input."""
    values: dict[str, Any] = dict(load_params(args.params)) if args.params else {}
    for name, text in inputs.items():
        if text.endswith(".npy"):
            values[name] = load_array(text)
        else:
            array = literal_array(text, f"--input {name}")
            if array is None:
                raise bad_value(f"--input {name}={text} is neither a .npy file nor a number or lists of them")
            narrow = {"int64": np.int32, "float64": np.float32}.get(array.dtype.name, array.dtype)
            values[name] = array.astype(narrow)
    return values


def needed_by(params: Sequence[Var], body: Iterable[Expr]) -> list[Var | MetaRef]:
    """A function's parameters, and the missing constants among `body`'s nodes, each name once."""
    needed: dict[str, Var | MetaRef] = {p.name_hint: p for p in params}
    for node in body:
        if isinstance(node, MetaRef):
            needed.setdefault(node.name_hint, node)
    return list(needed.values())
