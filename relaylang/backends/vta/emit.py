"""The code generator: a region of layers as a program of VTA."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from relaylang.backends.vta.config import Config
from relaylang.backends.vta.isa import MEMORIES, OPERATIONS
from relaylang.backends.vta.layers.reader import read_layer
from relaylang.backends.vta.layers.steps import Gemm, Layer, Pool, Step
from relaylang.backends.vta.layout import View, pack, view_of
from relaylang.backends.vta.program import Program, Tensor
from relaylang.backends.vta.schedule import Schedule, Thing, Uses
from relaylang.backends.vta.tiling import PARTS, choose, input_tile, tiles_of
from relaylang.diagnostics.unsupported import Unsupported
from relaylang.ir import Call, Expr, Function, Tuple, Var, post_order
from relaylang.partition.checks import op_name, shape
from relaylang.partition.composites import composite_name, composite_nodes


def emit_region(func: Function, config: Config) -> Program:
    """The program of a region, whose calls are composites of layers. Raises `Unsupported`."""
    return _Emitter(func, config).program()


class _Emitter:
    def __init__(self, func: Function, config: Config) -> None:
        self.func, self.config, self.memory = func, config, 0
        self.calls = [node for node in post_order(func.body) if isinstance(node, Call) and composite_name(node)]
        self.layers, self.leaves = [], []
        for call in self.calls:
            composite, calls = _composite(call)
            sources, layer = {id(param): arg for param, arg in zip(composite.params, call.args)}, read_layer(calls)
            self.layers.append(layer)
            self.leaves.append([sources.get(id(leaf), leaf) for leaf in layer.leaves])
        self.addresses: dict[int, dict[int, int]] = defaultdict(dict)
        self._place_tensors()
        self.to = Schedule(config, self.memory + -self.memory % max(config.element_bytes.values()))

    def _place_tensors(self) -> None:
        """Give each input and each layer's result its place; an input that is used in two ways has two."""
        for call in self.calls:
            self._place(call, self.config.block_out)
        for layer, leaves in zip(self.layers, self.leaves):
            uses = [(gemm.leaf, self.config.block_in) for gemm in layer.gemms]
            others = [pool.leaf for pool in layer.pools] + [step.value for step in layer.steps if step.operation == "load8"]
            for leaf, block in [
                (leaves[n], block) for n, block in sorted(uses) + [(n, self.config.block_out) for n in sorted(others)]
            ]:
                if block not in self.addresses[id(leaf)]:
                    if not isinstance(leaf, Var):
                        raise Unsupported("blocks of inputs and outputs differ, so that a result cannot be an input as it is")
                    self._place(leaf, block)

    def _place(self, node: Expr, block: int) -> None:
        align = self.config.batch * block
        address = self.addresses[id(node)][block] = self.memory + -self.memory % align
        self.memory = address + view_of(shape(node), self.config.batch, block).size * align

    def _tensor(self, node: Expr, name: str) -> Tensor:
        return Tensor(name, shape(node), tuple([(at, block) for block, at in self.addresses[id(node)].items()]))

    def program(self) -> Program:
        """Append the layers' instructions. A load waits for a store by way of an instruction of the compute unit without effect."""
        to, ready = self.to, set()
        for to.call, (call, layer, leaves) in enumerate(zip(self.calls, self.layers, self.leaves)):
            for leaf in leaves:
                if not isinstance(leaf, Var) and id(leaf) not in ready:
                    ready.add(id(leaf))
                    to.emit("LOAD", {"memory": MEMORIES.index("uop")}, ([("dram", id(leaf))], [("ready", id(leaf))]))
            _LayerEmitter(to, self.addresses, layer, leaves, call).run()
        to.emit("FINISH", {}, ([("dram", id(call)) for call in self.calls], []))
        stream = to.finish()
        firsts = [n for n, item in enumerate(to.items) if not n or item.call != to.items[n - 1].call]
        places = tuple([(number, _place_text(self.calls[to.items[number].call])) for number in firsts])
        outputs = self.func.body.fields if isinstance(self.func.body, Tuple) else [self.func.body]
        tensors = [self._tensor(node, node.name_hint) for node in self.func.params]
        results = [self._tensor(node, f"out{number}") for number, node in enumerate(outputs)]
        return Program(self.config, stream, bytes(to.constants), to.base + len(to.constants), tuple(tensors), tuple(results), places)


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
    """Appends a layer's instructions. Things that units share are parts of halves: those of the accumulators are slices of a tile."""

    def __init__(self, to: Schedule, addresses: dict[int, dict[int, int]], layer: Layer, leaves: list[Expr], root: Call) -> None:
        self.to, self.addresses, self.layer, self.leaves, self.root = to, addresses, layer, leaves, root
        self.config = config = to.config
        self.tiling = tiling = choose(layer, config)
        self.view = view_of(layer.shape, config.batch, config.block_out)
        self.slot_size = tiling.channels * tiling.height * tiling.width
        windows = [tiling.channels * h * w for h, w in (input_tile(p, tiling.height, tiling.width) for p in layer.pools)]
        *self.windows, self.vectors = np.cumsum([layer.slots * self.slot_size, *windows]).tolist()
        self.banks = {name: to.banks[name].emptied() for name in ("inp", "wgt", "acc")}
        self.held: list[range | None] = [None, None]
        self.sources = [gemm.sources(config.block_in, config.block_out) for gemm in layer.gemms]
        size = config.element_bytes
        weights = [_tiles_of_weights(g, sources, tiling.channels, config) for g, sources in zip(layer.gemms, self.sources)]
        vectors = [pack(np.tile(v, (config.batch, 1)), config.batch, config.block_out) for v in layer.vectors]
        tensors = [pack(t, config.batch, config.block_out) for t in layer.tensors]
        self.weights = [to.constant(tiles.tobytes(), size["wgt"]) for tiles in weights]
        self.vector_places, self.tensor_places = ([to.constant(t.tobytes(), size["acc"]) for t in part] for part in (vectors, tensors))
        #: The last step that computes a whole tile; those after it take its channels one by one.
        self.tail = 1 + max([n for n, step in enumerate(layer.steps) if step.operation in ("gemm", "pool")], default=-1)

    def run(self) -> None:
        tiles, bank = tiles_of(self.view, self.tiling), self.banks["acc"]
        for number, tile in enumerate(tiles):
            half = bank.hold(number)[0]
            self.tile, self.parts, self.base = tile, 1 if number else PARTS, half * bank.half
            self.sums = _part("acc", half)
            if self.layer.vectors and self.held[half] != tile.channels:
                self._load_vectors(tile.channels)
                self.held[half] = tile.channels
            for step in self.layer.steps[: self.tail]:
                self._step(step, tile.channels)
            size = -(-len(tile.channels) // (PARTS if number == len(tiles) - 1 else 1))
            for part, first in enumerate(range(0, len(tile.channels), size)):
                channels = tile.channels[first : first + size]
                self.sums = _part("acc", half, part, part + 1) if size < len(tile.channels) else self.sums
                for step in self.layer.steps[self.tail :]:
                    self._step(step, channels)
                uses = self.sums, [("dram", id(self.root))]
                self._transfer("STORE", "out", self.base + first * tile.pixels, self.root, channels, uses)

    def _address(self, node: Expr, memory: str) -> int:
        """The first element of a tensor in DRAM."""
        block = self.config.block_in if memory == "inp" else self.config.block_out
        return self.addresses[id(node)][block] // self.config.element_bytes[memory]

    def _transfer(self, name: str, memory: str, sram: int, source: Expr | int, channels: range, uses: Uses) -> None:
        """Copy the tile's part of a tensor of the output's shape, or of a constant at a place in DRAM."""
        tile, view = self.tile, self.view
        first = view.at(tile.group, channels[0], tile.rows[0], tile.columns[0])
        place = source if isinstance(source, int) else self._address(source, memory)
        axes = [(len(channels), view.block_stride), (len(tile.rows), view.row_stride), (len(tile.columns), 1)]
        self.to.transfer(name, memory, (sram, place + first), axes, uses)

    def _load_vectors(self, channels: range) -> None:
        for number, place in enumerate(self.vector_places):
            sram = self.base + self.vectors + number * self.tiling.channels
            self.to.transfer("LOAD", "acc", (sram, place + channels[0]), [(len(channels), 1)], ([], self.sums))

    def _step(self, step: Step, channels: range) -> None:
        pixels, offset = self.tile.pixels, channels[0] - self.tile.channels[0]
        turns = (len(channels), pixels)
        dst = self.base + step.slot * self.slot_size + offset * pixels
        same = {"dst_out": pixels, "dst_in": 1, "src_out": pixels, "src_in": 1}
        match step.operation:
            case "gemm":
                self._gemm(step.value, dst)
            case "pool":
                self._pool(step.value, dst)
            case "load8":
                self._transfer("LOAD", "acc8", dst, self.leaves[step.value], channels, (self._reads(step.value), self.sums))
            case "load32":
                self._transfer("LOAD", "acc", dst, self.tensor_places[step.value], channels, ([], self.sums))
            case "reset":
                self.to.loops("GEMM", [(dst, 0, 0)], turns, {"reset": 1, "dst_out": pixels, "dst_in": 1}, ([], self.sums))
            case operation:
                source, fields = dst, {"alu": OPERATIONS.index(operation), **same}
                if step.kind == "imm":
                    fields |= {"use_imm": 1, "imm": step.value}
                elif step.kind == "slot":
                    source = self.base + step.value * self.slot_size + offset * pixels
                else:
                    source = self.base + self.vectors + step.value * self.tiling.channels + offset
                    fields |= {"src_out": 1, "src_in": 0}
                self.to.loops("ALU", [(dst, source, 0)], turns, fields, ([], self.sums))

    def _reads(self, number: int, name: str = "dram") -> list[Thing]:
        """What a load of a leaf waits for: nothing if it is an input of the region."""
        leaf = self.leaves[number]
        return [] if isinstance(leaf, Var) else [(name, id(leaf))]

    def _gemm(self, number: int, dst: int) -> None:
        """For each part of the input's channels: load inputs and weights, and add all products."""
        gemm, tile, sources = self.layer.gemms[number], self.tile, self.sources[number]
        (kernel_rows, kernel_columns), strides, _, dilation = gemm.window
        taps, deep, source, width = gemm.window.taps, len(sources[0]), sources[tile.channels[0]], len(tile.channels)
        rows, columns = input_tile(gemm, len(tile.rows), len(tile.columns))
        row = columns * (strides[0] if kernel_rows > 1 else 1)
        fields = {"dst_out": len(tile.columns), "dst_in": 1, "src_out": row, "src_in": strides[1]}
        for first in range(0, deep, self.tiling.inputs[number]):
            blocks = source[first : first + self.tiling.inputs[number]]
            inp, new_inputs = self.banks["inp"].hold((number, tile.group, tile.rows, tile.columns, blocks))
            wgt, new_weights = self.banks["wgt"].hold((number, tile.channels, blocks))
            size = -(-len(blocks) // self.parts)
            for part, begin in enumerate(range(0, len(blocks), size)):
                some = blocks[begin : begin + size]
                inputs = inp * self.banks["inp"].half + begin * rows * columns
                weights = wgt * self.banks["wgt"].half + begin * taps * width
                if new_inputs:
                    self._load_inputs(gemm, some, rows * columns, inputs, _part("inp", inp, part))
                if new_weights:
                    place = self.weights[number] + (tile.channels[0] * deep + (first + begin) * width) * taps
                    self.to.transfer("LOAD", "wgt", (weights, place), [(len(some) * taps * width, 1)], ([], _part("wgt", wgt, part)))
                groups = []
                for block in range(len(some)):
                    for tap in range(taps):
                        y, x = divmod(tap, kernel_columns)
                        src = inputs + (block * rows + y * dilation[0]) * columns + x * dilation[1]
                        tiles = weights + (block * taps + tap) * width
                        groups.append([(dst + c * tile.pixels, src, tiles + c) for c in range(width)])
                reads = [*_part("inp", inp, part, part + 1), *_part("wgt", wgt, part, part + 1)]
                for uops in groups if tile.pixels > 1 else [[uop for group in groups for uop in group]]:
                    self.to.loops("GEMM", uops, (len(tile.rows), len(tile.columns)), fields, (reads, self.sums))

    def _reach(self, part: Gemm | Pool, block: int) -> tuple[list[int], list[int], list[range], View]:
        """The first and last row and column that a tile needs, those that lie on the image, and the image."""
        outs, window = (self.tile.rows, self.tile.columns), part.window
        tops = [places[0] * stride - pad for places, stride, pad in zip(outs, window.strides, window.padding)]
        lengths = [(size - 1) * dilation + 1 for size, dilation in zip(window.size, window.dilation)]
        ends = [top + (len(places) - 1) * s + length for top, places, s, length in zip(tops, outs, window.strides, lengths)]
        view = view_of(part.data, self.config.batch, block)
        return tops, ends, [range(max(t, 0), min(e, n)) for t, e, n in zip(tops, ends, (view.height, view.width))], view

    def _load_inputs(self, gemm: Gemm, blocks: range, size: int, sram: int, writes: Sequence[Thing]) -> None:
        """Load the part of the input that a tile needs, `size` tiles a block, with zeros around the image."""
        step = gemm.window.strides[0] if gemm.window.size[0] == 1 else 1
        tops, ends, spans, view = self._reach(gemm, self.config.block_in)
        pads = [(span.start - top, end - span.stop) for top, end, span in zip(tops, ends, spans)]
        first = self._address(self.leaves[gemm.leaf], "inp") + view.at(self.tile.group, blocks[0], spans[0].start, spans[1].start)
        rows, columns, uses = len(spans[0][::step]), len(spans[1]), (self._reads(gemm.leaf, "ready"), writes)
        if pads == [(0, 0), (0, 0)]:
            axes = [(len(blocks), view.block_stride), (rows, view.row_stride * step), (columns, 1)]
            self.to.transfer("LOAD", "inp", (sram, first), axes, uses)
            return
        fields = {"memory": MEMORIES.index("inp"), "y_size": rows, "x_size": columns, "x_stride": view.row_stride * step}
        fields |= {f"{axis}_pad_{side}": pad for axis, pair in zip("yx", pads) for side, pad in enumerate(pair)}
        for number in range(len(blocks)):
            places = {"sram": sram + number * size, "dram": first + number * view.block_stride}
            self.to.emit("LOAD", {**fields, **places}, uses)

    def _pool(self, number: int, dst: int) -> None:
        """Load the windows' part of the image, and put each of their places to all sums for which it lies on the image."""
        pool, tile, blocks = self.layer.pools[number], self.tile, len(self.tile.channels)
        outs, window = (tile.rows, tile.columns), pool.window
        tops, _, spans, view = self._reach(pool, self.config.block_out)
        if not all(spans):
            return  # all windows lie on padding
        begin, columns = self.base + self.windows[number], len(spans[1])
        first = self._address(self.leaves[pool.leaf], "acc8") + view.at(tile.group, tile.channels[0], spans[0].start, spans[1].start)
        axes = [(blocks, view.block_stride), (len(spans[0]), view.row_stride), (columns, 1)]
        self.to.transfer("LOAD", "acc8", (begin, first), axes, (self._reads(pool.leaf), self.sums))
        fields = {"alu": OPERATIONS.index(pool.operation), "dst_out": len(tile.columns), "dst_in": 1}
        fields |= {"src_out": window.strides[0] * columns, "src_in": window.strides[1]}
        for tap in np.ndindex(window.size):
            at = [top + n * d for top, n, d in zip(tops, tap, window.dilation)]
            inside = [[n for n in range(len(o)) if a + n * s in span] for a, o, s, span in zip(at, outs, window.strides, spans)]
            if all(inside):
                y, x = (a + i[0] * s - span.start for a, i, s, span in zip(at, inside, window.strides, spans))
                out, src = dst + inside[0][0] * len(tile.columns) + inside[1][0], begin + y * columns + x
                uops = [(out + c * tile.pixels, src + c * len(spans[0]) * columns, 0) for c in range(blocks)]
                self.to.loops("ALU", uops, (len(inside[0]), len(inside[1])), fields, ([], self.sums))


def _part(memory: str, half: int, first: int = 0, end: int = PARTS) -> list[Thing]:
    """Parts of half a memory. A load names those after it, too: they may lie where it writes."""
    return [(memory, half, part) for part in range(first, end)]


def _tiles_of_weights(gemm: Gemm, sources: Sequence[range], channels: int, config: Config) -> np.ndarray:
    """The weights of a product as tiles, in the order in which tiles of so many blocks of channels load them.

    Zeros stand where an output has no part in an input of its block.
    """
    weight, outs = gemm.weight, gemm.weight.shape[0] // gemm.groups
    spread = np.zeros((len(weight), len(sources[0]) * config.block_in, *weight.shape[2:]), np.int8)
    for number, row in enumerate(weight):
        first = number // outs * weight.shape[1] - sources[number // config.block_out].start * config.block_in
        spread[number, first : first + weight.shape[1]] = row
    packed = pack(spread, config.block_out, config.block_in).reshape(len(sources), -1, config.block_out, config.block_in)
    parts = [packed[first : first + channels].swapaxes(0, 1) for first in range(0, len(sources), channels)]
    return np.concatenate([part.reshape(-1, config.block_out, config.block_in) for part in parts])


__all__ = ["emit_region"]
