"""The functional simulator: executes a stream to the integers that VTA computes, and finds what would go wrong.

An instruction runs as a few operations of numpy. It reads nothing that was not written, and leaves no memory. Tokens order
all that units share; see `hazards`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from relaylang.backends.vta.hazards import COMPUTE, LOAD, STORE, Fault, Memory, Order, fault
from relaylang.backends.vta.isa import KINDS, Instruction
from relaylang.backends.vta.layout import pack, unpack, view_of
from relaylang.backends.vta.program import Program, Tensor
from relaylang.diagnostics import RelayError

_MEMORIES = KINDS["LOAD"].fields[4].names
_OPERATIONS = KINDS["ALU"].fields[-3].names
#: The most products of tiles and operations on tiles that a stream may ask for: hours of work.
_MOST_WORK = 1 << 34


def simulate(program: Program, inputs: Sequence[np.ndarray], outputs: int = 1) -> list[np.ndarray]:
    """The outputs of a program, int8. `inputs` are those of the region, by number.

    Raises `RelayError`: R0615 for a stream that cannot be read, R0616 where hardware would go wrong.
    """
    return _Machine(program).run(inputs, outputs)


class _Machine:
    def __init__(self, program: Program) -> None:
        self.program, self.config = program, program.config
        self.order = Order(program, program.instructions())
        depth, clocks = self.config.depth, self.order.clocks
        self.dram = np.zeros(program.memory, np.uint8)
        self.grain = min(4, *self.config.element_bytes.values())
        tiles = {"inp": (self.config.batch, self.config.block_in), "wgt": (self.config.block_out, self.config.block_in)}
        self.data: dict[str, np.ndarray] = {name: np.zeros((depth[name], *shape), np.int8) for name, shape in tiles.items()}
        self.data["acc"] = np.zeros((depth["acc"], self.config.batch, self.config.block_out), np.int32)
        self.data["uop"] = np.zeros(depth["uop"], np.uint32)
        writers = {"inp": LOAD, "wgt": LOAD, "acc": COMPUTE, "uop": COMPUTE}
        self.memories = {name: Memory(name, depth[name], unit, clocks) for name, unit in writers.items()}
        self.memories["dram"] = Memory(f"DRAM in units of {self.grain} bytes,", -(-program.memory // self.grain), STORE, clocks)
        self.work = 0

    def run(self, inputs: Sequence[np.ndarray], outputs: int) -> list[np.ndarray]:
        program, config = self.program, self.config
        first = program.memory - len(program.constants)
        self.dram[first:] = np.frombuffer(program.constants, np.uint8)
        filled = self.memories["dram"].written
        filled[first // self.grain :] = 0
        for tensor in program.inputs:
            self._bytes(tensor)[:] = pack(inputs[tensor.number], config.batch, tensor.block).reshape(-1).view(np.uint8)
            filled[self._grains(tensor)] = 0
        ended = False
        steps = {"LOAD": self._load, "STORE": self._store, "GEMM": self._gemm, "ALU": self._alu, "FINISH": self._finish}
        for unit, instruction in self.order:
            try:
                steps[instruction.name](unit, instruction)
            except Fault as problem:
                raise fault(program, instruction, str(problem)) from None
            ended = instruction.name == "FINISH"
        if not ended:
            last = program.instructions()[-1] if program.stream else Instruction(0, "nothing", {})
            raise fault(program, last, "is the last one, and FINISH is not")
        results: list[np.ndarray] = [np.zeros(0, np.int8)] * outputs
        for tensor in program.outputs:
            if self.memories["dram"].written[self._grains(tensor)].min(initial=0) < 0:
                raise fault(
                    program, Instruction(0, "the first", {}), f"begins a stream that leaves out a part of output {tensor.number}"
                )
            results[tensor.number] = unpack(self._bytes(tensor).view(np.int8), tensor.shape, config.batch, tensor.block)
        return results

    def _grains(self, tensor: Tensor) -> slice:
        size = view_of(tensor.shape, self.config.batch, tensor.block).size * self.config.batch * tensor.block
        return slice(tensor.address // self.grain, -(-(tensor.address + size) // self.grain))

    def _bytes(self, tensor: Tensor) -> np.ndarray:
        size = view_of(tensor.shape, self.config.batch, tensor.block).size * self.config.batch * tensor.block
        found = self.dram[tensor.address : tensor.address + size]
        if found.size != size:
            raise fault(self.program, Instruction(0, "the first", {}), "begins a stream with a tensor outside of its DRAM")
        return found

    def _spend(self, work: int) -> None:
        self.work += work
        if self.work > _MOST_WORK:
            raise Fault(f"is where the stream exceeds {_MOST_WORK} operations on tiles, the most that are simulated")

    def _finish(self, unit: int, i: Instruction) -> None:
        pass

    def _rows(self, i: Instruction, size: int) -> tuple[np.ndarray, np.ndarray]:
        """The bytes in DRAM of a transfer's elements, shape (rows, columns), and their grains."""
        first = i["dram"] + np.arange(i["y_size"])[:, None] * i["x_stride"] + np.arange(i["x_size"])
        if int(first[-1, -1] + 1) * size > self.dram.size:
            raise Fault(f"uses byte {int(first[-1, -1]) * size:#x} of DRAM, which has {self.dram.size} bytes")
        return first, (first[..., None] * (size // self.grain) + np.arange(size // self.grain)).reshape(-1)

    def _load(self, unit: int, i: Instruction) -> None:
        name = _MEMORIES[i["memory"]]
        target = name.removesuffix("8")
        if target not in self.data:
            raise Fault(f"loads the memory {name}, which takes no loads")
        rows = i["y_size"] + i["y_pad_0"] + i["y_pad_1"]
        columns = i["x_size"] + i["x_pad_0"] + i["x_pad_1"]
        if not i["x_size"] or not rows:
            return
        place = slice(i["sram"], i["sram"] + rows * columns)
        self.memories[target].write(place)
        kind = np.dtype({"uop": np.uint32, "acc": np.int32}.get(name, np.int8))
        tiles = self.data[target].reshape(self.config.depth[target], -1)
        loaded = np.zeros((rows, columns, tiles.shape[1]), tiles.dtype)
        if i["y_size"]:
            size = self.config.element_bytes[name]
            index, grains = self._rows(i, size)
            self.memories["dram"].read(unit, grains)
            elements = self.dram[: self.dram.size // size * size].reshape(-1, size)[index.reshape(-1)].view(kind)
            inside = (slice(i["y_pad_0"], i["y_pad_0"] + i["y_size"]), slice(i["x_pad_0"], i["x_pad_0"] + i["x_size"]))
            loaded[inside] = elements.reshape(i["y_size"], i["x_size"], -1)
        tiles[place] = loaded.reshape(rows * columns, -1)

    def _store(self, unit: int, i: Instruction) -> None:
        if _MEMORIES[i["memory"]] != "out":
            raise Fault(f"stores the memory {_MEMORIES[i['memory']]}; only out can be stored")
        if any(i[pad] for pad in ("y_pad_0", "y_pad_1", "x_pad_0", "x_pad_1")):
            raise Fault("stores padding")
        if not i["x_size"] or not i["y_size"]:
            return
        place = slice(i["sram"], i["sram"] + i["y_size"] * i["x_size"])
        self.memories["acc"].read(unit, place)
        size = self.config.element_bytes["out"]
        index, grains = self._rows(i, size)
        if i["y_size"] > 1 and i["x_stride"] < i["x_size"]:
            raise Fault("writes rows that overlap")
        self.memories["dram"].write(grains, once=True)
        tiles = self.dram[: self.dram.size // size * size].reshape(-1, size)
        tiles[index.reshape(-1)] = self.data["acc"][place].reshape(-1, size).astype(np.int8).view(np.uint8)

    def _uops(self, unit: int, i: Instruction) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The fields of an instruction's micro-operations."""
        if not i["uop_bgn"] < i["uop_end"] or not i["iter_out"] or not i["iter_in"]:
            raise Fault("has no turns: a loop or its micro-operations are empty")
        place = slice(i["uop_bgn"], i["uop_end"])
        self.memories["uop"].read(unit, place)
        depth = self.config.log_depth
        dst, src = depth["acc"], max(depth["acc"], depth["inp"])
        words = self.data["uop"][place].astype(np.int64)
        self._spend(len(words) * i["iter_out"] * i["iter_in"])
        return words & ((1 << dst) - 1), words >> dst & ((1 << src) - 1), words >> (dst + src) & ((1 << depth["wgt"]) - 1)

    def _gemm(self, unit: int, i: Instruction) -> None:
        dst, src, wgt = self._uops(unit, i)
        turns = i["iter_out"], i["iter_in"]
        sums, index = self.data["acc"], _grid(*turns, i["dst_out"], i["dst_in"])[:, None] + dst
        memory = self.memories["acc"]
        if i["reset"]:
            memory.write(index)
            sums[index] = 0
            return
        inputs, weights = _grid(*turns, i["src_out"], i["src_in"]), _grid(*turns, i["wgt_out"], i["wgt_in"])
        self.memories["inp"].read(unit, inputs[:, None] + src)
        self.memories["wgt"].read(unit, weights[:, None] + wgt)
        memory.read(unit, index)
        memory.write(index)
        if not weights.any() and _is_set(*turns, i["dst_out"], i["dst_in"]):
            self._products(inputs, _grid(*turns, i["dst_out"], i["dst_in"]), dst, src, wgt)
            return
        flat = index.reshape(-1)
        for first in range(0, flat.size, 1 << 14):
            part = slice(first, first + (1 << 14))
            a = self.data["inp"][(inputs[:, None] + src).reshape(-1)[part]].astype(np.float32)
            b = self.data["wgt"][(weights[:, None] + wgt).reshape(-1)[part]].astype(np.float32)
            np.add.at(sums, flat[part], (a @ b.transpose(0, 2, 1)).astype(np.int32))

    def _products(self, inputs: np.ndarray, places: np.ndarray, dst: np.ndarray, src: np.ndarray, wgt: np.ndarray) -> None:
        """The products of turns that write different sums with the same weights: one product of matrices for each source.

        A sum of a tile's products is exact in float32: at most 2^8 of at most 2^14.
        """
        sums, block_out = self.data["acc"], self.config.block_out
        for source in dict.fromkeys(src.tolist()):
            here = np.flatnonzero(src == source)
            weights = self.data["wgt"][wgt[here]].reshape(-1, self.config.block_in).astype(np.float32)
            rows = self.data["inp"][inputs + source].reshape(-1, self.config.block_in).astype(np.float32)
            found = (rows @ weights.T).astype(np.int32).reshape(len(inputs), self.config.batch, len(here), block_out)
            index = places[:, None] + dst[here]
            if len(np.unique(index)) == index.size:
                sums[index] += found.transpose(0, 2, 1, 3)
            else:
                np.add.at(sums, index, found.transpose(0, 2, 1, 3))

    def _alu(self, unit: int, i: Instruction) -> None:
        dst, src, _ = self._uops(unit, i)
        turns = i["iter_out"], i["iter_in"]
        index = (_grid(*turns, i["dst_out"], i["dst_in"])[:, None] + dst).reshape(-1)
        other = (_grid(*turns, i["src_out"], i["src_in"])[:, None] + src).reshape(-1)
        memory, sums = self.memories["acc"], self.data["acc"]
        if i["reset"]:
            memory.write(index)
            sums[index] = 0
            return
        memory.read(unit, index)
        if not i["use_imm"]:
            memory.read(unit, other)
        memory.write(index)
        operation = _OPERATIONS[i["alu"]]
        if i["use_imm"] or _is_apart(index, other):
            operand = np.int32(i["imm"]) if i["use_imm"] else sums[other]
            if len(np.unique(index)) == index.size:
                sums[index] = _computed(operation, sums[index], operand)
                return
        for number in range(index.size):  # one after the other: a turn reads what one before it wrote
            operand = np.int32(i["imm"]) if i["use_imm"] else sums[other[number]]
            sums[index[number]] = _computed(operation, sums[index[number]], operand)


@lru_cache(maxsize=1 << 10)
def _grid(outer: int, inner: int, by_outer: int, by_inner: int) -> np.ndarray:
    """What the turns of both loops add to an index."""
    return (np.arange(outer)[:, None] * by_outer + np.arange(inner) * by_inner).reshape(-1)


@lru_cache(maxsize=1 << 10)
def _is_set(outer: int, inner: int, by_outer: int, by_inner: int) -> bool:
    """Whether no two turns have the same index."""
    return len(np.unique(_grid(outer, inner, by_outer, by_inner))) == outer * inner


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
        functions: Mapping[str, np.ufunc] = {"MIN": np.minimum, "MAX": np.maximum, "ADD": np.add, "MUL": np.multiply}
        return functions[operation](a, b)  # type: ignore[no-any-return]


__all__ = ["RelayError", "simulate"]
