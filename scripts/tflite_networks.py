"""Writes the int8 networks under tests/frontends/tflite/data. TensorFlow is needed (2.21 made the committed files).

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
    for width, stride in ((16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2), (128, 1), (128, 1), (256, 2), (256, 1)):
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


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else DATA
    tf.keras.utils.set_random_seed(5)
    made = {"mobilenet_int8": (mobilenet(), (96, 96, 3)), "keywords_int8": (keywords(), (49, 10, 1))}
    for name, (model, shape) in made.items():
        (folder / f"{name}.tflite").write_bytes(convert(model, smooth(24, *shape)))


if __name__ == "__main__":
    main()
