"""Which weights layers have: how many, in which parts, and in which order a model lists those of its layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from relaylang.frontends.keras.spec import Path, Spec

#: Parts in which Keras 3 keeps the weights of a layer, in the order of `get_weights`. Others have them of their own.
_PARTS: dict[str, tuple[Path, ...]] = {
    **dict.fromkeys(("ConvLSTM1D", "ConvLSTM2D", "ConvLSTM3D", "GRU", "LSTM", "SimpleRNN"), (("cell",),)),
    **dict.fromkeys(
        ("GroupedQueryAttention", "GroupQueryAttention", "MultiHeadAttention"),
        (("query_dense",), ("key_dense",), ("gate_dense",), ("value_dense",), ("output_dense",)),
    ),
}

Count = Callable[[Mapping[str, Any]], int]


def _biased(kernels: int) -> Count:
    """A layer's kernels, and a bias where it uses one."""
    return lambda c: kernels + bool(c.get("use_bias", True))


def _scaled(c: Mapping[str, Any]) -> int:
    return bool(c.get("scale", True)) + bool(c.get("center", True))


#: The number of trainable weights of layers, by their configurations.
_TRAINABLE: dict[str, Count] = {
    **dict.fromkeys(
        (
            "Conv1D",
            "Conv1DTranspose",
            "Conv2D",
            "Conv2DTranspose",
            "Conv3D",
            "Conv3DTranspose",
            "Dense",
            "DepthwiseConv1D",
            "DepthwiseConv2D",
        ),
        _biased(1),
    ),
    **dict.fromkeys(
        (
            "ConvLSTM1D",
            "ConvLSTM2D",
            "ConvLSTM3D",
            "GRU",
            "GRUCell",
            "LSTM",
            "LSTMCell",
            "SeparableConv1D",
            "SeparableConv2D",
            "SimpleRNN",
            "SimpleRNNCell",
        ),
        _biased(2),
    ),
    **dict.fromkeys(("BatchNormalization", "GroupNormalization", "LayerNormalization"), _scaled),
    **dict.fromkeys(
        ("GroupedQueryAttention", "GroupQueryAttention", "MultiHeadAttention"),
        lambda c: (8 if c.get("use_bias", True) else 4) * (5 if c.get("use_gate") else 4) // 4,
    ),
    "AdditiveAttention": lambda c: int(bool(c.get("use_scale", True))),
    "Attention": lambda c: bool(c.get("use_scale")) + (c.get("score_mode") == "concat"),
    "EinsumDense": lambda c: 1 + bool(c.get("bias_axes")),
    "Embedding": lambda c: 1,
    "LayerScale": lambda c: 1,
    "LocallyConnected1D": _biased(1),
    "LocallyConnected2D": _biased(1),
    "PReLU": lambda c: 1,
    "RMSNormalization": lambda c: 1,
    "ReversibleEmbedding": lambda c: 1 if c.get("tie_weights", True) else 2,
}
#: The number of other weights.
_OTHER: dict[str, Count] = {
    "SpectralNormalization": lambda c: 1,
    "BatchNormalization": lambda c: 2,
    "Normalization": lambda c: 3 if c.get("mean") is None else 0,
}


def parts(layer: Spec) -> tuple[Path, ...]:
    """The parts of a layer that hold its weights, in their order."""
    return _PARTS.get(layer.kind, ((),))


def slots(layer: Spec, path: Path) -> list[Path]:
    """The place of each weight that a model or wrapper lists: trainable ones first, then the others."""
    trainable: list[Path] = []
    other: list[Path] = []
    stack = [(layer, path, False)]
    while stack:
        spec, place, frozen = stack.pop()
        frozen = frozen or spec.config.get("trainable") is False
        if spec.is_model:
            stack += [(s, p, frozen) for p, s in reversed(list(spec.layers(place)))]
            continue
        inner = list(spec.children())
        if inner:
            other += [place] * _OTHER.get(spec.kind, lambda c: 0)(spec.config)
            stack += [(s, (*place, *step.split("/")), frozen) for step, s in reversed(inner)]
            continue
        count = _TRAINABLE.get(spec.kind, lambda c: 0)(spec.config)
        (other if frozen else trainable).extend([place] * count)
        other += [place] * _OTHER.get(spec.kind, lambda c: 0)(spec.config)
    return [*trainable, *other]


__all__ = ["parts", "slots"]
