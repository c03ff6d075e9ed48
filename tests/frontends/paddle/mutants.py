"""Changed programs of PaddlePaddle, for tests/mutants.py."""

from __future__ import annotations

import json
from copy import deepcopy
from random import Random
from typing import Any

#: Stands between a program and its weights.
SPLIT = b"\0--weights--\0"
_NUMBERS = (0, 1, -1, 2, 3, 7, 127, 1 << 20, 1 << 31, 1 << 40, (1 << 63) - 1, 0.5, 1e30, "nan", "", None, True, [], [1, 2], {})
_MOST = 60_000


def _seeds(form: str) -> list[bytes]:
    from tests.frontends.paddle.test_networks import files, names

    pairs = [files(form, name) for many in (True, False) for name in names(form, many) if name not in ("densenet121", "resnet18")]
    return [program + SPLIT + weights for program, weights in pairs if len(program) < _MOST and len(weights) < _MOST]


def pdmodel_seeds() -> list[bytes]:
    return _seeds("2")


def pir_seeds() -> list[bytes]:
    return _seeds("3")


def changed_json(data: bytes, rng: Random) -> bytes:
    """A program with other numbers, words, operations or operands."""
    text, split, weights = data.partition(SPLIT)
    whole = json.loads(text)
    for _ in range(rng.choice([1, 1, 2, 3])):
        places = _places(whole["program"])
        holder, key = rng.choice(places)
        kind = rng.randrange(6)
        if kind < 4:
            other, at = rng.choice(places)
            holder[key] = rng.choice(_NUMBERS) if kind < 3 else deepcopy(other[at])
        elif kind == 4:
            del holder[key]
        elif isinstance(holder, list):
            holder.insert(key, rng.choice(holder))
        if not isinstance(whole.get("program"), dict):
            break
    return json.dumps(whole).encode() + split + weights


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Each place in a tree: what holds it, and its key."""
    found: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting and len(found) < 10_000:
        own = waiting.pop()
        parts = list(own.items()) if isinstance(own, dict) else list(enumerate(own)) if isinstance(own, list) else []
        found += [(own, key) for key, _ in parts]
        waiting += [part for _, part in parts]
    return found or [({"x": 0}, "x")]


def changed_message(data: bytes, rng: Random) -> bytes:
    """A program with other attributes, operators, operands or variables."""
    from relaylang.frontends.paddle.schema import ATTRIBUTES, paddle

    text, split, weights = data.partition(SPLIT)
    whole = paddle()["ProgramDesc"].FromString(text)
    for _ in range(rng.choice([1, 1, 2, 3])):
        block = rng.choice(whole.blocks)
        operation, other = rng.choice(block.ops), rng.choice(block.ops)
        kind = rng.randrange(7)
        if kind < 3 and operation.attrs:
            entry = rng.choice(operation.attrs)
            field = ATTRIBUTES.get(entry.type, "i")
            value = getattr(entry, field)
            number = rng.choice([0, 1, -1, 2, 5, 127, 1 << 20, (1 << 31) - 1])
            if (
                field.endswith("s")
                and len(field) > 1
                and hasattr(value, "append")
                and field in ("ints", "longs", "floats", "float64s")
            ):
                if value and rng.random() < 0.7:
                    value[rng.randrange(len(value))] = number
                else:
                    value.append(number)
            elif field in ("i", "l", "f", "float64", "block_idx"):
                setattr(entry, field, number)
            elif field == "b":
                entry.b = not entry.b
            else:
                entry.type = rng.randrange(18)
        elif kind == 3:
            operation.type = other.type
        elif kind == 4 and operation.inputs and other.outputs:
            entry, source = rng.choice(operation.inputs), rng.choice(other.outputs)
            del entry.arguments[:]
            entry.arguments.extend(source.arguments)
        elif kind == 5 and block.vars:
            tensor = rng.choice(block.vars).type.lod_tensor.tensor
            if tensor.dims and rng.random() < 0.7:
                tensor.dims[rng.randrange(len(tensor.dims))] = rng.choice([0, 1, -1, 3, 7, 1 << 20, 1 << 40])
            else:
                tensor.data_type = rng.randrange(26)
        elif len(operation.inputs):
            del operation.inputs[rng.randrange(len(operation.inputs))]
    return bytes(whole.SerializePartialToString()) + split + weights


def read_program(data: bytes, rng: Random) -> None:
    from relaylang.frontends.paddle import import_paddle

    program, _, weights = data.partition(SPLIT)
    import_paddle(program, file="mutant.pdmodel", params=weights)
