"""Reads Caffe's files: the layers of a network in one form, whatever version they have, and weights by layer.

A network is a text or a message. Its layers are of the first form (V0, of 2013), the second (V1) or the third.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from relaylang.frontends.caffe.schema import caffe
from relaylang.frontends.common.files import damaged
from relaylang.frontends.common.protobuf import parsed, parsed_text
from relaylang.frontends.common.report import Malformed
from relaylang.frontends.contents import is_caffe_text

#: The names of types of the first two forms.
_TYPES = {
    "absval": "AbsVal",
    "accuracy": "Accuracy",
    "argmax": "ArgMax",
    "bnll": "BNLL",
    "concat": "Concat",
    "contrastive_loss": "ContrastiveLoss",
    "conv": "Convolution",
    "convolution": "Convolution",
    "data": "Data",
    "deconvolution": "Deconvolution",
    "dropout": "Dropout",
    "dummy_data": "DummyData",
    "eltwise": "Eltwise",
    "euclidean_loss": "EuclideanLoss",
    "exp": "Exp",
    "flatten": "Flatten",
    "hdf5_data": "HDF5Data",
    "hdf5_output": "HDF5Output",
    "hinge_loss": "HingeLoss",
    "im2col": "Im2col",
    "image_data": "ImageData",
    "images": "ImageData",
    "infogain_loss": "InfogainLoss",
    "inner_product": "InnerProduct",
    "innerproduct": "InnerProduct",
    "lrn": "LRN",
    "memory_data": "MemoryData",
    "multinomial_logistic_loss": "MultinomialLogisticLoss",
    "mvn": "MVN",
    "pool": "Pooling",
    "pooling": "Pooling",
    "power": "Power",
    "relu": "ReLU",
    "sigmoid": "Sigmoid",
    "sigmoid_cross_entropy_loss": "SigmoidCrossEntropyLoss",
    "silence": "Silence",
    "slice": "Slice",
    "softmax": "Softmax",
    "softmax_loss": "SoftmaxWithLoss",
    "split": "Split",
    "tanh": "TanH",
    "threshold": "Threshold",
    "window_data": "WindowData",
}
#: Layers of the first form -> where the form that follows has its fields.
_FIRST = {
    "Convolution": (
        "convolution_param",
        {"num_output": "num_output", "biasterm": "bias_term", "pad": "pad", "kernelsize": "kernel_size", "group": "group"},
    ),
    "InnerProduct": ("inner_product_param", {"num_output": "num_output", "biasterm": "bias_term"}),
    "Pooling": ("pooling_param", {"pool": "pool", "pad": "pad", "kernelsize": "kernel_size", "stride": "stride"}),
    "LRN": ("lrn_param", {"local_size": "local_size", "alpha": "alpha", "beta": "beta", "k": "k"}),
    "Dropout": ("dropout_param", {"dropout_ratio": "dropout_ratio"}),
    "Concat": ("concat_param", {"concat_dim": "concat_dim"}),
    "Data": ("data_param", {"batchsize": "batch_size"}),
}
_FIRST["Convolution"][1]["stride"] = "stride"


@dataclass
class Layer:
    """A layer: its name and type, the names of its operands and results, its weights, and its message for parameters."""

    name: str
    type: str
    bottoms: list[str]
    tops: list[str]
    blobs: Sequence[Any]
    message: Any = field(repr=False)


@dataclass
class Network:
    """A network as it runs: the layers of the phase TEST, and inputs that its head states, with shapes (None: not stated)."""

    layers: list[Layer]
    inputs: dict[str, tuple[int, ...] | None]


def text_of(value: Any) -> str:
    """A text of a message. Old messages may hold bytes that are no text."""
    return value if isinstance(value, str) else bytes(value).decode("utf-8", "replace")


def message(data: bytes, file: str, what: str) -> Any:
    """The network in a file's bytes, a text or a message. Raises `RelayError` (R0802); `what` names it."""
    if is_caffe_text(data):
        return parsed_text(caffe(packed=False)["NetParameter"], data, file, what)
    parsed_network = parsed(caffe()["NetParameter"], data, file, what)
    if any(
        not b.data and not b.double_data and not b.raw_data
        for entry in (parsed_network.layer, parsed_network.layers)
        for x in entry
        for b in x.blobs
    ):
        parsed_network = parsed(caffe(packed=False)["NetParameter"], data, file, what)  # its numbers may stand one by one
    return parsed_network


def network(made: Any, file: str) -> Network:
    """The layers of a message in one form. Raises `RelayError` (R0802)."""
    inputs: dict[str, tuple[int, ...] | None] = {}
    names, dims = [text_of(name) for name in made.input], list(made.input_dim)
    for at, name in enumerate(names):
        if at < len(made.input_shape):
            inputs[name] = tuple(made.input_shape[at].dim)
        else:
            first = 4 * (at - len(made.input_shape))
            inputs[name] = tuple(dims[first : first + 4]) if len(dims) >= first + 4 else None
    state = made.state
    old = any(entry.HasField("layer") for entry in made.layers)
    entries: Iterable[Any] = [*made.layers, *made.layer]
    layers = [_layer(entry) for entry in entries if _runs(entry, state)]
    if not layers and not inputs:
        raise damaged(file, "it has no layers")
    return Network(_without_padding(layers) if old else layers, inputs)


def _runs(entry: Any, state: Any) -> bool:
    """Whether a layer belongs to the network in its state, by its rules; the phase is TEST."""
    if entry.include:
        return any(_meets(rule, state) for rule in entry.include)
    return not any(_meets(rule, state) for rule in entry.exclude)


def _meets(rule: Any, state: Any) -> bool:
    stages = set(state.stage)
    return (
        (not rule.HasField("phase") or rule.phase == 1)
        and (not rule.HasField("min_level") or state.level >= rule.min_level)
        and (not rule.HasField("max_level") or state.level <= rule.max_level)
        and stages.issuperset(rule.stage)
        and not stages.intersection(rule.not_stage)
    )


def _layer(entry: Any) -> Layer:
    bottoms, tops = [text_of(name) for name in entry.bottom], [text_of(name) for name in entry.top]
    if entry.DESCRIPTOR.name == "LayerParameter":
        return Layer(text_of(entry.name), text_of(entry.type), bottoms, tops, entry.blobs, entry)
    if entry.HasField("layer"):
        return _of_first(entry.layer, bottoms, tops)
    kind = entry.DESCRIPTOR.fields_by_name["type"].enum_type.values_by_number[entry.type].name
    return Layer(text_of(entry.name), _TYPES.get(kind.lower(), kind), bottoms, tops, entry.blobs, entry)


def _of_first(old: Any, bottoms: list[str], tops: list[str]) -> Layer:
    """A layer of the first form, whose parameters go to the message of the form that follows."""
    kind = _TYPES.get(text_of(old.type), text_of(old.type))
    layer = type(old).DESCRIPTOR.file.message_types_by_name["LayerParameter"]._concrete_class()
    if kind in _FIRST:
        name, fields = _FIRST[kind]
        params = getattr(layer, name)
        for source, target in fields.items():
            if old.HasField(source):
                value = getattr(old, source)
                if hasattr(getattr(params, target), "append"):
                    getattr(params, target).append(value)
                else:
                    setattr(params, target, value)
    if kind == "padding":
        layer.pooling_param.pad.append(old.pad)
    return Layer(text_of(old.name), kind, bottoms, tops, old.blobs, layer)


def _without_padding(layers: list[Layer]) -> list[Layer]:
    """Layers that take their padding from the layer before them, as those of the first form had it."""
    padded: dict[str, tuple[str, int]] = {}
    kept = []
    for layer in layers:
        if layer.type == "padding" and len(layer.bottoms) == len(layer.tops) == 1:
            padded[layer.tops[0]] = layer.bottoms[0], layer.message.pooling_param.pad[0]
            continue
        if layer.type in ("Convolution", "Pooling") and layer.bottoms and layer.bottoms[0] in padded:
            layer.bottoms[0], pad = padded[layer.bottoms[0]]
            params = layer.message.convolution_param if layer.type == "Convolution" else layer.message.pooling_param
            del params.pad[:]
            params.pad.append(pad)
        for top in layer.tops:
            padded.pop(top, None)
        kept.append(layer)
    return kept


def weights(made: Any) -> dict[str, Sequence[Any]]:
    """The weights in a message by the names of their layers."""
    blobs: dict[str, Sequence[Any]] = {}
    for entry in (*made.layers, *made.layer):
        source = entry.layer if entry.DESCRIPTOR.name == "V1LayerParameter" and entry.HasField("layer") else entry
        if source.blobs:
            blobs.setdefault(text_of(source.name), source.blobs)
    return blobs


def values(blob: Any, what: str) -> np.ndarray:
    """The numbers of a weight as float32, without a shape. Raises `Malformed`."""
    if blob.raw_data:
        kind = {0: "<f8", 1: "<f4", 2: "<f2"}.get(blob.raw_data_type)
        if kind is None:
            raise Malformed(f"{what} has numbers of a type that is not known")
        return _numbers([blob.raw_data], kind, what)
    return _numbers(blob.data, "<f4", what) if blob.data else _numbers(blob.double_data, "<f8", what)


def _numbers(parts: Sequence[Any], kind: str, what: str) -> np.ndarray:
    data = parts[0] if len(parts) == 1 else None  # protobuf copies a field's bytes at each use
    if not isinstance(data, bytes):
        if not parts or not isinstance(parts[0], bytes):
            return np.array(list(parts), np.float32)
        data = b"".join(parts)
    if len(data) % int(kind[2:]):
        raise Malformed(f"{what} has {len(data)} bytes, which are no whole number of elements")
    with np.errstate(all="ignore"):
        return np.frombuffer(data, kind).astype(np.float32, copy=False)


def shape(blob: Any) -> tuple[int, ...]:
    """The shape that a weight states: as a shape, or as four extents in old files."""
    if blob.HasField("shape"):
        return tuple(blob.shape.dim)
    return blob.num, blob.channels, blob.height, blob.width


def elements(extents: Sequence[int]) -> int:
    """How many elements a shape has."""
    return math.prod(extents)


__all__ = ["Layer", "Network", "elements", "message", "network", "shape", "text_of", "values", "weights"]
