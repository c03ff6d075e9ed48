"""Darknet to Relay: the walk over the sections of a `.cfg` file."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from relaylang.diagnostics import Diagnostic, RelayError, error, first_ones
from relaylang.frontends.common import Builder, Imported, Layer, Listing, Malformed, Report, Unsupported
from relaylang.frontends.common.files import damaged
from relaylang.frontends.common.imported import finish
from relaylang.frontends.common.inputs import check_axes, check_names, no_model, value_for
from relaylang.frontends.common.report import failure
from relaylang.frontends.darknet.node import Node
from relaylang.frontends.darknet.reader import VERSIONS, Section, Weights, sections
from relaylang.frontends.darknet.table import REFUSED, table
from relaylang.frontends.options import DEFAULTS, Options
from relaylang.ir import Expr, TensorType, Var
from relaylang.ir.bulk import gc_paused
from relaylang.runtime.budget import Budget
from relaylang.runtime.text import read_bytes
from relaylang.typing.valid_types import unsound

#: The name of the input, as in TVM.
INPUT = "data"
#: The versions with YOLO v4 write this revision, and have these entries. They add the epsilon of normalisations to the variance.
_REVISION = 5
_RECENT = frozenset(("group_id", "scale_x_y", "iou_loss", "iou_normalizer", "new_coords", "beta_nms", "nms_kind"))
#: Pictures are at most so large.
_LARGEST = 1 << 16


@dataclass
class Detection:
    """What describes the boxes of a layer: attributes, the sizes of anchors, and the numbers of those that it uses."""

    index: int
    kind: str
    result: Expr
    attributes: list[int]
    biases: list[float]
    mask: list[int]


class Importer:
    """Converts one network. `file` is the name of its `.cfg` in diagnostics."""

    def __init__(self, parts: list[Section], weights: Weights, file: str, options: Options, budget: Budget) -> None:
        self.file = file
        self.options = options
        self.sections = parts
        self.weights = weights
        self.rules = table()
        budget.grant(layers=len(parts))
        self.report = Report(file, self.rules.names(), warnings=VERSIONS.warnings(weights.version, weights.file))
        self.builder = Builder(Listing(file), self.report, options, budget)
        self.recent = weights.revision >= _REVISION or any(_RECENT & s.entries.keys() for s in parts[1:])
        self.results: list[Any] = []
        self.detections: list[Detection] = []
        self.errors: list[Diagnostic] = []

    def result(self, index: int) -> Expr:
        """The result of a layer. Raises `_Skipped` where it was not converted."""
        result = self.results[index]
        if not isinstance(result, Expr):
            raise _Skipped
        return result

    def detect(self, n: Node, result: Expr, kind: str, attributes: list[int], biases: list[float], mask: list[int]) -> None:
        """Note a layer that gives boxes."""
        self.detections.append(Detection(n.index, kind, result, attributes, biases, mask))

    def run(self, described: bool = False) -> Imported:
        """The program: all results with boxes, and that of the last layer. Raises `RelayError` with everything that is wrong.

        With `described`, the results are TVM's: the last one first, each with its mask, anchors and attributes behind it.
        """
        check_names(self.file, self.options, [INPUT])
        x = self._input()
        for index, section in enumerate(self.sections[1:]):
            self._layer(section, index, x)
        if self.errors:
            raise RelayError(first_ones(self.errors))
        self.report.raise_if_any()
        if not self.results:
            raise damaged(self.file, "it has no layers")
        if self.weights.left:
            self.report.warn(f"{self.weights.file} has {self.weights.left} numbers more than the layers take", None)
        last = self.results[-1]
        if described:
            outputs = self._described(last)
        else:
            boxes = [d.result for d in self.detections]
            outputs = boxes if any(r is last for r in boxes) else [*boxes, last]
        return finish(self.builder, [x] if isinstance(x, Var) else [], outputs)

    def _described(self, last: Expr) -> list[Expr]:
        outputs: list[Expr] = []
        for detection in reversed(self.detections):
            kind = "yolo" if detection.kind == "Yolo" else "region"
            parts = [("mask", np.array(detection.mask, np.int32))] if detection.kind == "Yolo" else []
            parts += [("bias", np.array(detection.biases, np.float32)), ("attr", np.array(detection.attributes, np.int32))]
            values = [self._description(f"{kind}{detection.index}_{name}", array) for name, array in parts]
            outputs += [*([detection.result] if detection.result is not last else []), *values]
        return [last, *outputs]

    def _description(self, name: str, array: np.ndarray) -> Expr:
        """What describes boxes, as TVM has it: a parameter, where weights are parameters."""
        b = self.builder
        if self.options.freeze:
            return b.const(array)
        variable = b.variable(b.unique(name), TensorType(array.shape, array.dtype.name))
        b.params[variable.name_hint] = array
        return variable

    def _input(self) -> Expr:
        b, net = self.builder, self.sections[0]
        n = Node(self, net, 0)
        try:
            height, width, channels = n.int("height", 0, 0), n.int("width", 0, 0), n.int("channels", 3, 1)
        except Malformed as wrong:
            raise damaged(self.file, f"its section [net]: {wrong.reason}") from None
        inputs = net.entries.get("inputs", "")
        shape: tuple[Any, ...] = (1, channels, height, width)
        if not (height and width):
            if not inputs.isdecimal() or not 0 < int(inputs) < 1 << 31:
                raise damaged(self.file, "its section [net] has no height and width")
            shape = (1, int(inputs))
        if max(height, width, channels) > _LARGEST:
            raise damaged(self.file, f"its section [net] states pictures of {channels} x {height} x {width}")
        stated = self.options.shapes.get(INPUT)
        if stated is not None:
            check_axes(self.file, INPUT, shape, stated)
            shape = tuple(stated)
        ty = TensorType(list(shape), self.options.dtypes.get(INPUT, "float32"))
        why = unsound(ty)
        if why is not None:
            raise damaged(self.file, f"the input {INPUT}: {why}")
        if INPUT in self.options.values:
            return b.const(value_for(self.file, INPUT, self.options.values[INPUT], ty.shape, ty.dtype))
        b.span = b.listing.add(Layer("Input", "", (), (INPUT,)))
        return b.variable(b.unique(INPUT), ty)

    def _layer(self, section: Section, index: int, data: Expr) -> None:
        b = self.builder
        layer = Layer(section.kind, f"{section.kind}{index}", (), (f"layer {index}",))
        b.span = span = b.listing.add(layer)
        before = self.results[-1] if self.results else data
        result: Any = None
        try:
            rule = self.rules.find(section.kind)
            if rule is None:
                raise Unsupported(REFUSED.get(section.kind, ""))
            if before is None and section.kind != "route":
                raise _Skipped
            result = rule.convert(Node(self, section, index), before)
        except _Skipped:
            pass
        except Unsupported as why:
            self.report.unsupported(section.kind, layer.label, span, why.reason)
        except Exception as wrong:
            self.errors += failure(wrong, layer, span, [before] if isinstance(before, Expr) else [])
        self.results.append(result)


class _Skipped(Exception):
    """The layer uses the result of one that was not converted."""


def import_darknet(model: Any, options: Options = DEFAULTS, file: str = "", weights: Any = None, described: bool = False) -> Imported:
    """A program from a `.cfg` file (its bytes or path) and its `.weights` (bytes or a path; by default the file beside it).

    With `described`, results are those of TVM: see `Importer.run`. Raises `RelayError`: a file is damaged or missing (R0802),
    options do not fit (R0804), layers are wrong (R0805) or cannot be converted (R0801).
    """
    if isinstance(model, (str, os.PathLike)):
        file = file or os.fspath(model)
        options = options if options.folder else replace(options, folder=os.path.dirname(os.path.abspath(file)))
        model = read_bytes(os.fspath(model))
    if not isinstance(model, (bytes, bytearray, memoryview)):
        raise RelayError(no_model(model, "network of Darknet", "the importer takes the contents of a .cfg file, or its path"))
    name = file or "the network"
    weights = weights if weights is not None else options.weights or None
    other = "the weights" if isinstance(weights, (bytes, bytearray, memoryview)) else ""
    if weights is None:
        other = os.path.splitext(name)[0] + ".weights"
        if not options.folder or not os.path.isfile(os.path.join(options.folder, os.path.basename(other))):
            notes = ["its weights are looked for beside it, under its own name"]
            raise RelayError(error("R0802", f"{name}: its file of weights {other} is missing", notes=notes))
        weights = os.path.join(options.folder, os.path.basename(other))
    if isinstance(weights, (str, os.PathLike)):
        other = other or os.fspath(weights)
        weights = read_bytes(os.fspath(weights))
    with gc_paused(), np.errstate(all="ignore"):
        budget = Budget(name, len(model) + len(weights), options.nodes, options.bytes, options.work)
        parts = sections(bytes(model), name)
        return Importer(parts, Weights(bytes(weights), other, budget), name, options, budget).run(described)


__all__ = ["INPUT", "Importer", "import_darknet"]
