"""The functional simulator: executes a stream to the integers that VTA computes, and finds what would go wrong.

An instruction runs as a few operations of numpy. It reads nothing that was not written, and leaves no memory. Tokens order
all that units share; see `hazards`.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from relaylang.backends.vta.hazards import COMPUTE, LOAD, STORE, Fault, Memory, Order, fault
from relaylang.backends.vta.isa import MEMORIES, OPERATIONS, Instruction
from relaylang.backends.vta.layout import pack, unpack, view_of
from relaylang.backends.vta.program import Program, Tensor

#: The most products of tiles and operations on tiles that a stream may ask for: hours of work.
_MOST_WORK = 1 << 34
_FUNCTIONS: Mapping[str, np.ufunc] = {"MIN": np.minimum, "MAX": np.maximum, "ADD": np.add, "MUL": np.multiply}


def simulate(program: Program, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The outputs of a program for its inputs, int8.

    Raises `RelayError`: R0615 for a stream that cannot be read, R0616 where hardware would go wrong.
    """
    return _Machine(program).run(inputs)


class _Machine:
    def __init__(self, program: Program) -> None:
        self.program, self.config, self.instructions = program, program.config, program.instructions()
        self.order = Order(program, self.instructions)
        depth, batch, clocks = self.config.depth, self.config.batch, self.order.clocks
        self.dram = np.zeros(program.memory, np.uint8)
        self.grain = min(4, *self.config.element_bytes.values())
        self.data: dict[str, np.ndarray] = {
            "inp": np.zeros((depth["inp"], batch, self.config.block_in), np.int8),
            "wgt": np.zeros((depth["wgt"], self.config.block_out, self.config.block_in), np.int8),
            "acc": np.zeros((depth["acc"], batch, self.config.block_out), np.int32),
            "uop": np.zeros(depth["uop"], np.uint32),
        }
        writers = {"inp": LOAD, "wgt": LOAD, "acc": COMPUTE, "uop": COMPUTE}
        self.memories = {name: Memory(name, depth[name], unit, clocks) for name, unit in writers.items()}
        self.memories["dram"] = Memory(f"DRAM in units of {self.grain} bytes,", -(-program.memory // self.grain), STORE, clocks)
        self.work = 0

    def run(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        program, config, filled = self.program, self.config, self.memories["dram"].written
        first = program.memory - len(program.constants)
        self.dram[first:] = np.frombuffer(program.constants, np.uint8)
        filled[first // self.grain :] = 0
        for tensor, value in zip(program.inputs, inputs):
            for place in tensor.places:
                content, grains = self._tensor(tensor, place)
                content[:] = pack(value, config.batch, place[1]).reshape(-1).view(np.uint8)
                filled[grains] = 0
        last = None
        for unit, last in self.order:
            try:
                getattr(self, f"_{last.name.lower()}")(unit, last)
            except Fault as problem:
                raise fault(program, last, str(problem)) from None
        if last is None or last.name != "FINISH":
            raise fault(program, (self.instructions or [Instruction(0, "nothing", {})])[-1], "is the last one, and FINISH is not")
        results = []
        for tensor in program.outputs:
            content, grains = self._tensor(tensor, tensor.places[0])
            if filled[grains].min(initial=0) < 0:
                raise fault(program, self.instructions[0], f"begins a stream that leaves out a part of the output {tensor.name}")
            results.append(unpack(content.view(np.int8), tensor.shape, config.batch, tensor.places[0][1]))
        return results

    def _tensor(self, tensor: Tensor, place: tuple[int, int]) -> tuple[np.ndarray, slice]:
        """The bytes of a tensor at one of its places in DRAM, and its grains."""
        (first, block), batch = place, self.config.batch
        end = first + view_of(tensor.shape, batch, block).size * batch * block
        if end > self.dram.size:
            raise fault(self.program, Instruction(0, "the first", {}), "begins a stream with a tensor outside of its DRAM")
        return self.dram[first:end], slice(first // self.grain, -(-end // self.grain))

    def _finish(self, unit: int, i: Instruction) -> None:
        """Nothing is left to do."""

    # Transfers.

    def _rows(self, i: Instruction, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """All elements of DRAM as rows of bytes, those of a transfer, and their grains."""
        index = i["dram"] + np.arange(i["y_size"])[:, None] * i["x_stride"] + np.arange(i["x_size"])
        if int(index[-1, -1] + 1) * size > self.dram.size:
            raise Fault(f"uses byte {int(index[-1, -1]) * size:#x} of DRAM, which has {self.dram.size} bytes")
        grains = index[..., None] * (size // self.grain) + np.arange(size // self.grain)
        return self.dram[: self.dram.size // size * size].reshape(-1, size), index.reshape(-1), grains.reshape(-1)

    def _load(self, unit: int, i: Instruction) -> None:
        name = MEMORIES[i["memory"]]
        target = name.removesuffix("8")
        if target not in self.data:
            raise Fault(f"loads the memory {name}, which takes no loads")
        rows, columns = (i[f"{axis}_size"] + i[f"{axis}_pad_0"] + i[f"{axis}_pad_1"] for axis in "yx")
        if not i["x_size"] or not rows:
            return
        place = slice(i["sram"], i["sram"] + rows * columns)
        self.memories[target].write(place)
        tiles = self.data[target].reshape(self.config.depth[target], -1)
        loaded = np.zeros((rows, columns, tiles.shape[1]), tiles.dtype)
        if i["y_size"]:
            elements, index, grains = self._rows(i, self.config.element_bytes[name])
            self.memories["dram"].read(unit, grains)
            top, left = i["y_pad_0"], i["x_pad_0"]
            content = elements[index].view(np.int8 if name == "acc8" else tiles.dtype)
            loaded[top : top + i["y_size"], left : left + i["x_size"]] = content.reshape(i["y_size"], i["x_size"], -1)
        tiles[place] = loaded.reshape(rows * columns, -1)

    def _store(self, unit: int, i: Instruction) -> None:
        if MEMORIES[i["memory"]] != "out":
            raise Fault(f"stores the memory {MEMORIES[i['memory']]}; only out can be stored")
        if any(i[pad] for pad in ("y_pad_0", "y_pad_1", "x_pad_0", "x_pad_1")):
            raise Fault("stores padding")
        if not i["x_size"] or not i["y_size"]:
            return
        place = slice(i["sram"], i["sram"] + i["y_size"] * i["x_size"])
        self.memories["acc"].read(unit, place)
        elements, index, grains = self._rows(i, self.config.element_bytes["out"])
        if i["y_size"] > 1 and i["x_stride"] < i["x_size"]:
            raise Fault("writes rows that overlap")
        self.memories["dram"].write(grains, once=True)
        elements[index] = self.data["acc"][place].reshape(len(index), -1).astype(np.int8).view(np.uint8)

    # The compute unit.

    def _uops(self, unit: int, i: Instruction) -> tuple[np.ndarray, ...]:
        """The fields of an instruction's micro-operations: dst, src, wgt."""
        if not i["uop_bgn"] < i["uop_end"] or not i["iter_out"] or not i["iter_in"]:
            raise Fault("has no turns: a loop or its micro-operations are empty")
        place = slice(i["uop_bgn"], i["uop_end"])
        self.memories["uop"].read(unit, place)
        self.work += (i["uop_end"] - i["uop_bgn"]) * i["iter_out"] * i["iter_in"]
        if self.work > _MOST_WORK:
            raise Fault(f"is where the stream exceeds {_MOST_WORK} operations on tiles, the most that are simulated")
        words, depth = self.data["uop"][place].astype(np.int64), self.config.log_depth
        dst, src = depth["acc"], max(depth["acc"], depth["inp"])
        return words & ((1 << dst) - 1), words >> dst & ((1 << src) - 1), words >> (dst + src) & ((1 << depth["wgt"]) - 1)

    def _gemm(self, unit: int, i: Instruction) -> None:
        dst, src, wgt = self._uops(unit, i)
        places, inputs, weights = (_grid(i["iter_out"], i["iter_in"], i[f"{it}_out"], i[f"{it}_in"]) for it in ("dst", "src", "wgt"))
        sums, index, memory = self.data["acc"], places[:, None] + dst, self.memories["acc"]
        if i["reset"]:
            memory.write(index)
            sums[index] = 0
            return
        self.memories["inp"].read(unit, inputs[:, None] + src)
        self.memories["wgt"].read(unit, weights[:, None] + wgt)
        memory.read(unit, index)
        memory.write(index)
        # One product of matrices for each source and offset of weights. A sum of a tile's products is exact in float32: at most
        # 2^8 of at most 2^14.
        for offset, source in itertools.product(np.unique(weights), dict.fromkeys(src.tolist())):
            turns, here = np.flatnonzero(weights == offset), np.flatnonzero(src == source)
            matrix = self.data["wgt"][wgt[here] + offset].reshape(-1, self.config.block_in).astype(np.float32)
            rows = self.data["inp"][inputs[turns] + source].reshape(-1, self.config.block_in).astype(np.float32)
            products = (rows @ matrix.T).astype(np.int32).reshape(len(turns), self.config.batch, len(here), -1)
            _add(sums, index[np.ix_(turns, here)], products.transpose(0, 2, 1, 3))

    def _alu(self, unit: int, i: Instruction) -> None:
        dst, src, _ = self._uops(unit, i)
        turns = i["iter_out"], i["iter_in"]
        index = (_grid(*turns, i["dst_out"], i["dst_in"])[:, None] + dst).reshape(-1)
        other = (_grid(*turns, i["src_out"], i["src_in"])[:, None] + src).reshape(-1)
        memory, sums, operation = self.memories["acc"], self.data["acc"], OPERATIONS[i["alu"]]
        for operand in (index,) if i["use_imm"] else (index, other):
            memory.read(unit, operand)
        memory.write(index)
        at_once = (i["use_imm"] or _is_apart(index, other)) and len(np.unique(index)) == index.size
        # Else one after the other: a turn reads what one before it wrote.
        for turn in [slice(None)] if at_once else [slice(number, number + 1) for number in range(index.size)]:
            operand = np.int32(i["imm"]) if i["use_imm"] else sums[other[turn]]
            sums[index[turn]] = _computed(operation, sums[index[turn]], operand)


def _add(sums: np.ndarray, index: np.ndarray, products: np.ndarray) -> None:
    if len(np.unique(index)) == index.size:
        sums[index] += products
    else:
        np.add.at(sums, index, products)


@lru_cache(maxsize=1 << 10)
def _grid(outer: int, inner: int, by_outer: int, by_inner: int) -> np.ndarray:
    """What the turns of both loops add to an index."""
    return (np.arange(outer)[:, None] * by_outer + np.arange(inner) * by_inner).reshape(-1)


def _is_apart(index: np.ndarray, other: np.ndarray) -> bool:
    """Whether no turn reads what another one writes; a turn may read what it writes itself."""
    return np.array_equal(index, other) or other.max() < index.min() or index.max() < other.min() or not np.isin(other, index).any()


def _computed(operation: str, a: np.ndarray, b: np.ndarray | np.int32) -> np.ndarray:
    """An operation of the ALU on numbers of 32 bits, which wrap."""
    with np.errstate(over="ignore"):
        if operation == "SHR":
            amount = np.clip(b, -31, 31)
            left = np.left_shift(a, np.maximum(-amount, 0).astype(np.int32))
            return np.where(amount < 0, left, np.right_shift(a, np.maximum(amount, 0).astype(np.int32)))
        return _FUNCTIONS[operation](a, b)  # type: ignore[no-any-return]


__all__ = ["simulate"]
