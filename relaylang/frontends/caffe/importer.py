"""Caffe to Relay: the walk over a network's layers. Conversions are in the tables of `families/`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from relaylang.diagnostics import Diagnostic, RelayError, error, first_ones
from relaylang.frontends.caffe.node import LARGEST, Node
from relaylang.frontends.caffe.reader import Layer as Entry
from relaylang.frontends.caffe.reader import Network, message, network, weights
from relaylang.frontends.caffe.table import DATA, LEFT_OUT, REFUSED, WEIGHTED, table
from relaylang.frontends.common import Builder, Imported, Layer, Listing, Malformed, Report, Unsupported, external
from relaylang.frontends.common.files import damaged
from relaylang.frontends.common.imported import finish
from relaylang.frontends.common.inputs import check_axes, check_names, no_model, value_for
from relaylang.frontends.common.report import failure
from relaylang.frontends.contents import is_caffe_text
from relaylang.frontends.options import DEFAULTS, Options
from relaylang.ir import Expr, TensorType, Var
from relaylang.ir.bulk import gc_paused
from relaylang.runtime.budget import Budget
from relaylang.runtime.text import read_bytes
from relaylang.typing.valid_types import unsound

#: The value of a result whose layer was not converted, and of one that a network that runs does without.
MISSING, TRAINING = object(), object()
_WANTED = "the importer takes a .prototxt or a .caffemodel: its contents, its path, or a NetParameter"
#: The endings of a network and of its weights.
_TEXT, _MODEL = ".prototxt", ".caffemodel"


class _Skipped(Exception):
    """The layer uses a result whose own layer was not converted."""


class Importer:
    """Converts one network. `file` is its name in diagnostics, `source` that of the file with its weights."""

    def __init__(
        self, net: Network, weights: Mapping[str, Sequence[Any]], file: str, source: str, options: Options, budget: Budget
    ) -> None:
        self.net = net
        self.weights = weights
        self.file = file
        self.source = source
        self.options = options
        self.rules = table()
        budget.grant(layers=len(net.layers))
        self.report = Report(file, self.rules.names())
        self.builder = Builder(Listing(file), self.report, options, budget)
        self.errors: list[Diagnostic] = []
        #: Inputs that no layer has used yet: their shapes, None where the file has none.
        self.pending: dict[str, tuple[int, ...] | None] = {}
        self.inputs: dict[str, Var] = {}
        self.tops: dict[str, Any] = {}
        #: The results that no layer has used, in the order of their layers.
        self.unused: dict[str, None] = {}

    def run(self) -> Imported:
        """The program: its results are those that no layer uses. Raises `RelayError` with everything that is wrong."""
        declared = dict(self.net.inputs)
        for entry in self.net.layers:
            if entry.type in DATA:
                declared |= dict(zip(entry.tops, _shapes(entry)))
        check_names(self.file, self.options, declared)
        self.pending = dict(declared)
        for name in [*self.net.inputs, *[top for e in self.net.layers if e.type == "Input" for top in e.tops]]:
            if name in self.pending and (self.pending[name] is not None or name in self.options.shapes):
                self._input(name)
        for entry in self.net.layers:
            if entry.type not in DATA:
                self._layer(entry)
        if self.errors:
            raise RelayError(first_ones(self.errors))
        outputs = self._outputs()
        if not outputs:
            raise damaged(self.file, "it has no layers that give a result")
        return finish(self.builder, [self.inputs[name] for name in declared if name in self.inputs], outputs)

    def _outputs(self) -> list[Expr]:
        """The results that no layer uses. Raises `RelayError` with the layers that were not converted."""
        values = [self.tops[name] for name in self.unused]
        if not self.options.partial or MISSING in values:
            self.report.raise_if_any()
        return [value for value in values if isinstance(value, Expr)]

    def _input(self, name: str) -> None:
        """Make an input of the network, or a constant of its value. Raises `RelayError`."""
        b, stated = self.builder, self.pending.pop(name)
        shape = self.options.shapes.get(name, stated)
        if shape is None:
            notes = [f"give it, such as --shape {name}=1x3x224x224"]
            raise RelayError(error("R0804", f"{self.file}: the shape of the input {name} is not known", notes=notes))
        if stated is not None:
            check_axes(self.file, name, stated, shape)
        if any(isinstance(d, int) and not 0 <= d < LARGEST for d in shape) or len(shape) > 32:
            raise damaged(self.file, f"the input {name} has the shape {str(tuple(shape))[:80]}")
        ty = TensorType(list(shape), self.options.dtypes.get(name, "float32"))
        why = unsound(ty)
        if why is not None:
            raise damaged(self.file, f"the input {name}: {why}")
        if name in self.options.values:
            self.tops[name] = b.const(value_for(self.file, name, self.options.values[name], ty.shape, ty.dtype))
            return
        span = b.span
        b.span = b.listing.add(Layer("Input", "", (), (name,)))
        self.tops[name] = self.inputs[name] = b.variable(b.unique(name), ty)
        b.span = span

    def _operand(self, name: str) -> Any:
        if name in self.pending:
            self._input(name)
        if name not in self.tops:
            raise Malformed(f"its operand {name[:60]!r} is no result of a layer before it")
        if self.tops[name] is TRAINING:
            raise Unsupported(f"its operand {name[:60]!r} is a result that training needs alone")
        return self.tops[name]

    def _layer(self, entry: Entry) -> None:
        b = self.builder
        layer = Layer(entry.type, entry.name, entry.bottoms, entry.tops)
        b.span = span = b.listing.add(layer)
        results: list[Any] = []
        operands: list[Any] = []
        try:
            if entry.type in LEFT_OUT:
                results = [TRAINING] * len(entry.tops)
            else:
                results = self._converted(entry, operands)
        except _Skipped:
            pass
        except Unsupported as why:
            self.report.unsupported(entry.type, layer.label, span, why.reason)
            results = self._external(entry) if self.options.partial else []
        except Exception as wrong:
            self.errors += failure(wrong, layer, span, operands)
        if entry.type not in LEFT_OUT:
            for name in entry.bottoms:
                self.unused.pop(name, None)
        for at, name in enumerate(entry.tops):
            self.tops[name] = results[at] if at < len(results) else MISSING
            self.unused.pop(name, None)
            self.unused[name] = None

    def _external(self, entry: Entry) -> list[Any]:
        """The result of an external function for a layer in place, which keeps the type; files state no others."""
        operands = [x for name in entry.bottoms if isinstance(x := self.tops.get(name), Expr)]
        if list(entry.tops) != list(entry.bottoms)[:1] or len(operands) != len(entry.bottoms):
            return []
        return external(self.builder, entry.type, operands, [operands[0].checked_type])

    def _converted(self, entry: Entry, operands: list[Any]) -> list[Any]:
        rule = self.rules.find(entry.type)
        if rule is None:
            raise Unsupported(REFUSED.get(entry.type, ""))
        taken = entry.bottoms[:1] if entry.type in _LOSSES else entry.bottoms
        operands += [self._operand(name) for name in taken]
        for name in entry.tops:
            if name not in entry.bottoms and (name in self.tops or name in self.pending):
                raise Malformed(f"its result {name[:60]!r} is that of another layer, too")
        if MISSING in operands:
            raise _Skipped
        why = self.rules.wrong_operands(rule, operands)
        if why:
            raise Malformed(why)
        converted = rule.convert(Node(self, entry), *operands)
        results = [converted] if isinstance(converted, Expr) else list(converted)
        if len(entry.tops) > len(results):
            raise Malformed(f"it has {len(entry.tops)} results, and a layer of its type gives {len(results)}")
        return results


#: Losses that give the network's result. Their other operands are labels.
_LOSSES = frozenset(("SoftmaxWithLoss", "SigmoidCrossEntropyLoss"))


def _shapes(entry: Entry) -> list[tuple[int, ...] | None]:
    """The shapes of a data layer's results, None where the file does not state them."""
    layer_message, count = entry.message, len(entry.tops)
    shapes: list[tuple[int, ...] | None]
    if entry.type == "Input":
        shapes = [tuple(s.dim) for s in layer_message.input_param.shape]
        return shapes * count if len(shapes) == 1 else [*shapes[:count], *[None] * (count - len(shapes))]
    if entry.type == "MemoryData":
        p = layer_message.memory_data_param
        shapes = [(p.batch_size, p.channels, p.height, p.width), (p.batch_size,), *[None] * count]
        return shapes[:count]
    return [None] * count


def import_caffe(model: Any, options: Options = DEFAULTS, file: str = "", weights_of: Any = None) -> Imported:
    """A program from a network: the bytes or the path of a `.prototxt` or `.caffemodel`, or a NetParameter of Caffe.

    `weights_of` is the file of its weights in the same forms; by default it is beside the network. Raises `RelayError`:
    a file is damaged or missing (R0802), options do not fit (R0804), layers are wrong (R0805) or cannot be converted (R0801).
    """
    if isinstance(model, (str, os.PathLike)):
        file = file or os.fspath(model)
        options = options if options.folder else replace(options, folder=os.path.dirname(os.path.abspath(file)))
    data, name = contents(model), file or "the network"
    weight_source = weights_of if weights_of is not None else options.weights or None
    source = os.fspath(weight_source) if isinstance(weight_source, (str, os.PathLike)) else "the file of weights"
    beside = _beside(name, options.folder, _MODEL if is_caffe_text(data) else _TEXT) if weight_source is None else ""
    with gc_paused(), np.errstate(all="ignore"):
        budget = Budget(name, len(data), options.nodes, options.bytes, options.work)
        own = message(data, name, "the network")
        if beside.endswith(_TEXT):  # a file of weights was named, and its network is beside it
            weight_source, source, name, own = own, name, beside, message(read_bytes(beside), beside, "the network")
        elif beside:
            weight_source, source = read_bytes(beside), beside
        if weight_source is None:
            source, blobs_by_layer = name, weights(own)
        else:
            if weight_source is not own:
                data = contents(weight_source)
                budget.grant(len(data))
                weight_source = message(data, source, "the file of weights")
            blobs_by_layer = weights(weight_source)
        net = network(own, name)
        if not blobs_by_layer:
            _check_weights(net, name, source if weight_source is not None else "")
        return Importer(net, blobs_by_layer, name, source, options, budget).run()


def contents(model: Any) -> bytes:
    """The bytes of a file that a caller names, of its contents, or of a message of Caffe's own package. Raises `RelayError`."""
    if isinstance(model, (str, os.PathLike)):
        return read_bytes(os.fspath(model))
    if isinstance(model, (bytes, bytearray, memoryview)):
        return bytes(model)
    if hasattr(model, "SerializeToString") and not isinstance(model, type):
        return bytes(model.SerializeToString())
    raise RelayError(no_model(model, "network of Caffe", _WANTED))


def _beside(name: str, folder: str, other: str) -> str:
    """The file of a network with another ending: of its own name, else the only one of that ending; "" for none."""
    if not folder:
        return ""
    stem = os.path.splitext(os.path.basename(name))[0]
    if os.path.isfile(os.path.join(folder, stem + other)):
        return os.path.join(folder, stem + other)
    try:
        others = [n for n in os.listdir(folder) if n.lower().endswith(other)] if other == _MODEL else []
    except OSError:
        others = []
    return os.path.join(folder, others[0]) if len(others) == 1 else ""


def _check_weights(net: Network, name: str, source: str) -> None:
    """Raise `RelayError` (R0802) where layers need weights, and there are none."""
    wanting = [layer for layer in net.layers if layer.type in WEIGHTED and not layer.blobs]
    if wanting:
        count = f"{len(wanting)} of its layers {'have' if len(wanting) != 1 else 'has'} weights"
        notes = ["--weights names the .caffemodel; else it is looked for beside the network"]
        raise damaged(name, f"{count}, and {f'{source} holds none' if source else 'their file is missing'}", *notes)


__all__ = ["Importer", "contents", "import_caffe"]
