"""Values from the command line: `--input name=value`, parameter files, and the function arguments made of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from relaylang.diagnostics import Diagnostic, RelayError, did_you_mean, error
from relaylang.ir import Function, IRModule, MetaRef, TensorType, Type, Var, type_text
from relaylang.runtime.params import Damaged, parse_npy
from relaylang.runtime.text import read_bytes
from relaylang.syntax import parse_type

_TOKEN = re.compile(
    r"\s*(?:(?P<open>[\[(])|(?P<close>[\])])|(?P<comma>,)|(?P<bool>True|False|true|false)\b"
    r"|(?P<number>[+-]?(?:inf|nan|\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?))"
    r"(?P<suffix>f(?:16|32|64)?|bf16|[iu](?:8|16|32|64))?(?![\w.]))"
)


def bad_value(title: str, notes: Sequence[str] = ()) -> RelayError:
    return RelayError(error("R0705", title, notes=notes))


def split_inputs(items: Sequence[str]) -> dict[str, str]:
    """`name=value` texts by name; `%name=value` is the same."""
    texts: dict[str, str] = {}
    for item in items:
        name, equals, value = item.partition("=")
        name = name.strip().removeprefix("%").strip('"')
        if not equals or not name:
            raise bad_value(f"--input wants NAME=VALUE, not {item}", ["for example --input data=x.npy or --input n=3"])
        if name in texts:
            raise bad_value(f"--input {name} is given twice")
        texts[name] = value.strip()
        ending = _FILE.search(texts[name])
        if ending is not None:
            takes = "--params takes a .npz, .params or .safetensors file" if ending[1] in _PARAMS else "np.save writes a .npy file"
            raise bad_value(f"--input {name}={texts[name]}: a file of one value ends in .npy", [takes])
    return texts


#: Files that hold values in another form than `--input` takes.
_PARAMS = ("npz", "params", "safetensors")
_FILE = re.compile(r"\A[\w./\\-]+\.(npz|params|safetensors|pt|pth|csv|txt|json|png|jpe?g|bin|raw)\Z")


_TYPE = re.compile(r"Tensor\s*\[.*|(?:u?int|float|bfloat)\d+\w*|bool", re.S)


def split_types(inputs: Mapping[str, str]) -> tuple[dict[str, str], dict[str, Type]]:
    """The values among the inputs, and the types: `x=Tensor[(1, 3), float32]` gives the type of `%x`."""
    values: dict[str, str] = {}
    types: dict[str, Type] = {}
    for name, text in inputs.items():
        if _TYPE.fullmatch(text):
            types[name] = parse_type(text, f"<--input {name}>")
        else:
            values[name] = text
    return values, types


def stated_types(free_vars: Sequence[Var], types: Mapping[str, Type]) -> dict[Var, Type]:
    """The types that the call states, by variable. Raises `RelayError` for other names than untyped free variables."""
    untyped = {v.name_hint: v for v in free_vars if v.type_annotation is None}
    for name in types:
        if name not in untyped:
            notes = ["only a fragment's variable without a type takes one", f"those are: {', '.join(untyped) or 'none'}"]
            raise bad_value(f"--input {name} gives a type where a value is wanted", notes)
    return {untyped[name]: ty for name, ty in types.items()}


def load_array(path: str) -> np.ndarray:
    """The array of a .npy file."""
    data = read_bytes(path)
    if data[:2] == b"PK":
        raise bad_value(f"{path} holds several arrays; --input takes a .npy file", ["--params takes a .npz file"])
    try:
        return parse_npy(path, data)
    except Damaged as e:
        raise bad_value(f"{path} is not a .npy file: {e}") from None


def _number(digits: str, suffix: str) -> int | float:
    if len(digits) > 400:
        raise bad_value(f"{_short(digits)} has too many digits for a number")
    return int(digits) if re.fullmatch(r"[+-]?\d+", digits) and not suffix.startswith(("f", "b")) else float(digits)


def literal_array(text: str, what: str = "the value") -> np.ndarray | None:
    """Numbers in nested lists as an array (bool, int64, uint64, object or float64), None for another text.

    The numbers may have Relay's suffixes. One number with a point, an exponent or an `f` makes all of them floats.
    Raises `RelayError` for lists of different lengths, which names `what` they are for.
    """
    top: list[Any] = []
    stack = [top]
    at, end = 0, len(text.rstrip())
    value_may_follow = True
    while at < end:
        m = _TOKEN.match(text, at)
        if m is None:
            return None
        at = m.end()
        if m["open"] or m["bool"] or m["number"]:
            if not value_may_follow:
                return None
            value_may_follow = bool(m["open"])
        if m["open"]:
            inner: list[Any] = []
            stack[-1].append(inner)
            stack.append(inner)
        elif m["close"]:
            stack.pop()
            value_may_follow = False
            if not stack:
                return None
        elif m["comma"]:
            if value_may_follow or len(stack) == 1:
                return None
            value_may_follow = True
        elif m["bool"]:
            stack[-1].append(m["bool"].lower() == "true")
        else:
            stack[-1].append(_number(m["number"], m["suffix"] or ""))
    if len(stack) != 1 or len(top) != 1:
        return None
    try:
        return np.array(top[0])
    except (ValueError, OverflowError):
        raise bad_value(f"{what}: {_ragged(top[0])}", [f"the lists of {_short(text)} are not of one length"]) from None


def _ragged(value: list[Any]) -> str:
    """The first two of nested lists that differ in their length: `row 2 has 1 number, row 1 has 2`."""
    level: list[tuple[str, Any]] = [("", value)]
    while level:
        level = [(f"{name}, {i}" if name else f"row {i}", x) for name, one in level for i, x in enumerate(one, 1)]
        for name, item in level:
            if _length(item) != _length(level[0][1]):
                return f"{name} {_length(item)}, {level[0][0]} {_length(level[0][1])}"
        if not level or not isinstance(level[0][1], list):
            break
    return "it is nested too deeply"


def _length(item: Any) -> str:
    if not isinstance(item, list):
        return "is a number"
    what = "list" if item and isinstance(item[0], list) else "number"
    return f"has {len(item)} {what}{'s' * (len(item) != 1)}"


def fit_array(array: np.ndarray, ty: TensorType, what: str, *, exact: bool) -> np.ndarray:
    """The array as a value of the type, or a `RelayError`.

    `exact` arrays (from files) must have the type's dtype. Literals keep their kind. Integers fit any number type that
    holds them, fractions fit float types, and booleans fit bool only.
    """
    dims = tuple(ty.shape)
    if len(dims) != array.ndim or any(isinstance(d, int) and d != n for d, n in zip(dims, array.shape)):
        shape = f"({', '.join(map(str, array.shape))})"
        raise bad_value(f"{what} has the shape {shape}, but its type is {type_text(ty)}")
    dtype = _dtype(ty.dtype)
    if array.dtype == dtype:
        return array
    if exact:
        raise bad_value(
            f"{what} has the dtype {array.dtype.name}, but its type is {type_text(ty)}",
            [f"convert it first: np.save(path, array.astype({ty.dtype!r}))"],
        )
    kind = array.dtype.kind
    number = dtype.kind in "iu"
    if (kind == "b") != (dtype.kind == "b") or (kind == "f" and number):
        kinds = {"b": "True or False", "f": "a fraction"}
        raise bad_value(f"{what} is {kinds.get(kind, 'a whole number')}, but its type is {type_text(ty)}")
    if number and array.size:
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        if int(array.min()) < low or int(array.max()) > high:
            raise bad_value(f"{what} does not fit {ty.dtype} ({low} to {high})")
    return array.astype(dtype)


def _dtype(name: str) -> np.dtype:
    if name not in np.sctypeDict:
        import ml_dtypes

        if hasattr(ml_dtypes, name):
            return np.dtype(getattr(ml_dtypes, name))
    try:
        return np.dtype(name)
    except TypeError:
        raise bad_value(f"values of dtype {name} cannot be given here") from None


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


def entry_function(mod: IRModule, name: str) -> Function:
    """The module's function, or a `RelayError`."""
    name = name.removeprefix("@")
    if name in mod and isinstance(mod[name], Function) and mod[name].body is not None:
        return mod[name]
    known = [gv.name_hint for gv in mod.get_global_vars()]
    near = did_you_mean(name, known)
    notes = [f"did you mean @{near}?"] if near else []
    notes.append(f"its functions: {', '.join('@' + k for k in known[:12]) or 'none'}")
    if known and name == "main":
        notes.append("--entry NAME chooses one, -e EXPR evaluates an expression")
    raise RelayError(error("R0707", f"the module has no function @{name} to run", notes=notes))


def unknown_names(given: Iterable[str], names: Sequence[str]) -> list[Diagnostic]:
    """An error for each --input that is not among the names."""
    errors = []
    for name in given:
        if name not in names:
            near = did_you_mean(name, names)
            known = ", ".join(names[:12]) or "none"
            notes = [f"did you mean {near}?"] if near else [f"its parameters: {known}"]
            errors.append(error("R0705", f"--input {name}: there is no parameter of this name", notes=notes))
    return errors


def missing(nodes: Sequence[Var | MetaRef], hints: Sequence[str] = ()) -> RelayError:
    """The error for parameters that nothing gives a value; `hints` are further notes."""
    shown = []
    for node in nodes[:8]:
        ty = node.checked_type if node.checked_type is not None else node.type_annotation
        shown.append(f"{node.name_hint}: {type_text(ty) if ty is not None else 'of unknown type'}")
    if len(nodes) > 8:
        shown.append(f"and {len(nodes) - 8} more")
    title = f"no value for parameter {nodes[0].name_hint}" if len(nodes) == 1 else f"{len(nodes)} parameters have no value"
    notes = [*shown, *hints, "give values with --input NAME=VALUE, --params FILE, or --random-params SEED"]
    return RelayError(error("R0706", title, nodes[0].span, notes=notes))
