"""Reads `.pdmodel` files: a ProgramDesc of PaddlePaddle 1.x and 2.x as a program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from relaylang.diagnostics import RelayError
from relaylang.frontends.common.files import damaged
from relaylang.frontends.common.protobuf import parsed
from relaylang.frontends.common.versions import Versions
from relaylang.frontends.paddle.legacy import renewed
from relaylang.frontends.paddle.program import Block, Given, Key, Operation, Program
from relaylang.frontends.paddle.schema import ATTRIBUTES, DTYPES, SCALARS, TENSOR, paddle

#: Blocks are nested so deep.
_DEEPEST = 64
#: The attribute with the block of a loop or branch, and that with a program's number of an input or result.
_BLOCK, _COLUMN = "sub_block", "col"

#: PaddlePaddle's version that wrote the file, as 2006002 for 2.6.2. PaddlePaddle reads a program whatever its version is.
_VERSIONS = Versions("PaddlePaddle's version", 0, 3_999_999, lambda number: f"{number // 1_000_000}.{number // 1000 % 1000}")


def read_description(data: bytes, file: str, inputs: Sequence[str] = (), results: Sequence[str] = ()) -> Program:
    """The program of a ProgramDesc. Raises `RelayError` (R0802) where it is damaged.

    `inputs` and `results` are their names for a program that does not feed and fetch them itself.
    """
    return _Reader(parsed(paddle()["ProgramDesc"], data, file, "the program"), file).program(inputs, results)


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


class _Reader:
    def __init__(self, message: Any, file: str) -> None:
        self.file = file
        self.blocks = list(message.blocks)
        self.warnings = _VERSIONS.warnings(message.version.version, file)
        self.size = 0

    def wrong(self, what: str) -> RelayError:
        return damaged(self.file, f"this is not a program of PaddlePaddle: {what}")

    def _in_columns(self, entry: Any, slots: Any) -> list[tuple[int, str]]:
        """The names in slots of a feed or fetch operation, with its column."""
        return [(self._column(entry), _text(name)) for slot in slots for name in slot.arguments]

    def program(self, fed: Sequence[str] = (), fetched: Sequence[str] = ()) -> Program:
        if not self.blocks:
            raise self.wrong("it has no blocks")
        main = self.blocks[0]
        variables = {_text(v.name): v for v in main.vars}
        inputs: list[tuple[int, str]] = []
        results: list[tuple[int, str]] = []
        operations: list[Operation] = []
        for entry in main.ops:
            kind = _text(entry.type)
            if kind == "feed":
                inputs += self._in_columns(entry, entry.outputs)
            elif kind == "fetch":
                results += self._in_columns(entry, entry.inputs)
            else:
                operations.append(self._operation(entry, (0,)))
        names = [name for _, name in sorted(inputs, key=lambda pair: pair[0])]
        if not names:
            names = list(fed) or [name for name, v in variables.items() if v.need_check_feed and not v.persistable]
        input_infos = [self._given(name, variables) for name in dict.fromkeys(names)]
        weights = [self._given(name, variables) for name, v in variables.items() if v.persistable and v.type.type == TENSOR]
        keys = [name for _, name in sorted(results, key=lambda pair: pair[0])]
        size = self.size + len(input_infos)
        return Program(Block(operations), input_infos, weights, list(keys or fetched), size, self._stated, self.warnings)

    @cached_property
    def _variables(self) -> Mapping[Any, Any]:
        return {_text(v.name): v.type.lod_tensor.tensor for block in self.blocks for v in block.vars if v.type.HasField("lod_tensor")}

    def _stated(self, key: Key) -> tuple[tuple[int, ...] | None, str | None]:
        tensor = self._variables.get(key)
        return (None, None) if tensor is None else (tuple(tensor.dims), DTYPES.get(tensor.data_type))

    def _column(self, entry: Any) -> int:
        return next((int(a.i) for a in entry.attrs if a.name == _COLUMN.encode()), 0)

    def _given(self, name: str, variables: Mapping[str, Any]) -> Given:
        variable = variables.get(name)
        if variable is None or not variable.type.HasField("lod_tensor"):
            raise self.wrong(f"its input {name[:60]!r} is no tensor")
        tensor = variable.type.lod_tensor.tensor
        dtype = DTYPES.get(tensor.data_type)
        if dtype is None:
            raise self.wrong(f"{name[:60]!r} has the element type {tensor.data_type}")
        return Given(name, name, tuple(tensor.dims), dtype)

    def _operation(self, entry: Any, above: tuple[int, ...]) -> Operation:
        """An operation; `above` are the numbers of the blocks around it."""
        self.size += 1
        inputs, outputs = (
            {_text(v.parameter): [_text(a) for a in v.arguments] for v in side} for side in (entry.inputs, entry.outputs)
        )
        attributes = {_text(a.name): self._attribute(a) for a in entry.attrs}
        block = attributes.pop(_BLOCK, None)
        renewed_operation = renewed(_text(entry.type), inputs, outputs, attributes)
        if block is not None:
            renewed_operation.blocks.append(self._block(block, above))
        return renewed_operation

    def _attribute(self, entry: Any) -> Any:
        field = ATTRIBUTES.get(entry.type)
        if field is None:
            return None
        value = getattr(entry, field)
        if field == "scalar":
            return self._scalar(value)
        if field == "scalars":
            return [self._scalar(v) for v in value]
        if isinstance(value, bytes):
            return _text(value)
        if isinstance(value, (int, float)):
            return value
        return [_text(v) if isinstance(v, bytes) else v for v in value]

    @staticmethod
    def _scalar(entry: Any) -> Any:
        return getattr(entry, SCALARS[entry.type]) if entry.type in SCALARS else None

    def _block(self, number: Any, above: tuple[int, ...]) -> Block:
        if not isinstance(number, int) or not 0 <= number < len(self.blocks) or number in above:
            raise self.wrong(f"a block is inside of the block {number!r}")
        if len(above) > _DEEPEST:
            raise self.wrong(f"its blocks are nested more than {_DEEPEST} deep")
        return Block([self._operation(entry, (*above, number)) for entry in self.blocks[number].ops])


__all__ = ["read_description"]
