"""Networks of `keras.applications` with random weights, as a SavedModel and as a frozen graph.

Usage:

    python tests/frontends/tensorflow/applications.py make MobileNetV2 FOLDER   # in an environment with TensorFlow 2
    .venv/bin/python -P tests/frontends/tensorflow/applications.py check FOLDER # compiles both, and prints the relative errors
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

SIZE = 128


def make(name: str, folder: Path) -> None:
    """The network, an input and TensorFlow's output; its statistics of batches are random, so that they count."""
    import tensorflow as tf
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    tf.keras.utils.set_random_seed(1)
    net = getattr(tf.keras.applications, name)(weights=None, input_shape=(SIZE, SIZE, 3))
    rng = np.random.default_rng(7)
    for weight in net.weights:
        if "moving_" in weight.path:
            spread = rng.uniform(0.8, 1.25, weight.shape)
            weight.assign(spread if weight.path.endswith("variance") else rng.normal(0, 0.05, weight.shape))
    x = rng.uniform(-1, 1, (1, SIZE, SIZE, 3)).astype("float32")
    x = (x + 1) * 127 if "EfficientNet" in name else x
    function = tf.function(lambda t: net(t, training=False)).get_concrete_function(tf.TensorSpec(x.shape, "float32"))
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / "results.npz", x=x, y=function(tf.constant(x)).numpy())
    (folder / "frozen.pb").write_bytes(convert_variables_to_constants_v2(function).graph.as_graph_def().SerializeToString())
    net.export(str(folder / "saved"), input_signature=[tf.TensorSpec(x.shape, "float32")], verbose=False)


def check(folder: Path) -> None:
    """The relative errors of both, compiled."""
    from relaylang.backends import compile_module
    from relaylang.frontends.tensorflow import import_tensorflow

    arrays = np.load(folder / "results.npz")
    for part in ("saved", "frozen.pb"):
        program = compile_module(import_tensorflow(str(folder / part)).module, "c")
        found = np.asarray(program.run(arrays["x"]))
        print(part, np.abs(found - arrays["y"]).max() / np.abs(arrays["y"]).max())


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(sys.argv[2], Path(sys.argv[3]))
    else:
        check(Path(sys.argv[2]))
