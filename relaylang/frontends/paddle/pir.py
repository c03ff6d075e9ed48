"""Reads `.json` files: a program in PIR, the form of PaddlePaddle 3.

Source: PaddlePaddle, paddle/fluid/pir/serialize_deserialize. Names of dialects are numbers there, and keys have few letters.
"""

from __future__ import annotations

import json
import math
from typing import Any

from relaylang.diagnostics import RelayError
from relaylang.frontends.common.files import check_version, damaged
from relaylang.frontends.paddle.program import Block, Given, Key, Operation, Program

#: Regions are nested so deep.
_DEEPEST = 64
#: The numbers of dialects -> their names.
_DIALECTS = {"0": "builtin", "1": "pd_op", "2": "cf", "3": "custom_op", "4": "pd_dist"}
#: Element types, behind "t_".
_DTYPES = {
    "bool": "bool",
    "bf16": "bfloat16",
    "f16": "float16",
    "f32": "float32",
    "f64": "float64",
    "i8": "int8",
    "ui8": "uint8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "index": "int64",
}
#: The name of a weight in the attributes of its operation, which a file lists without their names.
_NAME_AT = 3
#: Operations that work in place, but not on their first operand -> the number of the operand that the result replaces.
_CHANGED = {"assign_out_": 1, "batch_norm_": None}
#: Numbers that JSON has no form for.
_NUMBERS = {"NAN": math.nan, "INF": math.inf, "-INF": -math.inf}

#: The version that PaddlePaddle 3.3 writes.
_VERSION = 4


def read_pir(data: bytes, file: str) -> Program:
    """The program of a file's JSON. Raises `RelayError` (R0802) where it is damaged."""
    try:
        document = json.loads(data)
    except RecursionError:
        raise damaged(file, "its JSON is nested too deeply") from None
    except ValueError as wrong:
        place = f" at character {wrong.pos}" if isinstance(wrong, json.JSONDecodeError) else ""
        raise damaged(file, f"this is not a program of PaddlePaddle, or it is cut short: its JSON is wrong{place}") from None
    return _Reader(file).program(document)


class _Reader:
    def __init__(self, file: str) -> None:
        self.file = file
        self.inputs: list[Given] = []
        self.weights: list[Given] = []
        self.results: list[tuple[int, Key]] = []
        self.stated: dict[Key, Any] = {}
        self.size = 0

    def wrong(self, what: str) -> RelayError:
        return damaged(self.file, f"this is not a program of PaddlePaddle: {what}")

    def _get(self, entry: Any, key: str, kind: type, what: str) -> Any:
        value = entry.get(key) if isinstance(entry, dict) else None
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise self.wrong(f"{what} has no field {key!r} that fits")
        return value

    def program(self, found: Any) -> Program:
        program = self._get(found, "program", dict, "the file")
        version = self._get(found, "base_code", dict, "the file").get("version")
        check_version(self.file, "its form of programs", version if isinstance(version, int) else 0, _VERSION)
        regions = self._get(program, "regions", list, "the program")
        if len(regions) != 1:
            raise self.wrong(f"it has {len(regions)} regions")
        block = self._region(regions[0], 0)
        results = [key for _, key in sorted(self.results, key=lambda pair: pair[0])]
        return Program(block, self.inputs, self.weights, results, self.size, lambda key: self._type(self.stated.get(key)))

    def _region(self, region: Any, depth: int) -> Block:
        if depth > _DEEPEST:
            raise self.wrong(f"its regions are nested more than {_DEEPEST} deep")
        blocks = self._get(region, "blocks", list, "a region")
        if len(blocks) != 1:
            raise self.wrong(f"a region has {len(blocks)} blocks")
        arguments = [self._get(a, "#", int, "an argument") for a in self._get(blocks[0], "args", list, "a block")]
        block = Block([], list(arguments))
        for entry in self._get(blocks[0], "ops", list, "a block"):
            operation = self._operation(entry, depth)
            if operation is not None:
                block.operations.append(operation)
        return block

    def _noted(self, name: str, attributes: dict[str, Any], operands: list[int | None], keys: list[int], results: list[Any]) -> bool:
        """Note a weight, an input or a result of the program. Returns whether the operation is one."""
        if name == "builtin.parameter":
            self._weight_of(str(attributes.get("parameter_name")), keys, results)
        elif name in ("pd_op.data", "pd_op.feed") and keys:
            self._input(str(attributes.get("name")), keys[0], results[0])
        elif name in ("pd_op.fetch", "builtin.shadow_output", "pd_op.shadow_output") and operands and operands[0] is not None:
            column = attributes.get("col", len(self.results))
            self.results.append((column if isinstance(column, int) else 0, operands[0]))
        else:
            return False
        return True

    def _operation(self, entry: Any, depth: int) -> Operation | None:
        """An operation; None for inputs, weights and results of the program, which are noted."""
        self.size += 1
        name = self._get(entry, "#", str, "an operation")
        results = entry.get("O", [])
        results = [results] if isinstance(results, dict) else results
        if not isinstance(results, list):
            raise self.wrong(f"the results of {name[:60]} are no list")
        keys = [self._get(r, "%", int, f"a result of {name[:60]}") for r in results]
        self.stated.update(zip(keys, results))
        if name == "p":
            return self._weight(entry, keys, results)
        dialect, _, own = name.partition(".")
        dialect, own = (_DIALECTS.get(dialect, dialect), own) if own else ("", dialect)
        attributes = self._attributes(entry, name)
        operands = [self._get(o, "%", int, f"an operand of {name[:60]}") or None for o in self._get(entry, "I", list, name[:60])]
        full = f"{dialect}.{own}"
        if self._noted(full, attributes, operands, keys, results):
            return None
        kind = full if dialect != "pd_op" else own if own in ("increment_", "assign_out_") else own.rstrip("_")
        regions = entry.get("regions", [])
        if not isinstance(regions, list):
            raise self.wrong(f"the regions of {name[:60]} are no list")
        blocks = [self._region(r, depth + 1) for r in regions]
        parsed = Operation(kind, own, operands, list(keys), attributes, blocks)
        if own.endswith("_") and keys:
            place = _CHANGED.get(own, 0)
            parsed.changed = operands[place] if place is not None and place < len(operands) else None
        return parsed

    def _attributes(self, entry: Any, name: str) -> dict[str, Any]:
        attributes = {}
        for part in self._get(entry, "A", list, name[:60]):
            own = self._get(part, "N", str, f"an attribute of {name[:60]}")
            attributes[own] = self._value(part.get("AT"))
        return attributes

    def _value(self, entry: Any, depth: int = 0) -> Any:
        """The value of an attribute: a scalar is a pair of its type and its number, and an array holds attributes."""
        if not isinstance(entry, dict) or depth > _DEEPEST:
            return None
        if "VD" in entry:
            return _NUMBERS.get(str(entry["VD"]))
        value, kind = entry.get("D"), str(entry.get("#"))
        if kind.endswith("scalar") and isinstance(value, list) and len(value) == 2:
            return value[1]
        if isinstance(value, list):
            return [self._value(v, depth + 1) if isinstance(v, dict) else v for v in value]
        return value

    def _type(self, result: Any) -> tuple[tuple[int, ...] | None, str | None]:
        """The shape and the element type that a file states for a result."""
        stated = result.get("TT") if isinstance(result, dict) else None
        parts = stated.get("D") if isinstance(stated, dict) else None
        if not isinstance(parts, list) or len(parts) < 2 or not isinstance(parts[0], dict):
            return None, None
        dims = parts[1]
        plain = isinstance(dims, list) and all(type(d) is int and -1 <= d < 1 << 40 for d in dims)
        return tuple(dims) if plain else None, _DTYPES.get(str(parts[0].get("#")).rpartition("t_")[2])

    def _weight(self, entry: Any, keys: list[int], results: list[Any]) -> Operation | None:
        """A weight; zeros for a buffer that no file has."""
        values, others = self._get(entry, "A", list, "a weight"), entry.get("OA")
        if isinstance(others, list) and others[:1] == [0]:
            shape, dtype = self._type(results[0]) if results else (None, None)
            return Operation("zeros", "p", [], list(keys), {"shape": [max(d, 0) for d in shape or ()], "dtype": dtype})
        name = values[_NAME_AT] if len(values) > _NAME_AT else None
        self._weight_of(name, keys, results)
        return None

    def _weight_of(self, name: Any, keys: list[int], results: list[Any]) -> None:
        if not isinstance(name, str) or len(keys) != 1:
            raise self.wrong("a weight has no name, or no result")
        shape, dtype = self._type(results[0])
        self.weights.append(Given(name, keys[0], shape, dtype or "float32"))

    def _input(self, name: str, key: int, result: Any) -> None:
        shape, dtype = self._type(result)
        if dtype is None:
            raise self.wrong(f"its input {name[:60]!r} has no element type that is known")
        self.inputs.append(Given(name, key, shape, dtype))


__all__ = ["read_pir"]
