"""The walk over a neural network: layers, which give values to names, and networks inside of layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from relaylang.frontends.common import Layer, Malformed, Unsupported
from relaylang.frontends.common.loops import while_loop
from relaylang.frontends.common.partial import stated_type
from relaylang.frontends.coreml.layer import LayerNode
from relaylang.frontends.coreml.node import each
from relaylang.frontends.coreml.table import REFUSED_LAYERS, layer_table
from relaylang.frontends.coreml.values import packed
from relaylang.frontends.coreml.walk import MISSING, Names, Skipped, Walk, inner, value_of
from relaylang.ir import Expr, TensorType


def _unknown(layer: Any) -> str:
    """What a layer of a kind that the table of fields lacks is called: by the number of its field."""
    from google.protobuf.unknown_fields import UnknownFieldSet

    return next((f"layer#{field.field_number}" for field in UnknownFieldSet(layer)), "layer")


def _stated(layer: Any) -> list[TensorType | None]:
    """The types that a network states for the results of a layer, None for each that it does not."""
    shapes = [tuple(t.dimValue) if len(t.dimValue) == t.rank <= 32 else None for t in layer.outputTensor]
    return [stated_type(shape, "float32") for shape in [*shapes, *[None] * len(layer.output)][: len(layer.output)]]


class Network(Walk):
    """Converts one network. `old` is the older rule for the axes of arrays."""

    old = True

    def run(self, network: Any, description: Any, features: Mapping[str, Any], classifier: bool) -> dict[str, Any]:
        """The results by name: those of the description that layers give, the probabilities of a classifier first."""
        self.old = network.arrayInputShapeMapping == 0
        names: Names = {}
        for feature in description.input:
            if feature.name not in features:
                raise Malformed(f"its input {feature.name[:60]!r} is no feature of the models before it")
            if features[feature.name] is MISSING:
                names[feature.name] = MISSING
                continue
            picture = self._axes(features[feature.name])
            for how in network.preprocessing:
                if how.featureName in ("", feature.name) and feature.type.WhichOneof("type") == "imageType":
                    picture = self._scaled(picture, how, feature.type.imageType.colorSpace)
            names[feature.name] = picture
        self._layers(network, names)
        wanted = [feature.name for feature in description.output if feature.name in names]
        if classifier:
            last = network.layers[-1].output if network.layers else ()
            best = network.labelProbabilityLayerName or (last[0] if last else "")
            if best not in names:
                raise Malformed(f"its probabilities {best[:60]!r} are the result of no layer")
            wanted = [best, *[name for name in wanted if name != best]]
            names[description.predictedProbabilitiesName or best] = names[best]
        return {name: self._result(names[name]) for name in wanted}

    def _axes(self, x: Expr) -> Expr:
        """An input by the older rule: (n, channels) or (n, channels, rows, columns)."""
        b, rank = self.b, self.b.rank(x)
        if not self.old or rank in (2, 4):
            return x
        if rank in (1, 3):
            return b.unsqueeze(x, [0])
        shape = b.static_shape(x)
        if rank != 5 or 1 not in shape[:2]:
            raise Malformed(
                f"an input has the shape {tuple(shape)}, and the network takes a sequence or a batch of arrays of three axes"
            )
        return b.reshape_exactly(x, [shape[0] * shape[1], *shape[2:]])

    def _result(self, x: Any) -> Any:
        """A result of the older rule without rows and columns where both have the extent 1."""
        if isinstance(x, Expr) and self.old and self.b.rank(x) == 4 and self.b.shape(x)[2:] == (1, 1):
            return self.b.squeeze(x, [2, 3])
        return x

    def _scaled(self, x: Expr, how: Any, space: int) -> Expr:
        """A picture times a number, plus one of its colour; or less a mean picture."""
        b = self.b
        if how.WhichOneof("preprocessor") == "meanImage":
            mean = packed(how.meanImage.meanImage, "<f4")
            shape = b.static_shape(x)[1:]
            if mean.size != int(np.prod(shape)):
                raise Malformed(f"its mean picture has {mean.size} elements, and its picture the shape {tuple(shape)}")
            return b.op("subtract", x, b.const(mean.reshape(1, *shape)))
        s = how.scaler
        colours = [s.grayBias] if b.shape(x)[1] == 1 else [s.blueBias, s.greenBias, s.redBias]
        colours = colours[::-1] if space == 20 else colours
        factor = float(s.channelScale) or 1.0
        scaled = x if factor == 1 else b.op("multiply", x, factor)
        return b.op("add", scaled, b.const(np.array(colours, np.float32).reshape(1, -1, 1, 1))) if any(colours) else scaled

    # ---- layers

    def _layers(self, network: Any, names: Names) -> None:
        for entry in network.layers:
            kind = entry.WhichOneof("layer") or _unknown(entry)
            operator = f"{kind} {entry.custom.className[:40]}" if kind == "custom" else kind
            layer = Layer(operator, entry.name, list(entry.input), list(entry.output))
            if kind in ("branch", "loop"):
                layer = Layer(operator, entry.name, list(entry.input), ())
            types = partial(_stated, entry)
            results = self.place(layer, partial(self._converted, entry, kind, names), names, types)
            names.update(zip(layer.outputs, results))

    def _converted(self, layer: Any, kind: str, names: Names, operands: list[Any]) -> Sequence[Any]:
        if kind == "branch":
            return self._branch(layer, names)
        if kind == "loop":
            return self._loop(layer, names)
        rule = layer_table().find(kind)
        if rule is None:
            raise Unsupported(REFUSED_LAYERS.get(kind, ""))
        operands += [value_of(names, name) for name in layer.input]
        why = layer_table().wrong_operands(rule, operands)
        if why:
            raise Malformed(why)
        node = LayerNode(self.b, layer, self.old)
        if kind == "split":
            node.p.nOutputs = len(layer.output)
        return each(rule.convert(node, *operands))

    def _branch(self, layer: Any, names: Names) -> Sequence[Any]:
        """The names that both networks give, or that one gives and that had a value before."""
        b = self.b
        if len(layer.input) != 1:
            raise Malformed(f"it has {len(layer.input)} conditions")
        test = self._truth(value_of(names, layer.input[0]))
        maps: list[dict[str, Any]] = []
        for network in (layer.branch.ifBranch, layer.branch.elseBranch):
            own = inner(names)
            self._layers(network, own)
            maps.append(dict(own.maps[0]))  # type: ignore[attr-defined]
        values = [{**{n: names[n] for n in other if n in names}, **own} for own, other in (maps, maps[::-1])]
        both = [name for name in values[0] if name in values[1]]
        left, right = ([side[name] for name in both] for side in values)
        names.update(dict.fromkeys(both, MISSING))  # until the conditional is there
        if MISSING in left or MISSING in right:
            raise Skipped
        if both:
            left, right = ([self._real(x) for x in side] for side in (left, right))
            branch = b.if_(test, b.tuple(left), b.tuple(right))
            names.update({name: b.field(branch, i) for i, name in enumerate(both)})
        return []

    def _real(self, x: Expr) -> Expr:
        """An array as real numbers, which all arrays of networks are."""
        return x if "float" in self.b.dtype(x) else self.b.cast(x, "float32")

    def _truth(self, x: Expr) -> Expr:
        b = self.b
        return b.cast(b.scalar(x), "bool")

    def _turns(self, layer: Any, names: Names, tested: bool) -> Expr | None:
        """The most turns of a loop; None for one that only its test ends."""
        if layer.input:
            return self.b.cast(self.b.scalar(value_of(names, layer.input[0])), "int64")
        if layer.loop.maxLoopIterations or not tested:
            return self.b.const(int(min(layer.loop.maxLoopIterations, 1 << 62)), "int64")
        return None

    def _loop(self, layer: Any, names: Names) -> Sequence[Any]:
        """The names that the networks of the loop give and that had a value before are its variables."""
        b, p = self.b, layer.loop
        tested = bool(p.conditionVar) and bool(p.conditionNetwork.layers)
        limit = self._turns(layer, names, tested)
        if tested:
            self._layers(p.conditionNetwork, names)  # what it gives exists before the first turn
        assigned = [out for net in (p.conditionNetwork, p.bodyNetwork) for layer in net.layers for out in layer.output]
        kept = [name for name in dict.fromkeys(assigned) if name in names]
        if any(names[name] is MISSING for name in kept):
            raise Skipped
        if tested and p.conditionVar not in kept:
            raise Malformed(f"its condition {p.conditionVar[:60]!r} is no result of its network")

        def more(values: list[Expr]) -> Expr:
            tests = [b.op("less", values[0], limit)] if limit is not None else []
            tests += [self._truth(values[1 + kept.index(p.conditionVar)])] if tested else []
            return tests[0] if len(tests) == 1 else b.op("logical_and", *tests)

        def turn(values: list[Expr]) -> list[Expr]:
            own = inner(names)
            own.update(zip(kept, values[1:]))
            self._layers(p.bodyNetwork, own)
            if tested:
                self._layers(p.conditionNetwork, own)
            after = [own[name] for name in kept]
            if MISSING in after:
                raise Skipped
            return [b.op("add", values[0], b.const(1, "int64")), *map(self._real, after)]

        first = [self._real(names[name]) for name in kept]
        names.update(dict.fromkeys(kept, MISSING))  # until the loop is there
        results = while_loop(b, more, turn, [b.const(0, "int64"), *first], ["turn", *kept], "loop")
        names.update(zip(kept, results[1:]))
        return []


__all__ = ["Network"]
