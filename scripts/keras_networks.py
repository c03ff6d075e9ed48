"""Writes tests/frontends/keras/data/recorded.tar.xz: small networks of Keras in its files, with Keras's own results.

    KERAS_BACKEND=tensorflow scripts/keras_networks.py [--folder FOLDER] [--only NAME]...
    scripts/keras_networks.py --applications FOLDER    the networks of keras.applications, too large to be committed

Keras 3 with TensorFlow is needed, and tf_keras for files of Keras 2. TensorFlow 2.21, Keras 3.15 and tf_keras 2.21 made the
committed ones. Weights and operands are random, of a fixed seed.
"""

from __future__ import annotations

import argparse
import importlib
import io
import os
import sys
import tarfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
DATA = Path(__file__).resolve().parent.parent / "tests" / "frontends" / "keras" / "data" / "recorded.tar.xz"
Layers = Any
Case = Callable[[Any, Any], Any]


def one(keras: Any, shape: tuple[Any, ...], *layers: Any, dtype: str = "float32", batch: int = 2) -> Any:
    """A chain of layers as a functional model."""
    x = given = keras.Input(shape, batch_size=batch, dtype=dtype)
    for layer in layers:
        x = layer(x)
    return keras.Model(given, x)


def several(keras: Any, shapes: list[tuple[int, ...]], call: Callable[..., Any]) -> Any:
    """A model of several inputs."""
    given = [keras.Input(s, batch_size=2, name=f"given{i}") for i, s in enumerate(shapes)]
    return keras.Model(given, call(*given))


def branches(keras: Any, shape: tuple[int, ...], layers: list[Any]) -> Any:
    """Several layers on one operand; each result is an output."""
    given = keras.Input(shape, batch_size=2)
    return keras.Model(given, [layer(given) for layer in layers])


def convolutions(k: Any, L: Layers) -> Iterator[tuple[str, Callable[[], Any]]]:
    yield (
        "conv1d",
        lambda: branches(
            k,
            (9, 4),
            [
                L.Conv1D(3, 3),
                L.Conv1D(3, 3, padding="same", strides=2, activation="relu"),
                L.Conv1D(4, 2, padding="causal", dilation_rate=2),
                L.Conv1D(4, 3, groups=2, use_bias=False),
                L.SeparableConv1D(5, 3, padding="same", depth_multiplier=2),
            ],
        ),
    )
    yield (
        "conv2d",
        lambda: branches(
            k,
            (9, 8, 4),
            [
                L.Conv2D(3, 3),
                L.Conv2D(3, (3, 2), padding="same", strides=2, activation="relu"),
                L.Conv2D(4, 2, dilation_rate=(2, 3), padding="same"),
                L.Conv2D(4, 3, groups=2, use_bias=False),
                L.DepthwiseConv2D(3, depth_multiplier=2, padding="same"),
                L.DepthwiseConv2D((2, 3), strides=2, use_bias=False),
                L.SeparableConv2D(5, 3, padding="same", depth_multiplier=2, activation="elu"),
            ],
        ),
    )
    yield (
        "conv3d",
        lambda: branches(
            k, (5, 6, 7, 2), [L.Conv3D(3, 2, padding="same", strides=(1, 2, 3)), L.Conv3D(2, (1, 2, 3), dilation_rate=1)]
        ),
    )
    yield (
        "depthwise1d",
        lambda: branches(k, (9, 4), [L.DepthwiseConv1D(3, depth_multiplier=2, padding="same"), L.DepthwiseConv1D(2, strides=2)]),
    )
    yield (
        "transposed1d",
        lambda: branches(
            k,
            (5, 3),
            [
                L.Conv1DTranspose(4, 3, strides=2, padding="same"),
                L.Conv1DTranspose(4, 3, strides=2),
                L.Conv1DTranspose(2, 2, strides=3),
            ],
        ),
    )
    yield (
        "transposed2d",
        lambda: branches(
            k,
            (5, 4, 3),
            [
                L.Conv2DTranspose(4, 3, strides=2, padding="same"),
                L.Conv2DTranspose(4, (3, 2), strides=2, activation="relu"),
                L.Conv2DTranspose(2, 2, strides=3),
                L.Conv2DTranspose(2, 4, strides=2, padding="same"),
                L.Conv2DTranspose(2, 1, strides=2, padding="same"),
                L.Conv2DTranspose(2, 3, strides=2, padding="same", output_padding=1),
                L.Conv2DTranspose(2, 3, strides=2, output_padding=1),
            ],
        ),
    )
    yield (
        "transposed3d",
        lambda: branches(k, (3, 4, 2, 2), [L.Conv3DTranspose(3, 3, strides=2, padding="same"), L.Conv3DTranspose(3, 2, strides=2)]),
    )


def pools(k: Any, L: Layers) -> Iterator[tuple[str, Callable[[], Any]]]:
    for rank, shape in ((1, (9, 3)), (2, (9, 7, 3)), (3, (5, 6, 7, 2))):
        for kind in ("Max", "Average"):
            pool, whole = getattr(L, f"{kind}Pooling{rank}D"), getattr(L, f"Global{kind}Pooling{rank}D")
            yield (
                f"{kind.lower()}{rank}d",
                lambda shape=shape, pool=pool, whole=whole: branches(
                    k,
                    shape,
                    [
                        pool(2),
                        pool(3, strides=2, padding="same"),
                        pool(2, strides=1, padding="same"),
                        whole(),
                        whole(keepdims=True),
                    ],
                ),
            )


def shapes(k: Any, L: Layers) -> Iterator[tuple[str, Callable[[], Any]]]:
    yield (
        "shapes1d",
        lambda: branches(
            k,
            (6, 4),
            [
                L.Flatten(),
                L.Reshape((3, 8)),
                L.Reshape((-1, 2, 2)),
                L.Permute((2, 1)),
                L.ZeroPadding1D((1, 2)),
                L.Cropping1D((1, 2)),
                L.UpSampling1D(3),
                L.ZeroPadding1D(2),
                L.Cropping1D(1),
            ],
        ),
    )
    yield (
        "shapes2d",
        lambda: branches(
            k,
            (6, 5, 4),
            [
                L.Flatten(),
                L.Reshape((3, 40)),
                L.Permute((3, 1, 2)),
                L.ZeroPadding2D(((1, 2), (0, 3))),
                L.ZeroPadding2D((1, 2)),
                L.Cropping2D(((1, 2), (0, 3))),
                L.UpSampling2D((3, 2)),
                L.UpSampling2D(2, interpolation="bilinear"),
                L.Cropping2D(1),
            ],
        ),
    )
    yield (
        "shapes3d",
        lambda: branches(
            k,
            (3, 4, 5, 2),
            [
                L.ZeroPadding3D(((1, 2), (0, 3), (1, 0))),
                L.Cropping3D(((1, 1), (0, 3), (1, 0))),
                L.UpSampling3D((3, 2, 1)),
                L.Flatten(),
            ],
        ),
    )
    yield "repeat_vector", lambda: one(k, (5,), L.RepeatVector(3))


def plain(k: Any, L: Layers) -> Iterator[tuple[str, Callable[[], Any]]]:
    names = [
        "relu",
        "sigmoid",
        "tanh",
        "softmax",
        "elu",
        "selu",
        "softplus",
        "softsign",
        "exponential",
        "linear",
        "hard_sigmoid",
        "swish",
        "gelu",
        "mish",
    ]
    names3 = [
        "silu",
        "relu6",
        "leaky_relu",
        "log_softmax",
        "hard_silu",
        "hard_tanh",
        "hard_shrink",
        "soft_shrink",
        "tanh_shrink",
        "log_sigmoid",
        "celu",
        "glu",
        "squareplus",
        "sparse_plus",
        "sparse_sigmoid",
    ]
    known = [n for n in [*names, *names3] if hasattr(k.activations, n)]
    yield "activations", lambda: branches(k, (3, 4), [L.Activation(n) for n in known])
    yield (
        "activation_layers",
        lambda: branches(
            k,
            (3, 4),
            [
                L.ReLU(),
                L.ReLU(6.0),
                L.ReLU(1.5, 0.25, 0.5),
                L.ReLU(negative_slope=0.1),
                L.LeakyReLU(0.2),
                L.PReLU(),
                L.PReLU(shared_axes=[1]),
                L.ELU(0.7),
                L.Softmax(),
                L.Softmax(axis=1),
                L.Softmax(axis=(1, 2)),
                L.Dropout(0.5),
                L.GaussianNoise(0.1),
                L.SpatialDropout1D(0.3),
            ],
        ),
    )
    yield "dense", lambda: one(k, (6,), L.Dense(5, activation="relu"), L.Dense(4, use_bias=False), L.Dense(3, activation="softmax"))
    yield "dense3", lambda: one(k, (3, 6), L.Dense(5, activation=L.LeakyReLU(0.3)), L.Dense(4, activation="gelu"))
    yield "embedding", lambda: one(k, (7,), L.Embedding(10, 4), L.Flatten(), dtype="int32")
    yield (
        "norms",
        lambda: branches(
            k,
            (3, 5, 6),
            [
                L.BatchNormalization(),
                L.BatchNormalization(axis=1),
                L.BatchNormalization(scale=False, epsilon=1e-2),
                L.BatchNormalization(center=False),
                L.LayerNormalization(),
                L.LayerNormalization(axis=[1, 2]),
                L.LayerNormalization(axis=1, scale=False),
                L.LayerNormalization(center=False),
                L.UnitNormalization(),
                L.GroupNormalization(3),
                L.GroupNormalization(-1, axis=-1),
                L.GroupNormalization(1, scale=False),
            ],
        ),
    )
    yield (
        "sequential",
        lambda: k.Sequential([k.Input((8, 8, 3), batch_size=2), L.Conv2D(4, 3), L.MaxPooling2D(), L.Flatten(), L.Dense(3)]),
    )
    yield (
        "preprocess",
        lambda: branches(
            k,
            (6, 8, 3),
            [
                L.Rescaling(1 / 127.5, -1.0),
                L.Resizing(9, 5),
                L.Resizing(4, 4, "nearest"),
                L.CenterCrop(4, 5),
                L.Normalization(),
                L.Resizing(9, 5, crop_to_aspect_ratio=True),
                L.Normalization(mean=[1.0, 2.0, 3.0], variance=[1.0, 4.0, 2.0]),
            ],
        ),
    )
    yield (
        "merges",
        lambda: several(
            k,
            [(4, 3), (4, 3), (4, 3)],
            lambda a, b, c: [
                L.Add()([a, b, c]),
                L.Subtract()([a, b]),
                L.Multiply()([a, b, c]),
                L.Average()([a, b, c]),
                L.Maximum()([a, b]),
                L.Minimum()([a, b, c]),
                L.Concatenate()([a, b]),
                L.Concatenate(axis=1)([a, b, c]),
                L.Dot(axes=2)([a, b]),
                L.Dot(axes=(1, 1))([a, b]),
                L.Dot(axes=2, normalize=True)([a, b]),
            ],
        ),
    )
    yield "merges_wide", lambda: several(k, [(4, 3), (1, 3)], lambda a, b: [L.Add()([a, b]), L.Multiply()([a, b])])
    yield "dot_vectors", lambda: several(k, [(4,), (4,)], lambda a, b: [L.Dot(axes=1)([a, b]), L.Dot(axes=-1, normalize=True)([a, b])])


def models(k: Any, L: Layers) -> Iterator[tuple[str, Callable[[], Any]]]:
    def shared() -> Any:
        a, b = k.Input((4,), batch_size=2, name="left"), k.Input((4,), batch_size=2, name="right")
        dense = L.Dense(3, activation="tanh", name="both")
        inner = k.Sequential([k.Input((3,)), L.Dense(5), L.BatchNormalization(), L.Dense(2)], name="head")
        x, y = dense(a), dense(b)
        return k.Model([a, b], [inner(x), inner(y), L.Concatenate()([x, y])])

    def nested() -> Any:
        g = k.Input((4, 3))
        d = L.Dense(5, name="first")
        bn = L.BatchNormalization(name="norm")
        bn.trainable = False
        two = k.Model(g, [bn(d(g)), L.GlobalAveragePooling1D()(g)], name="pair")
        h = k.Input((4, 3), batch_size=2)
        x, y = two(h)
        outer = k.Model(h, [L.Dense(2)(x), L.Dense(2)(y)], name="outer")
        z = k.Input((4, 3), batch_size=2)
        return k.Model(z, outer(z))

    def twice() -> Any:
        g = k.Input((3,))
        block = k.Model(g, L.Dense(3, activation="relu")(g), name="block")
        h = k.Input((3,), batch_size=2)
        return k.Model(h, block(block(h)))

    yield "shared", shared
    yield "nested", nested
    yield "twice", twice


def recurrent(k: Any, L: Layers) -> Iterator[tuple[str, Callable[[], Any]]]:
    for name in ("SimpleRNN", "LSTM", "GRU"):
        kind = getattr(L, name)
        yield (
            name.lower(),
            lambda kind=kind: branches(
                k,
                (5, 3),
                [
                    kind(4),
                    kind(4, return_sequences=True, go_backwards=True),
                    kind(4, use_bias=False),
                    kind(3, activation="relu"),
                ],
            ),
        )
        yield f"{name.lower()}_state", lambda kind=kind: one(k, (5, 3), kind(4, return_sequences=True, return_state=True))
        yield f"{name.lower()}_masked", lambda kind=kind: one(k, (5, 3), L.Masking(), kind(4, return_sequences=True), kind(3))
        yield (
            f"{name.lower()}_both",
            lambda kind=kind: branches(
                k,
                (5, 3),
                [
                    L.Bidirectional(kind(4)),
                    L.Bidirectional(kind(4, return_sequences=True), merge_mode="sum"),
                    L.Bidirectional(kind(4), merge_mode="mul"),
                    L.Bidirectional(kind(4), merge_mode="ave"),
                    L.Bidirectional(kind(4, return_sequences=True), merge_mode=None),
                ],
            ),
        )
        yield (
            f"{name.lower()}_both_masked",
            lambda kind=kind: one(k, (5, 3), L.Masking(), L.Bidirectional(kind(4, return_sequences=True)), L.Bidirectional(kind(3))),
        )
    yield (
        "gru_before",
        lambda: one(k, (5, 3), L.GRU(4, reset_after=False, return_sequences=True), L.GRU(3, reset_after=False, use_bias=False)),
    )
    yield "lstm_hard", lambda: one(k, (5, 3), L.LSTM(4, recurrent_activation="hard_sigmoid"))
    yield "long", lambda: one(k, (50, 3), L.LSTM(4))
    yield (
        "texts",
        lambda: one(
            k, (6,), L.Embedding(8, 4, mask_zero=True), L.LSTM(5, return_sequences=True), L.GlobalAveragePooling1D(), dtype="int32"
        ),
    )
    yield (
        "texts_both",
        lambda: one(
            k,
            (6,),
            L.Embedding(8, 4, mask_zero=True),
            L.Bidirectional(L.GRU(3, return_sequences=True)),
            L.TimeDistributed(L.Dense(4)),
            L.SimpleRNN(2),
            dtype="int32",
        ),
    )
    yield (
        "distributed",
        lambda: one(
            k,
            (3, 6, 6, 2),
            L.TimeDistributed(L.Conv2D(3, 3)),
            L.TimeDistributed(L.Flatten()),
            L.TimeDistributed(L.BatchNormalization()),
        ),
    )
    yield "cells", lambda: one(k, (5, 3), L.RNN(L.LSTMCell(4), return_sequences=True), L.RNN([L.GRUCell(3), L.SimpleRNNCell(2)]))
    yield (
        "convlstm",
        lambda: one(k, (3, 5, 6, 2), L.ConvLSTM2D(3, 3, padding="same", return_sequences=True), L.ConvLSTM2D(2, 2, strides=2)),
    )

    def translate() -> Any:
        a, b = k.Input((4, 3), batch_size=2, name="from"), k.Input((5, 3), batch_size=2, name="to")
        _, h, c = L.LSTM(4, return_state=True)(a)
        y = L.LSTM(4, return_sequences=True)(b, initial_state=[h, c])
        return k.Model([a, b], L.Dense(3, activation="softmax")(y))

    yield "translate", translate


def attention(k: Any, L: Layers) -> Iterator[tuple[str, Callable[[], Any]]]:
    yield (
        "attention",
        lambda: several(
            k,
            [(4, 3), (5, 3), (5, 3)],
            lambda q, v, w: [
                L.Attention()([q, v]),
                L.Attention(use_scale=True)([q, v, w]),
                L.AdditiveAttention()([q, v]),
                L.AdditiveAttention(use_scale=False)([q, v, w]),
            ],
        ),
    )
    yield "attention_causal", lambda: several(k, [(4, 3), (4, 3)], lambda q, v: L.Attention()([q, v], use_causal_mask=True))
    yield (
        "heads",
        lambda: several(
            k,
            [(4, 6), (5, 6)],
            lambda q, v: [
                L.MultiHeadAttention(2, 3)(q, v),
                L.MultiHeadAttention(2, 3, value_dim=4, use_bias=False)(q, v, v),
                L.MultiHeadAttention(3, 2, output_shape=4)(q, q),
            ],
        ),
    )
    yield "heads_causal", lambda: several(k, [(4, 6)], lambda q: L.MultiHeadAttention(2, 3)(q, q, use_causal_mask=True))
    yield "heads_scores", lambda: several(k, [(4, 6)], lambda q: list(L.MultiHeadAttention(2, 3)(q, q, return_attention_scores=True)))
    yield (
        "heads_axes",
        lambda: several(
            k,
            [(3, 4, 6)],
            lambda q: [L.MultiHeadAttention(2, 3, attention_axes=(2,))(q, q), L.MultiHeadAttention(2, 3, attention_axes=(1, 2))(q, q)],
        ),
    )
    yield (
        "einsum",
        lambda: (
            branches(
                k,
                (3, 4),
                [
                    L.EinsumDense("abc,cd->abd", output_shape=(None, 5), bias_axes="d"),
                    L.EinsumDense("...x,xy->...y", output_shape=6, bias_axes="y"),
                    L.EinsumDense("abc,cde->abde", output_shape=(None, 2, 3), bias_axes="de", activation="relu"),
                    L.EinsumDense("abc,bd->adc", output_shape=(2, None)),
                ],
            )
            if hasattr(L, "EinsumDense")
            else None
        ),
    )

    def masked() -> Any:
        ids = k.Input((6,), batch_size=2, dtype="int32")
        x = L.Embedding(5, 6, mask_zero=True)(ids)
        x = L.MultiHeadAttention(2, 3)(x, x)
        return k.Model(ids, L.GlobalAveragePooling1D()(x))

    yield "heads_masked", masked


def third(k: Any, L: Layers) -> Iterator[tuple[str, Callable[[], Any]]]:
    """What Keras 3 alone has."""
    o = k.ops
    yield (
        "ops_arithmetic",
        lambda: several(
            k,
            [(4, 3), (4, 3)],
            lambda a, b: [
                a + b,
                a - 2.0,
                3.0 * b,
                a / (b + 2),
                a**2,
                -a,
                o.abs(a) ** 0.5,
                o.maximum(a, 0.1),
                o.exp(a),
                o.log(o.abs(a) + 1),
                o.where(a > b, a, b),
                o.clip(a, -0.5, 0.5),
                o.cast(a > 0, "float32"),
                o.sqrt(o.square(a)),
                o.floor(a * 3),
                o.sign(a),
                o.logical_and(a > 0, b > 0),
                1 / (2 + o.abs(a)),
                a // 0.3,
                a % 0.3,
            ],
        ),
    )
    yield (
        "ops_reductions",
        lambda: several(
            k,
            [(4, 3)],
            lambda a: [
                o.mean(a, axis=1),
                o.sum(a, axis=-1, keepdims=True),
                o.max(a, axis=(1, 2)),
                o.min(a, axis=1),
                o.prod(a, axis=1),
                o.std(a, axis=1),
                o.var(a, axis=2),
                o.argmax(a, axis=-1),
                o.logsumexp(a, axis=1),
                o.cumsum(a, axis=1),
                o.any(a > 0, axis=1),
                o.softmax(a),
                o.log_softmax(a),
                o.normalize(a, axis=-1),
            ],
        ),
    )
    yield (
        "ops_shapes",
        lambda: several(
            k,
            [(4, 6)],
            lambda a: [
                o.reshape(a, (-1, 3)),
                o.transpose(a, (0, 2, 1)),
                o.expand_dims(a, 1),
                o.squeeze(o.expand_dims(a, 2), 2),
                o.concatenate([a, a], 2),
                o.stack([a, a], 1),
                *o.split(a, 3, axis=2),
                a[:, 1:3, ::2],
                a[:, -1],
                a[..., None, 2],
                o.flip(a, 1),
                o.repeat(a, 2, 1),
                o.tile(a, (1, 2, 1)),
                o.pad(a, ((0, 0), (1, 2), (0, 1))),
                o.swapaxes(a, 1, 2),
                o.moveaxis(a, 2, 1),
                o.roll(a, 1, 1),
                o.tril(o.reshape(a, (2, 4, 6))),
                o.take(a, [0, 2], axis=1),
                *o.unstack(a, axis=1),
                o.ones_like(a),
                o.broadcast_to(a[:, :1], (2, 3, 6)),
                o.sort(a, axis=1),
                o.top_k(a, 2)[0],
            ],
        ),
    )
    yield (
        "ops_products",
        lambda: several(
            k,
            [(4, 3), (3, 5)],
            lambda a, b: [
                o.matmul(a, b),
                a @ b,
                o.einsum("abc,acd->adb", a, b),
                o.tensordot(a, o.reshape(b, (3, 10)), axes=1),
            ],
        ),
    )
    yield (
        "ops_activations",
        lambda: several(
            k,
            [(4, 6)],
            lambda a: [
                o.relu(a),
                o.relu6(a),
                o.sigmoid(a),
                o.silu(a),
                o.gelu(a),
                o.gelu(a, approximate=False),
                o.elu(a),
                o.selu(a),
                o.leaky_relu(a),
                o.hard_sigmoid(a),
                o.hard_silu(a),
                o.softplus(a),
                o.celu(a, 0.7),
                o.glu(a),
                o.soft_shrink(a),
                o.threshold(a, 0.1, 0.3),
            ],
        ),
    )
    yield (
        "ops_layers",
        lambda: several(
            k,
            [(8, 8, 3)],
            lambda a: [
                o.max_pool(a, 2),
                o.average_pool(a, 3, strides=2, padding="same"),
                o.image.resize(a, (5, 11)),
                o.moments(a, [1, 2])[0],
            ],
        ),
    )
    yield "rms", lambda: branches(k, (3, 4), [L.RMSNormalization()])
    yield (
        "grouped",
        lambda: several(
            k,
            [(4, 8), (5, 8)],
            lambda q, v: [L.GroupQueryAttention(4, 4, 2)(q, v), L.GroupQueryAttention(4, 2, 1, use_bias=False)(q, v)],
        ),
    )
    yield "adaptive", lambda: branches(k, (7, 5, 3), [L.AdaptiveAveragePooling2D((3, 2)), L.AdaptiveMaxPooling2D(4)])
    yield "heads_gate", lambda: several(k, [(4, 6)], lambda q: L.MultiHeadAttention(2, 3, use_gate=True)(q, q))
    yield (
        "attention_concat",
        lambda: several(k, [(4, 3), (5, 3)], lambda q, v: L.Attention(score_mode="concat", use_scale=True)([q, v])),
    )
    yield "spectral", lambda: one(k, (5, 5, 2), L.SpectralNormalization(L.Conv2D(3, 2)))
    yield "categories", lambda: one(k, (3,), L.CategoryEncoding(5), dtype="int32")
    yield (
        "mapping",
        lambda: k.Model(
            (d := {"b": k.Input((3,), batch_size=2, name="b"), "a": k.Input((3,), batch_size=2, name="a")}),
            {"y": L.Add()([d["a"], d["b"]]), "x": L.Dense(2)(d["b"])},
        ),
    )
    yield (
        "bicubic",
        lambda: branches(
            k, (6, 5, 2), [L.UpSampling2D(2, interpolation="bicubic"), L.Resizing(4, 3, "bicubic"), L.Resizing(3, 3, antialias=True)]
        ),
    )


def second(k: Any, L: Layers) -> Iterator[tuple[str, Callable[[], Any]]]:
    """What Keras 2 alone has: functions of TensorFlow in functional models."""
    import tensorflow as tf

    yield (
        "functions",
        lambda: several(
            k,
            [(4, 3), (4, 3)],
            lambda a, b: [
                a + b,
                a - 2.0,
                3.0 * b,
                a / (b + 2),
                a**2,
                -a,
                tf.nn.relu(a),
                tf.reduce_mean(a, axis=1),
                tf.reduce_sum(a, axis=-1, keepdims=True),
                tf.reshape(a, (-1, 3)),
                tf.transpose(a, (0, 2, 1)),
                tf.concat([a, b], 1),
                tf.stack([a, b], axis=1),
                a[:, 1:3],
                a[..., 0],
                tf.expand_dims(a, 1),
                tf.squeeze(tf.expand_dims(a, 1), [1]),
                tf.nn.softmax(a),
                tf.exp(a),
                tf.sqrt(tf.abs(a)),
                tf.maximum(a, b),
                tf.clip_by_value(a, -0.5, 0.5),
                tf.matmul(a, tf.transpose(b, (0, 2, 1))),
                tf.cast(a, "int32"),
                tf.nn.l2_normalize(a, -1),
                *tf.split(a, 2, axis=1),
                tf.where(a > b, a, b),
                1.0 - a,
            ],
        ),
    )
    yield "thresholded", lambda: one(k, (5,), L.ThresholdedReLU(0.3))


FAMILIES = (convolutions, pools, shapes, plain, models, recurrent, attention)


def networks(version: int) -> Iterator[tuple[str, Any]]:
    """The networks by name."""
    keras = importlib.import_module("keras" if version == 3 else "tf_keras")
    for family in (*FAMILIES, third if version == 3 else second):
        for name, make in family(keras, keras.layers):
            keras.backend.clear_session()
            try:
                model = make()
            except (TypeError, ValueError, AttributeError) as wrong:
                print(f"Keras {version} has no {name}: {str(wrong).splitlines()[0][:100]}", file=sys.stderr)
                continue
            if model is not None:
                yield name, model


def fill(model: Any, random: np.random.Generator) -> None:
    """Random weights; variances and counts are positive."""
    values = [random.uniform(-0.6, 0.6, w.shape).astype("float32") for w in model.weights]
    for i, w in enumerate(model.weights):
        if "variance" in w.name:
            values[i] = np.abs(values[i]) + 0.5
        if str(w.dtype).startswith(("int", "<dtype: 'int")) or "count" in w.name:
            values[i] = np.ones(w.shape, "int64")
    model.set_weights(values)
    for layer in model.layers:
        if hasattr(layer, "finalize_state"):
            layer.finalize_state()


def operands(model: Any, random: np.random.Generator) -> list[np.ndarray]:
    """Random operands. Some steps of sequences are 0, which masks leave out."""
    made = []
    for given in model.inputs:
        shape = [int(d) if d is not None else 2 for d in given.shape]
        if "int" in str(given.dtype):
            made.append(random.integers(0, 5, shape).astype("int32"))
            continue
        x = random.uniform(-1, 1, shape).astype("float32")
        if len(shape) == 3 and shape[1] > 2:
            x[0, -1] = 0
            x[1, 1] = 0
        made.append(x)
    return made


def flat(value: Any) -> list[np.ndarray]:
    """The results of a model, in their order."""
    if isinstance(value, dict):
        return [r for key in sorted(value) for r in flat(value[key])]
    return [r for part in value for r in flat(part)] if isinstance(value, (list, tuple)) else [np.asarray(value)]


def recorded(version: int, folder: Path, only: list[str]) -> None:
    for name, model in networks(version):
        if only and name not in only:
            continue
        random = np.random.default_rng(zlib.crc32(name.encode()))
        fill(model, random)
        given = operands(model, random)
        arrays = {f"in{i}": x for i, x in enumerate(given)}
        names = [t.name.split(":")[0] for t in model.inputs]
        structure = model.input if isinstance(getattr(model, "input", None), dict) else None
        value = model({k: given[names.index(k)] for k in structure} if structure else given[0] if len(given) == 1 else given)
        arrays |= {f"out{i}": y for i, y in enumerate(flat(value))}
        model.save(folder / f"{name}.{version}.h5")
        if version == 3:
            model.save(folder / f"{name}.{version}.keras")
        np.savez(folder / f"{name}.{version}.npz", names=np.array(names), **arrays)


#: The networks of keras.applications with the sizes of their pictures.
APPLICATIONS = {
    "Xception": 71,
    "VGG16": 64,
    "VGG19": 64,
    "ResNet50": 64,
    "ResNet101": 64,
    "ResNet50V2": 64,
    "ResNet152V2": 64,
    "InceptionV3": 75,
    "InceptionResNetV2": 75,
    "MobileNet": 64,
    "MobileNetV2": 64,
    "MobileNetV3Small": 64,
    "MobileNetV3Large": 64,
    "DenseNet121": 64,
    "DenseNet201": 64,
    "NASNetMobile": 64,
    "EfficientNetB0": 64,
    "EfficientNetV2B0": 64,
    "EfficientNetV2S": 64,
    "ConvNeXtTiny": 64,
}


def applications(folder: Path) -> None:
    """The networks of keras.applications in both kinds of files, with random weights, and Keras's results.

    The results are those before the last softmax: with random weights it saturates, and then hides differences.
    """
    import keras

    for name, size in APPLICATIONS.items():
        keras.backend.clear_session()
        keras.utils.set_random_seed(7)
        model = getattr(keras.applications, name)(weights=None, input_shape=(size, size, 3), classes=10, classifier_activation=None)
        random = np.random.default_rng(zlib.crc32(name.encode()))
        for w in model.weights:  # Moments other than 0 and 1, so that a wrong order shows.
            if "moving" in w.name:
                low, high = (0.5, 1.5) if "variance" in w.name else (-0.1, 0.1)
                w.assign(random.uniform(low, high, w.shape).astype("float32"))
        x = random.uniform(0, 255, (1, size, size, 3)).astype("float32")
        near = np.nextafter(x, np.float32(np.inf))  # what the least change of the input does, of a network that amplifies it
        arrays = {"in0": x, "out0": np.asarray(model(x)), "near0": np.asarray(model(near))}
        np.savez(folder / f"{name}.npz", names=np.array([model.layers[0].name]), **arrays)
        model.save(folder / f"{name}.keras")
        model.save(folder / f"{name}.h5")
        print(name, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--applications", type=Path)
    args = parser.parse_args()
    if args.applications is not None:
        args.applications.mkdir(parents=True, exist_ok=True)
        applications(args.applications)
        return
    folder = args.folder or DATA.parent / "made"
    folder.mkdir(parents=True, exist_ok=True)
    for version in (3, 2):
        recorded(version, folder, args.only)
    if args.folder is None:
        with tarfile.open(DATA, "w:xz", preset=9) as archive:
            for path in sorted(folder.iterdir()):
                member = tarfile.TarInfo(path.name)
                member.size = path.stat().st_size
                archive.addfile(member, io.BytesIO(path.read_bytes()))


if __name__ == "__main__":
    main()
