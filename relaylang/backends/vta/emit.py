"""The code generator: a region of layers as a program of VTA."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from relaylang.backends.vta.config import Config
from relaylang.backends.vta.isa import KINDS, Codec
from relaylang.backends.vta.layers.reader import Layer, read_layer
from relaylang.backends.vta.layout import View, pack, pack_weights, view_of
from relaylang.backends.vta.program import Program, Tensor
from relaylang.backends.vta.schedule import Item, UopCache, UopStore, add_tokens, encoded, place_constant
from relaylang.backends.vta.steps import Gemm, Pool, Step
from relaylang.backends.vta.tiling import Tiling, choose, input_tile
from relaylang.diagnostics.unsupported import Unsupported
from relaylang.ir import Call, Expr, Function, Tuple, Var, post_order
from relaylang.partition.checks import op_name, shape
from relaylang.partition.composites import composite_name, composite_nodes

_MEMORIES = {name: number for number, name in enumerate(KINDS["LOAD"].fields[4].names)}
_OPERATIONS = {name: number for number, name in enumerate(KINDS["ALU"].fields[-3].names)}
#: The most elements of a row or rows of a transfer, or elements between rows.
_MOST = (1 << 16) - 1


def emit_region(func: Function, config: Config) -> Program:
    """The program of a region, whose calls are composites of layers. Raises `Unsupported`."""
    emitter = _Emitter(func, config)
    for number, call in enumerate(emitter.calls):
        emitter.layer(number, call)
    return emitter.program()


class _Tile(NamedTuple):
    """A tile of the output: its group, and the ranges of blocks, rows and columns."""

    group: int
    channels: range
    rows: range
    columns: range


def _tiles(view: View, tiling: Tiling) -> Iterator[_Tile]:
    def ranges(count: int, size: int) -> list[range]:
        return [range(first, min(first + size, count)) for first in range(0, count, size)]

    channels = ranges(view.blocks, tiling.channels)
    space = [
        (g, y, x) for g in range(view.groups) for y in ranges(view.height, tiling.height) for x in ranges(view.width, tiling.width)
    ]
    pairs = [(c, s) for c in channels for s in space] if tiling.by_channels else [(c, s) for s in space for c in channels]
    for c, (g, y, x) in pairs:
        yield _Tile(g, c, y, x)


@dataclass
class _Bank:
    """Two halves of a memory: what each holds. The half that was used last is kept."""

    name: str
    half: int
    keys: list[object] = field(default_factory=lambda: [None, None])
    last: int = 1

    def hold(self, key: object) -> tuple[int, bool]:
        """The half for what a key names, and whether it must be loaded."""
        fresh = key not in self.keys
        self.last = 1 - self.last if fresh else self.keys.index(key)
        self.keys[self.last] = key
        return self.last, fresh


class _Emitter:
    def __init__(self, func: Function, config: Config) -> None:
        self.func, self.config, self.codec = func, config, Codec(config)
        self.calls = [node for node in post_order(func.body) if isinstance(node, Call) and composite_name(node)]
        self.layers = [read_layer(_composite(call)[1]) for call in self.calls]
        self.items: list[Item] = []
        self.half = {name: depth // 2 for name, depth in config.depth.items()}
        self.banks = {name: _Bank(name, self.half[name]) for name in ("inp", "wgt")}
        self.turn = 0
        self.call = 0
        self.memory = 0
        self.addresses: dict[tuple[int, int], int] = {}
        self.inputs: list[Tensor] = []
        self.ready: set[int] = set()
        self._place_tensors()
        self.memory += -self.memory % max(config.element_bytes.values())
        self.constants = bytearray()
        self.store = UopStore(self.constants, self.memory)
        self.uops = UopCache(self.codec)

    # DRAM.

    def _place_tensors(self) -> None:
        """Give each input and each layer's result its place; an input that is used in two ways has two."""
        numbers = {id(param): number for number, param in enumerate(self.func.params)}
        for call in self.calls:
            self._place(call, self.config.block_out)
        for call, layer in zip(self.calls, self.layers):
            sources = dict(zip([id(p) for p in _composite(call)[0].params], call.args))
            products = {gemm.leaf for gemm in layer.gemms}
            others = {s.value for s in layer.steps if s.operation == "load8"} | {pool.leaf for pool in layer.pools}
            for number, leaf in enumerate(layer.leaves):
                source = sources.get(id(leaf), leaf)
                for used, block in ((products, self.config.block_in), (others, self.config.block_out)):
                    if number not in used or (id(source), block) in self.addresses:
                        continue
                    if not isinstance(source, Var):
                        raise Unsupported("blocks of inputs and outputs differ, so that a result cannot be an input as it is")
                    address = self._place(source, block)
                    self.inputs.append(Tensor(numbers[id(source)], shape(source), address, block))

    def _place(self, node: Expr, block: int) -> int:
        align = self.config.batch * block
        self.memory += -self.memory % align
        self.addresses[id(node), block] = self.memory
        self.memory += view_of(shape(node), self.config.batch, block).size * align
        return self.addresses[id(node), block]

    def constant(self, content: np.ndarray, memory: str) -> int:
        """The first element of a constant for a memory."""
        size = self.config.element_bytes[memory]
        return place_constant(self.constants, self.memory, content.tobytes(), size) // size

    # Instructions.

    def emit(self, name: str, fields: dict[str, int], reads: Sequence[object] = (), writes: Sequence[object] = ()) -> None:
        self.items.append(Item(name, {k: v for k, v in fields.items() if v}, tuple(reads), tuple(writes), self.call))

    def transfer(
        self,
        name: str,
        memory: str,
        sram: int,
        dram: int,
        axes: list[tuple[int, int]],
        reads: Sequence[object],
        writes: Sequence[object],
    ) -> None:
        """Copy a block: `axes` are (count, elements in DRAM from one to the next), outermost first. On the chip it is dense."""
        merged: list[tuple[int, int]] = [(1, 1)]
        for count, step in reversed(axes):
            if count > 1 and merged[-1][1] * merged[-1][0] == step:
                merged[-1] = (merged[-1][0] * count, merged[-1][1])
            elif count > 1:
                merged.append((count, step))
        merged.reverse()
        if len(merged) > 2 or (len(merged) == 2 and merged[0][1] > _MOST):
            (count, step), *rest = merged
            size = int(np.prod([n for n, _ in rest]))
            for number in range(count):
                self.transfer(name, memory, sram + number * size, dram + number * step, rest, reads, writes)
            return
        rows, stride = merged[0] if len(merged) == 2 else (1, merged[-1][0])
        fields = {"memory": _MEMORIES[memory], "sram": sram, "dram": dram, "y_size": rows, "x_size": merged[-1][0], "x_stride": stride}
        self.emit(name, fields, reads, writes)

    def loops(
        self,
        name: str,
        uops: list[tuple[int, int, int]],
        turns: tuple[int, int],
        factors: dict[str, int],
        reads: Sequence[object],
        acc: object,
    ) -> None:
        """A GEMM or ALU instruction."""
        first = self.uops.place(self.items, tuple(uops), self.store)
        fields = {"uop_bgn": first, "uop_end": first + len(uops), "iter_out": turns[0], "iter_in": turns[1], **factors}
        self.emit(name, fields, reads, [acc])

    # Layers.

    def layer(self, number: int, call: Call) -> None:
        """The instructions of a layer."""
        layer, self.call = self.layers[number], number
        tiling = choose(layer, self.config)
        sources = dict(zip([id(p) for p in _composite(call)[0].params], call.args))
        leaves = [sources.get(id(leaf), leaf) for leaf in layer.leaves]
        for leaf in leaves:
            if not isinstance(leaf, Var) and id(leaf) not in self.ready:
                # A load waits for a store by way of the compute unit, here for an instruction that does nothing.
                self.ready.add(id(leaf))
                self.emit("LOAD", {"memory": 0}, [("dram", id(leaf))], [("ready", id(leaf))])
        for bank in self.banks.values():
            bank.keys = [None, None]
        _LayerEmitter(self, layer, tiling, leaves, call).run()

    def program(self) -> Program:
        """The finished program."""
        outputs = self.func.body.fields if isinstance(self.func.body, Tuple) else [self.func.body]
        self.emit("FINISH", {}, [("dram", id(call)) for call in self.calls])
        self.uops.flush(self.items, self.store)
        add_tokens(self.items)
        places: list[tuple[int, str]] = []
        for number, item in enumerate(self.items):
            if not number or item.call != self.items[number - 1].call:
                places.append((number, _place_text(self.calls[item.call])))
        block = self.config.block_out
        results = [Tensor(n, shape(out), self.addresses[id(out), block], block) for n, out in enumerate(outputs)]
        total = self.memory + len(self.constants)
        stream = encoded(self.items, self.codec)
        return Program(self.config, stream, bytes(self.constants), total, tuple(self.inputs), tuple(results), tuple(places))


def _composite(call: Call) -> tuple[Function, list[Call]]:
    """The composite that a call calls, and its calls, producers first."""
    assert isinstance(call.op, Function)
    return call.op, [node for node in composite_nodes(call.op) if isinstance(node, Call)]


def _place_text(call: Call) -> str:
    """A layer's operators, and its line of the program."""
    names = [op_name(node).removeprefix("nn.") for node in _composite(call)[1]]
    place = f" at {call.span}" if call.span is not None and call.span.source.text else ""
    return f"{' + '.join(names)}{place}"


class _LayerEmitter:
    def __init__(self, emitter: _Emitter, layer: Layer, tiling: Tiling, leaves: list[Expr], call: Call) -> None:
        self.to, self.layer, self.tiling, self.leaves, self.root = emitter, layer, tiling, leaves, call
        self.config = config = emitter.config
        self.view = view_of(layer.shape, config.batch, config.block_out)
        self.slot_size = tiling.channels * tiling.height * tiling.width
        windows = [tiling.channels * h * w for h, w in (input_tile(p, tiling.height, tiling.width) for p in layer.pools)]
        starts = np.cumsum([layer.slots * self.slot_size, *windows]).tolist()
        self.windows, self.vectors = starts[:-1], starts[-1]
        self.held: list[range | None] = [None, None]
        self.weights = [emitter.constant(pack_weights(g.weight, config.block_in, config.block_out), "wgt") for g in layer.gemms]
        self.vector_places = [emitter.constant(self._packed(v.reshape(1, -1)), "acc") for v in layer.vectors]
        self.tensor_places = [emitter.constant(pack(t, config.batch, config.block_out), "acc") for t in layer.tensors]

    def _packed(self, row: np.ndarray) -> np.ndarray:
        """A vector over channels as tiles: the same for the whole batch."""
        return pack(np.repeat(row, self.config.batch, 0), self.config.batch, self.config.block_out)

    def run(self) -> None:
        for tile in _tiles(self.view, self.tiling):
            half = self.to.turn % 2
            self.to.turn += 1
            self.base, self.acc, self.tile = half * self.to.half["acc"], ("acc", half), tile
            if self.layer.vectors and self.held[half] != tile.channels:
                self._load_vectors(tile.channels)
                self.held[half] = tile.channels
            for step in self.layer.steps:
                self._step(step)
            first = self._at(self.view, tile.group, tile.channels[0], tile.rows[0], tile.columns[0])
            place = self.to.addresses[id(self.root), self.config.block_out] // self.config.element_bytes["out"]
            self.to.transfer("STORE", "out", self.base, place + first, self._axes(self.view), [self.acc], [("dram", id(self.root))])

    def _at(self, view: View, group: int, block: int, row: int, column: int) -> int:
        return group * view.group_stride + block * view.block_stride + row * view.row_stride + column

    def _axes(self, view: View) -> list[tuple[int, int]]:
        """The axes of this tile in DRAM."""
        tile = self.tile
        return [(len(tile.channels), view.block_stride), (len(tile.rows), view.row_stride), (len(tile.columns), 1)]

    def _load_vectors(self, channels: range) -> None:
        for number, place in enumerate(self.vector_places):
            sram = self.base + self.vectors + number * self.tiling.channels
            self.to.transfer("LOAD", "acc", sram, place + channels[0], [(len(channels), 1)], [], [self.acc])

    def _step(self, step: Step) -> None:
        tile, dst = self.tile, self.base + step.slot * self.slot_size
        blocks, pixels = len(tile.channels), len(tile.rows) * len(tile.columns)
        factors = {"dst_out": pixels, "dst_in": 1} if blocks > 1 else {"dst_in": 1}
        if step.operation == "reset":
            self.to.loops("GEMM", [(dst, 0, 0)], (blocks, pixels), {"reset": 1, **factors}, [], self.acc)
        elif step.operation == "gemm":
            self._gemm(self.layer.gemms[step.value], step.value, dst)
        elif step.operation == "pool":
            self._pool(self.layer.pools[step.value], step.value, dst)
        elif step.operation in ("load8", "load32"):
            first = self._at(self.view, tile.group, tile.channels[0], tile.rows[0], tile.columns[0])
            if step.operation == "load32":
                self.to.transfer("LOAD", "acc", dst, self.tensor_places[step.value] + first, self._axes(self.view), [], [self.acc])
            else:
                self.to.transfer(
                    "LOAD",
                    "acc8",
                    dst,
                    self._leaf(step.value, "acc8") + first,
                    self._axes(self.view),
                    self._reads(step.value),
                    [self.acc],
                )
        else:
            operand = {"alu": _OPERATIONS[step.operation], **factors}
            source = dst
            if step.kind == "imm":
                operand |= {"use_imm": 1, "imm": step.value, **{key.replace("dst", "src"): value for key, value in factors.items()}}
            elif step.kind == "slot":
                source = self.base + step.value * self.slot_size
                operand |= {key.replace("dst", "src"): value for key, value in factors.items()}
            else:
                source = self.base + self.vectors + step.value * self.tiling.channels
                operand |= {"src_out": 1}
            self.to.loops("ALU", [(dst, source, 0)], (blocks, pixels), operand, [], self.acc)

    def _leaf(self, number: int, memory: str) -> int:
        """The first element of a leaf in DRAM."""
        block = self.config.block_in if memory == "inp" else self.config.block_out
        return self.to.addresses[id(self.leaves[number]), block] // self.config.element_bytes[memory]

    def _reads(self, number: int, ready: bool = False) -> list[object]:
        leaf = self.leaves[number]
        return [] if isinstance(leaf, Var) else [("ready" if ready else "dram", id(leaf))]

    def _gemm(self, gemm: Gemm, number: int, dst: int) -> None:
        tile, config, half = self.tile, self.config, self.to.half
        view = view_of(gemm.data, config.batch, config.block_in)
        kernel = gemm.weight.shape[2:]
        taps = kernel[0] * kernel[1]
        rows, columns = input_tile(gemm, len(tile.rows), len(tile.columns))
        row_step = gemm.strides[0] if kernel[0] == 1 else 1
        pixels = len(tile.rows) * len(tile.columns)
        for first in range(0, view.blocks, self.tiling.inputs[number]):
            blocks = range(first, min(first + self.tiling.inputs[number], view.blocks))
            inp, fresh = self.to.banks["inp"].hold((number, tile.group, tile.rows, tile.columns, blocks))
            if fresh:
                self._load_inputs(gemm, view, blocks, rows, columns, row_step, inp)
            wgt, fresh = self.to.banks["wgt"].hold((number, tile.channels, blocks))
            if fresh:
                place = self.weights[number] + (tile.channels[0] * view.blocks + blocks[0]) * taps
                axes = [(len(tile.channels), view.blocks * taps), (len(blocks) * taps, 1)]
                self.to.transfer("LOAD", "wgt", wgt * half["wgt"], place, axes, [], [("wgt", wgt)])
            groups = []
            for block in range(len(blocks)):
                for tap in range(taps):
                    y, x = divmod(tap, kernel[1])
                    src = inp * half["inp"] + (block * rows + y * gemm.dilation[0]) * columns + x * gemm.dilation[1]
                    weights = wgt * half["wgt"] + block * taps + tap
                    groups.append([(dst + c * pixels, src, weights + c * len(blocks) * taps) for c in range(len(tile.channels))])
            if pixels == 1:
                groups = [[uop for group in groups for uop in group]]
            turns = (len(tile.rows), len(tile.columns))
            row = columns * (gemm.strides[0] if kernel[0] > 1 else 1)
            factors = {"dst_out": len(tile.columns), "dst_in": 1, "src_out": row, "src_in": gemm.strides[1]}
            factors = {key: value for key, value in factors.items() if turns[key.endswith("in")] > 1}
            for group in groups:
                self.to.loops("GEMM", group, turns, factors, [("inp", inp), ("wgt", wgt)], self.acc)

    def _load_inputs(self, gemm: Gemm, view: View, blocks: range, rows: int, columns: int, row_step: int, half: int) -> None:
        """Load the part of the input that a tile needs, with zeros around the image."""
        tile = self.tile
        top, left = (tile.rows[0] * gemm.strides[0] - gemm.padding[0], tile.columns[0] * gemm.strides[1] - gemm.padding[1])
        above, before = max(-top, 0), max(-left, 0)
        below = max(top + (rows - 1) * row_step + 1 - view.height, 0)
        after = max(left + columns - view.width, 0)
        height, width = rows - above - below, columns - before - after
        place, sram = self._leaf(gemm.leaf, "inp"), half * self.to.half["inp"]
        first = self._at(view, tile.group, blocks[0], top + above, left + before)
        reads, writes = self._reads(gemm.leaf, True), [("inp", half)]
        if not (above or before or below or after):
            axes = [(len(blocks), view.block_stride), (height, view.row_stride * row_step), (width, 1)]
            self.to.transfer("LOAD", "inp", sram, place + first, axes, reads, writes)
            return
        for number in range(len(blocks)):
            fields = {
                "memory": _MEMORIES["inp"],
                "sram": sram + number * rows * columns,
                "dram": place + first + number * view.block_stride,
            }
            sizes = {"y_size": height, "x_size": width, "x_stride": view.row_stride * row_step}
            pads = {"y_pad_0": above, "y_pad_1": below, "x_pad_0": before, "x_pad_1": after}
            self.to.emit("LOAD", {**fields, **sizes, **pads}, reads, writes)

    def _pool(self, pool: Pool, number: int, dst: int) -> None:
        """Load the windows' part of the image, and put each of their places to all sums for which it lies on the image."""
        tile, blocks = self.tile, len(self.tile.channels)
        height, width = pool.data[2:]
        spans, tops = [], []
        for axis, (outs, size) in enumerate(((tile.rows, height), (tile.columns, width))):
            first = outs[0] * pool.strides[axis] - pool.padding[axis]
            last = outs[-1] * pool.strides[axis] - pool.padding[axis] + (pool.window[axis] - 1) * pool.dilation[axis]
            spans.append(range(max(first, 0), min(last + 1, size)))
            tops.append(first)
        window = self.base + self.windows[number]
        view = view_of(pool.data, self.config.batch, self.config.block_out)
        first = self._at(view, tile.group, tile.channels[0], spans[0].start, spans[1].start)
        axes = [(blocks, view.block_stride), (len(spans[0]), view.row_stride), (len(spans[1]), 1)]
        self.to.transfer("LOAD", "acc8", window, self._leaf(pool.leaf, "acc8") + first, axes, self._reads(pool.leaf), [self.acc])
        columns, pixels = len(spans[1]), len(tile.rows) * len(tile.columns)
        for y in range(pool.window[0]):
            for x in range(pool.window[1]):
                inside = []
                for axis, tap in enumerate((y, x)):
                    at = tops[axis] + tap * pool.dilation[axis]
                    count = len((tile.rows, tile.columns)[axis])
                    inside.append([n for n in range(count) if at + n * pool.strides[axis] in spans[axis]])
                if not all(inside):
                    continue
                out = dst + inside[0][0] * len(tile.columns) + inside[1][0]
                row, column = (
                    tops[axis] + tap * pool.dilation[axis] + inside[axis][0] * pool.strides[axis] - spans[axis].start
                    for axis, tap in enumerate((y, x))
                )
                src = window + row * columns + column
                size = len(spans[0]) * columns
                uops = [(out + c * pixels, src + c * size, 0) for c in range(blocks)]
                turns = (len(inside[0]), len(inside[1]))
                factors = {"dst_out": len(tile.columns), "dst_in": 1, "src_out": pool.strides[0] * columns, "src_in": pool.strides[1]}
                factors = {key: value for key, value in factors.items() if turns[key.endswith("in")] > 1}
                self.to.loops("ALU", uops, turns, {"alu": _OPERATIONS[pool.operation], **factors}, [], self.acc)


__all__ = ["emit_region"]
