"""Writes the networks under tests/frontends/tflite/data. TensorFlow is needed (2.21 made the committed files).

    scripts/tflite_networks.py [FOLDER]

Weights are random. Each normalisation gets the moments of its data. TensorFlow's calibration finds the ranges of
activations on the same pictures and sounds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

DATA = Path(__file__).resolve().parent.parent / "tests" / "frontends" / "tflite" / "data"
layers = tf.keras.layers


def smooth(count: int, *shape: int) -> np.ndarray:
    """Waves of random directions, from -1 to 1."""
    random = np.random.default_rng(3)
    places = np.meshgrid(*[np.linspace(0, 1, n) for n in shape], indexing="ij")
    made = [np.sin(sum(random.uniform(0, 12) * p for p in places) + random.uniform(0, 6)) for _ in range(3 * count)]
    return np.reshape(made, (count, 3, *shape)).mean(1).astype("float32")


def mobilenet() -> Any:
    """MobileNet v1 of a quarter of the width, 96 x 96, with half of its repeated blocks and two classes."""
    x = given = layers.Input((96, 96, 3), batch_size=1)
    x = _block(x, lambda: layers.Conv2D(8, 3, strides=2, padding="same", use_bias=False))
    for width, stride in (
        (16, 1),
        (32, 2),
        (32, 1),
        (64, 2),
        (64, 1),
        (128, 2),
        (128, 1),
        (128, 1),
        (256, 2),
        (256, 1),
    ):
        x = _block(x, lambda s=stride: layers.DepthwiseConv2D(3, strides=s, padding="same", use_bias=False))
        x = _block(x, lambda w=width: layers.Conv2D(w, 1, use_bias=False))
    x = layers.GlobalAveragePooling2D()(x)
    return tf.keras.Model(given, layers.Dense(2, activation="softmax")(x))


def keywords() -> Any:
    """A keyword spotter of separable convolutions (DS-CNN): 49 frames of 10 coefficients, 12 words."""
    x = given = layers.Input((49, 10, 1), batch_size=1)
    x = _block(x, lambda: layers.Conv2D(64, (10, 4), strides=(2, 2), padding="same", use_bias=False))
    for _ in range(4):
        x = _block(x, lambda: layers.DepthwiseConv2D(3, padding="same", use_bias=False))
        x = _block(x, lambda: layers.Conv2D(64, 1, use_bias=False))
    x = layers.AveragePooling2D((25, 5))(x)
    return tf.keras.Model(given, layers.Dense(12, activation="softmax")(layers.Flatten()(x)))


def _block(x: Any, layer: Callable[[], Any]) -> Any:
    return layers.ReLU(6.0)(layers.BatchNormalization(momentum=0.0)(layer()(x)))


def convert(model: Any, data: np.ndarray) -> bytes:
    """The file of a network, with int8 operands and results."""
    model(data, training=True)  # moments of the normalisations

    def examples() -> Iterator[list[np.ndarray]]:
        for row in data:
            yield [row[None]]

    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = examples
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    converter.inference_input_type = converter.inference_output_type = tf.int8
    found: bytes = converter.convert()
    return found


def both_ways() -> Any:
    """Two recurrent layers in both directions, which become loops over lists of steps."""
    x = given = layers.Input((5, 4), batch_size=1)
    x = layers.Bidirectional(layers.LSTM(6, return_sequences=True))(x)
    return tf.keras.Model(given, layers.Dense(3)(layers.GRU(5)(x)))


def segments() -> Any:
    """Halves and doubles a picture, with a path around that."""
    given = layers.Input((16, 16, 3), batch_size=1)
    x = layers.Conv2D(16, 3, padding="same", activation="relu")(given)
    y = layers.SeparableConv2D(24, 3, strides=2, padding="same", activation="relu6")(x)
    y = layers.Conv2DTranspose(16, 3, strides=2, padding="same")(y)
    return tf.keras.Model(given, layers.Conv2D(2, 1, activation="sigmoid")(layers.Concatenate()([x, y])))


class Counter(tf.Module):  # type: ignore[misc]
    """Sums its operands up; the variables live from call to call."""

    def __init__(self) -> None:
        self.sum, self.count = tf.Variable([1.0, 2.0, 3.0]), tf.Variable(0.0)

    @tf.function(input_signature=[tf.TensorSpec([3], tf.float32)])  # type: ignore[misc]
    def step(self, x: Any) -> Any:
        """The mean; large sums are halved."""
        self.sum.assign_add(x)
        self.count.assign_add(1.0)
        if tf.reduce_sum(self.sum) > 4.0:
            self.sum.assign(self.sum * 0.5)
        return self.sum / self.count


def plain() -> Iterator[tuple[str, bytes]]:
    """Networks without a calibration, by name."""
    yield "loops", tf.lite.TFLiteConverter.from_keras_model(both_ways()).convert()
    rounded = tf.lite.TFLiteConverter.from_keras_model(segments())
    rounded.optimizations = [tf.lite.Optimize.DEFAULT]
    yield "rounded", rounded.convert()
    counter = Counter()
    kept = tf.lite.TFLiteConverter.from_concrete_functions([counter.step.get_concrete_function()], counter)
    kept.experimental_enable_resource_variables = True
    yield "variables", kept.convert()


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else DATA
    tf.keras.utils.set_random_seed(5)
    made = {"mobilenet_int8": (mobilenet(), (96, 96, 3)), "keywords_int8": (keywords(), (49, 10, 1))}
    for name, (model, shape) in made.items():
        (folder / f"{name}.tflite").write_bytes(convert(model, smooth(24, *shape)))
    for name, data in plain():
        (folder / f"{name}.tflite").write_bytes(data)


if __name__ == "__main__":
    main()
