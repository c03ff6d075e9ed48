"""Records small networks and what TensorFlow computes with them, in an environment with TensorFlow 2:

    python tests/frontends/tensorflow/record_networks.py

It writes `networks.tar.xz` beside itself: a SavedModel or a graph for each, and `networks.npz` with inputs and outputs.
"""

from __future__ import annotations

import os
import tarfile
import tempfile
from pathlib import Path
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

FOLDER = Path(tempfile.mkdtemp())
keras, layers = tf.keras, tf.keras.layers
ARRAYS: dict[str, np.ndarray] = {}


def put(name: str, inputs: dict[str, np.ndarray], outputs: dict[str, Any]) -> None:
    ARRAYS.update({f"{name}/in/{k}": v for k, v in inputs.items()})
    ARRAYS.update({f"{name}/out/{k}": np.asarray(v) for k, v in outputs.items()})


def inputs(**shapes: tuple[int, ...]) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    return {name: rng.normal(size=shape).astype("float32") for name, shape in shapes.items()}


def saved(name: str, module: Any, given: dict[str, np.ndarray], signature: Any) -> None:
    """A SavedModel without what the importer does not read, and its own results by the signature."""
    folder = FOLDER / name
    tf.saved_model.save(module, str(folder), signatures=signature)
    loaded = tf.saved_model.load(str(folder))
    function = loaded.signatures["serving_default"]
    put(name, given, function(**{k: tf.constant(v) for k, v in given.items()}))


def keras_network(name: str, net: Any, given: dict[str, np.ndarray]) -> None:
    rng = np.random.default_rng(5)
    for weight in net.weights:
        low = 0.5 if "variance" in weight.path else -0.5
        weight.assign(rng.uniform(low, 1.0 if low > 0 else 0.5, weight.shape).astype("float32"))
    (x,) = given.values()
    function = tf.function(lambda inputs: {"result": net(inputs, training=False)})
    saved(name, net, given, function.get_concrete_function(tf.TensorSpec(x.shape, "float32", name="inputs")))


class Stateless(tf.Module):
    """Two inputs, three results in the order of their names, a captured constant, a table of rows."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = tf.Variable(np.arange(12, dtype="float32").reshape(4, 3) / 7, name="rows")
        self.scale = tf.Variable(1.5, name="scale")
        self.half = tf.Variable(np.linspace(-1, 1, 3).astype("float16"), name="half")
        self.captured = tf.constant(np.linspace(0, 1, 300, dtype="float32"))

    @tf.function(input_signature=[tf.TensorSpec((2,), "int32", name="at"), tf.TensorSpec((None, 3), "float32", name="x")])
    def run(self, at: Any, x: Any) -> Any:
        picked = tf.nn.embedding_lookup(self.rows, at)
        return {
            "result_10": tf.reduce_sum(picked, 0) + x,
            "result_9": x * self.scale + tf.reduce_sum(self.captured),
            "narrow": tf.cast(x, "float16") + self.half,
        }


def old_graph() -> None:
    """A SavedModel of TensorFlow 1: variables without resources, and a signature."""
    v1 = tf.compat.v1
    folder = FOLDER / "old"
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder("float32", (2, 3), name="x")
        rng = np.random.default_rng(2)
        w = v1.get_variable("layer/w", initializer=rng.normal(size=(3, 4)).astype("float32"), use_resource=False)
        b = v1.get_variable("layer/b", initializer=rng.normal(size=4).astype("float32"), use_resource=True)
        y = tf.nn.relu(tf.matmul(x, w) + b, name="y")
        session.run(v1.global_variables_initializer())
        v1.saved_model.simple_save(session, str(folder), {"x": x}, {"y": y})
        given = inputs(x=(2, 3))
        put("old", given, {"y": session.run(y, {x: given["x"]})})


def frozen(name: str, function: Any, given: dict[str, np.ndarray], lower: bool = True) -> None:
    """A graph with constants for its variables; `lower` makes frames of the functions of its loops."""
    concrete = tf.function(function).get_concrete_function(*[tf.TensorSpec(v.shape, v.dtype, name=k) for k, v in given.items()])
    graph = convert_variables_to_constants_v2(concrete, lower_control_flow=lower).graph.as_graph_def()
    (FOLDER / f"{name}.pb").write_bytes(graph.SerializeToString())
    results = concrete(*[tf.constant(v) for v in given.values()])
    results = results if isinstance(results, (list, tuple)) else [results]
    put(name, given, {str(i): r for i, r in enumerate(results)})


def main() -> None:
    keras.utils.set_random_seed(1)
    block = [
        layers.Conv2D(4, 3, padding="same", strides=2),
        layers.BatchNormalization(),
        layers.ReLU(max_value=6),
        layers.DepthwiseConv2D(3, padding="valid"),
        layers.Activation("swish"),
        layers.MaxPool2D(),
        layers.UpSampling2D(),
        layers.Conv2DTranspose(3, 3, strides=2, padding="same"),
        layers.GlobalAveragePooling2D(),
        layers.Dense(5, activation="softmax"),
    ]
    keras_network("convolutions", keras.Sequential([keras.Input((12, 14, 3), batch_size=2), *block]), inputs(inputs=(2, 12, 14, 3)))
    for kind in (layers.LSTM, layers.GRU, layers.SimpleRNN):
        for steps in (5, 40):
            net = keras.Sequential([keras.Input((steps, 3), batch_size=2), kind(4, return_sequences=steps == 5), layers.Dense(2)])
            keras_network(f"{kind.__name__.lower()}_{steps}", net, inputs(inputs=(2, steps, 3)))
    both = keras.Sequential(
        [
            keras.Input((6, 3), batch_size=2),
            layers.Bidirectional(layers.LSTM(3, return_sequences=True)),
            layers.LayerNormalization(),
        ]
    )
    keras_network("both_ways", both, inputs(inputs=(2, 6, 3)))
    x = keras.Input((6, 8), batch_size=2)
    attended = layers.MultiHeadAttention(2, 4)(x, x)
    y = layers.LayerNormalization()(x + attended)
    y = layers.Dense(8)(layers.Dense(16, activation="gelu")(y)) + y
    keras_network("attention", keras.Model(x, y), inputs(inputs=(2, 6, 8)))
    module = Stateless()
    saved("signature", module, {"at": np.array([3, 1], "int32"), **inputs(x=(4, 3))}, module.run)
    old_graph()
    rng = np.random.default_rng(4)
    w = tf.constant(rng.normal(size=(3, 4)).astype("float32"))
    rounded = tf.quantization.fake_quant_with_min_max_args
    frozen("quantised", lambda x: rounded(tf.matmul(rounded(x, -2.0, 2.0), rounded(w, -1.0, 1.0)), -4.0, 4.0), inputs(x=(5, 3)))

    def branches(x: Any) -> Any:
        total = tf.reduce_sum(x)
        while tf.reduce_sum(tf.abs(x)) > 0.5:
            x = tf.cond(total > 0, lambda y=x: y * 0.5, lambda y=x: y * 0.25)
        return [x, total]

    net = keras.Sequential([keras.Input((40, 3), batch_size=2), layers.LSTM(4), layers.Dense(2)])
    for lower in (False, True):
        frozen("lstm_frames" if lower else "lstm_functions", lambda x, net=net: net(x), inputs(x=(2, 40, 3)), lower)
    frozen("branches", tf.autograph.to_graph(branches), inputs(x=(2, 3)))
    np.savez(FOLDER / "networks.npz", **ARRAYS)
    made = Path(__file__).resolve().parent / "networks.tar.xz"
    with tarfile.open(made, "w:xz", preset=9) as archive:
        for file in sorted(f for f in FOLDER.rglob("*") if f.is_file() and f.name != "fingerprint.pb"):
            entry = tarfile.TarInfo(str(file.relative_to(FOLDER)))
            entry.size = file.stat().st_size
            with file.open("rb") as stream:
                archive.addfile(entry, stream)
    print(made.stat().st_size // 1024, "KiB")


if __name__ == "__main__":
    main()
