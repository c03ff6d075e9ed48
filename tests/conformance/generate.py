"""Calls of every operator: right ones, and the same with one or two changes."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from typing import Any

from relaylang.ops import OPS
from relaylang.ops.record import AttrField
from tests.conformance.seeds import Seed, seeds

DTYPES = ("float32", "float16", "float64", "int8", "uint8", "int32", "int64", "bool")
LAYOUTS = ("NCHW", "NHWC", "NCW", "NWC", "NCDHW", "NDHWC", "OIHW", "HWIO", "OHWI", "NCHW4c", "XYZ")
_TENSOR = re.compile(r"(\w+)\[([^\]]*)\]")


def tensors(arg: str) -> list[tuple[str, list[str]]]:
    """The tensors of an argument: element type and extents."""
    return [(dtype, dims.split(",") if dims else []) for dtype, dims in _TENSOR.findall(arg)]


def joined(arg: str, parts: list[tuple[str, list[str]]]) -> str:
    texts = [f"{dtype}[{','.join(dims)}]" for dtype, dims in parts]
    return f"({','.join(texts)})" if arg.startswith("(") else texts[0]


def change_types(rng: random.Random, args: list[str]) -> list[str]:
    """The arguments with something else about one of them."""
    args = list(args)
    if not args:
        return [f"{rng.choice(DTYPES)}[2]"]
    i = rng.randrange(len(args))
    parts = tensors(args[i])
    kind = rng.randrange(14)
    if kind == 0:
        if rng.random() < 0.5:
            del args[i]
        else:
            args.append(args[i])
        return args
    if kind == 1:
        args[i] = args[i][1:-1].split("],")[0] + "]" * (args[i].count("],") > 0) if args[i][0] == "(" else f"({args[i]})"
        return args
    if not parts:
        return args
    j = rng.randrange(len(parts))
    dtype, dims = parts[j]
    if kind in (2, 3):
        parts[j] = (rng.choice(DTYPES), dims)
    elif kind == 4:
        new = rng.choice(DTYPES)
        return [joined(a, [(new if d == dtype else d, s) for d, s in tensors(a)]) if tensors(a) else a for a in args]
    elif kind == 5 or not dims:
        parts[j] = (dtype, [*dims, rng.choice("1235?")])
    elif kind == 6:
        parts[j] = (dtype, dims[:-1] if rng.random() < 0.5 else dims[1:])
    elif kind == 7:
        parts[j] = (dtype, ["?"] * len(dims))
    else:
        axis = rng.randrange(len(dims))
        old = int(dims[axis]) if dims[axis] != "?" else 3
        dims = list(dims)
        dims[axis] = rng.choice(["?", "?", "1", str(old + 1), str(old * 2), str(max(old - 1, 1))])
        parts[j] = (dtype, dims)
    args[i] = joined(args[i], parts)
    return args


def change_value(rng: random.Random, field: AttrField, value: Any) -> Any:
    """Another value of an attribute, of its kind or not."""
    if rng.random() < 0.06:
        wrong = ["x", [1, 2], 1.5, None]
        return rng.choice(wrong if field.kind != "Floats" else ["x", None])
    if field.kind == "int":
        old = value if isinstance(value, int) else 1
        if "axis" not in field.name and rng.random() < 0.96:  # a negative extent is seldom more than refused
            return rng.choice([old + 1, max(old - 1, 0), 0, 1, 2, 5])
        return rng.choice([old + 1, old - 1, 0, 1, -1, -2, 2, 5])
    if field.kind == "float":
        return rng.choice([0.0, 1.0, -1.0, 0.5, 2.0])
    if field.kind == "bool":
        return not value
    if field.kind == "str":
        if "dtype" in field.name:
            return rng.choice(DTYPES)
        if "layout" in field.name:
            old = value if isinstance(value, str) and value else "NCHW"
            if old[0].isdigit():
                return rng.choice(["6A8B", "2A4B3C2b", "8B2A3C", "48A", "3C2A8B"])
            return rng.choice([old[::-1], *LAYOUTS])
        return rng.choice(["max", "min", "avg", "add", "mul", "mean", "constant", "both", "linear", "nonsense"])
    if field.kind in ("Ints", "Floats"):
        old = list(value) if isinstance(value, (list, tuple)) else [1]
        kind = rng.randrange(6)
        if kind == 0:
            return old[:-1]
        if kind == 1:
            return [*old, 1]
        if kind == 2:
            return old[::-1]
        if old:
            odd = -1 if "axis" in field.name or rng.random() < 0.1 else 5
            old[rng.randrange(len(old))] = rng.choice([0, 1, 2, 3, odd, 4]) * (1.0 if field.kind == "Floats" else 1)
        return old
    if field.kind == "NestedInts":
        old = [list(v) if isinstance(v, (list, tuple)) else [v, v] for v in value or [[0, 0]]]
        kind = rng.randrange(3)
        if kind == 0:
            return old[:-1]
        if kind == 1:
            return [*old, [0, 0]]
        if old:
            old[rng.randrange(len(old))] = [rng.randrange(3), rng.randrange(3)]
        return old
    return rng.choice([1, 2, 3, [1], [1, 2], 0])


def change_attrs(rng: random.Random, op: str, attrs: dict[str, Any]) -> dict[str, Any]:
    schema = list(OPS[op].schema.values())
    attrs = dict(attrs)
    if rng.random() < 0.03:
        attrs["no_such"] = 1
        return attrs
    field = rng.choice(schema)
    if field.name in attrs and rng.random() < (0.01 if "dtype" in field.name else 0.12):
        del attrs[field.name]
        return attrs
    default = field.default if not isinstance(field.default, tuple) else list(field.default)
    attrs[field.name] = change_value(rng, field, attrs.get(field.name, default))
    return attrs


def changed(rng: random.Random, op: str, seed: Seed) -> Seed:
    args, attrs = seed
    if OPS[op].schema and rng.random() < 0.55:
        return args, change_attrs(rng, op, attrs)
    return change_types(rng, args), attrs


def cases(many: int = 29) -> Iterator[tuple[str, list[str], dict[str, Any]]]:
    """About so many calls of each operator, the same ones at every run."""
    for op, right in seeds().items():
        rng = random.Random(op)
        found: dict[str, Seed] = {json.dumps(seed): seed for seed in right}
        tries = 0
        while right and len(found) < many and tries < 300:
            tries += 1
            seed = changed(rng, op, rng.choice(right))
            if rng.random() < 0.25:
                seed = changed(rng, op, seed)
            found.setdefault(json.dumps(seed), seed)
        for args, attrs in found.values():
            yield op, args, attrs
