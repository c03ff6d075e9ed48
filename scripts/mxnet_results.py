"""Writes what MXNet computes for the cases of tests/frontends/mxnet: tests/frontends/mxnet/data.

    scripts/mxnet_results.py [FOLDER]
    scripts/mxnet_results.py --zoo FOLDER    the classifiers of Gluon's model zoo, too large to be committed

It needs an environment of its own, with Python 3.11 and `pip install --no-deps mxnet==1.9.1 numpy==1.23.5`, and
`pip install requests graphviz`. MXNet runs its own kernels there.
"""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
warnings.filterwarnings("ignore")
#: MXNet 1.9 uses the names that numpy had for Python's own types.
for _name, _kind in (("bool", bool), ("object", object), ("int", int), ("float", float)):
    if _name not in np.__dict__:
        setattr(np, _name, _kind)

os.environ |= {"MXNET_SUBGRAPH_BACKEND": "NONE", "MXNET_STORAGE_FALLBACK_LOG_VERBOSE": "0"}

import mxnet as mx  # noqa: E402

from tests.frontends.mxnet.cases import Case, cases  # noqa: E402


def results(symbol: Any, values: dict[str, np.ndarray]) -> list[np.ndarray]:
    """The outputs of a symbol for its variables' values."""
    arrays = {name: mx.nd.array(value, dtype=value.dtype) for name, value in values.items()}
    states = {name: arrays[name] for name in symbol.list_auxiliary_states()}
    bound = symbol.bind(mx.cpu(), {name: arrays[name] for name in symbol.list_arguments()}, aux_states=states)
    return [output.asnumpy() for output in bound.forward(is_train=False)]


def layer(case: Case) -> list[np.ndarray]:
    """A case's results, in which two runs agree: at times MXNet reads memory that it does not own."""
    before: list[np.ndarray] = []
    for _ in range(5):
        with mx.util.np_shape(case.op.startswith("_np")):
            found = results(mx.sym.load_json(case.symbol()), {f"x{i}": x for i, x in enumerate(case.inputs)})
        if before and all(np.array_equal(a, b, equal_nan=True) for a, b in zip(before, found)):
            return found
        before = found
    raise RuntimeError("its results differ from run to run")


def layers(names: Iterable[str]) -> dict[str, np.ndarray]:
    """The results of cases by name and number, of those that MXNet computes."""
    found: dict[str, np.ndarray] = {}
    for name in names:
        try:
            found.update({f"{name}/{i}": value for i, value in enumerate(layer(cases()[name]))})
        except Exception as wrong:
            print(f"{name}: {str(wrong).splitlines()[-1][:160]}", flush=True)
    return found


def apart(names: Sequence[str], folder: Path, mkldnn: str) -> dict[str, np.ndarray]:
    """The results of cases, from a process of their own. One that ends by a fault of memory gives its cases to two others."""
    place = folder / "part.npz"
    place.unlink(missing_ok=True)
    call = [sys.executable, __file__, "--some", str(place), *names]
    subprocess.run(call, env={**os.environ, "MXNET_MKLDNN_ENABLED": mkldnn}, check=False)
    if place.exists():
        with np.load(place) as data:
            found = {name: data[name] for name in data.files}
        place.unlink()
        return found
    if len(names) == 1:
        print(f"{names[0]}: MXNet ends by a fault", flush=True)
        return {}
    half = len(names) // 2
    return {**apart(names[:half], folder, mkldnn), **apart(names[half:], folder, mkldnn)}


def _random(symbol: Any, seed: int, **shapes: tuple[int, ...]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Weights and states of a symbol."""
    rng = np.random.RandomState(seed)
    sizes, _, states = symbol.infer_shape(**shapes)
    args = dict(zip(symbol.list_arguments(), sizes))
    made = {n: rng.uniform(0.5, 1.5, s) if "gamma" in n else rng.normal(size=s) * 0.3 for n, s in args.items() if n not in shapes}
    own = {n: rng.uniform(0.5, 1.5, s) for n, s in zip(symbol.list_auxiliary_states(), states)}
    return {n: mx.nd.array(v) for n, v in made.items()}, {n: mx.nd.array(v) for n, v in own.items()}


def _images() -> Any:
    """Convolutions with normalisation, a sum, a pool, and a dense layer."""
    x = mx.sym.Convolution(mx.sym.var("data"), kernel=(3, 3), num_filter=8, pad=(1, 1), name="c0")
    x = mx.sym.Activation(mx.sym.BatchNorm(x, name="b0", fix_gamma=False), act_type="relu", name="r0")
    pooled = mx.sym.Pooling(x, kernel=(2, 2), stride=(2, 2), pool_type="max", name="p0")
    x = mx.sym.Convolution(pooled, kernel=(3, 3), num_filter=8, pad=(1, 1), no_bias=True, name="c1")
    x = mx.sym.Activation(mx.sym.BatchNorm(x, name="b1") + pooled, act_type="relu", name="r1")
    return mx.sym.FullyConnected(mx.sym.Flatten(mx.sym.Concat(x, pooled, dim=1)), num_hidden=10, name="fc")


def _quantised(data: np.ndarray) -> Any:
    """The images' network in whole numbers. Its data are a quarter of the range: without VNNI, oneDNN's sums overflow."""
    symbol = _images().get_backend_symbol("MKLDNN_QUANTIZE")
    args, states = _random(_images(), 1, data=data.shape)
    made, args, states = mx.contrib.quantization.quantize_model(
        symbol,
        args,
        states,
        calib_mode="naive",
        calib_data=mx.io.NDArrayIter(data=data * 4, batch_size=2),
        num_calib_examples=2,
        quantized_dtype="auto",
        ctx=mx.cpu(),
        label_names=None,
    )
    return made.get_backend_symbol("MKLDNN_QUANTIZE"), args, states


def _quantised_blocks() -> tuple[Any, dict[str, Any], dict[str, Any], np.ndarray]:
    """A network of Gluon with calibrated layers and data over the whole range, which needs a processor with VNNI."""
    mx.random.seed(1)
    np.random.seed(1)
    data = np.random.normal(size=(4, 3, 16, 16)).astype("float32")
    nn, net = mx.gluon.nn, mx.gluon.nn.HybridSequential()
    net.add(nn.Conv2D(8, 3, padding=1), nn.BatchNorm(), nn.Activation("relu"), nn.MaxPool2D(2), nn.Conv2D(12, 3, strides=2))
    net.add(nn.Activation("relu"), nn.GlobalAvgPool2D(), nn.Flatten(), nn.Dense(10))
    net.initialize(mx.init.Xavier())
    net(mx.nd.array(data))
    symbol, parameters = net(mx.sym.var("data")), net.collect_params()
    args = {name: parameters[name].data() for name in symbol.list_arguments() if name != "data"}
    states = {name: parameters[name].data() for name in symbol.list_auxiliary_states()}
    made, args, states = mx.contrib.quantization.quantize_model(
        symbol.get_backend_symbol("MKLDNN_QUANTIZE"),
        args,
        states,
        calib_mode="naive",
        calib_data=mx.io.NDArrayIter(data=data, batch_size=4),
        num_calib_examples=4,
        quantized_dtype="auto",
        ctx=mx.cpu(),
        label_names=None,
    )
    return made.get_backend_symbol("MKLDNN_QUANTIZE"), args, states, data


def _cell() -> Any:
    """Steps of an LSTM cell, whose first states have an open extent."""
    outputs, states = mx.rnn.LSTMCell(5, prefix="cell_").unroll(3, mx.sym.var("data"), layout="NTC", merge_outputs=True)
    return mx.sym.Group([outputs, *states])


def _loops() -> dict[str, Any]:
    data, first, fixed = mx.sym.var("data"), mx.sym.var("first"), mx.sym.var("fixed")

    def body(x: Any, state: Any) -> Any:
        now = mx.sym.broadcast_add(x * 0.5, state[0]) * fixed
        return [now, x + 1], [now]

    rows, last = mx.sym.contrib.foreach(body, data, [first])

    def turn(i: Any, total: Any) -> Any:
        return total * 0.5, [i + 1, total + fixed]

    stacked, values = mx.sym.contrib.while_loop(lambda i, total: i < 4, turn, [mx.sym.var("i"), first], max_iterations=6)
    chosen = mx.sym.contrib.cond(mx.sym.var("i") < 2, lambda: first * 2 + fixed, lambda: first - fixed)
    return {
        "foreach": mx.sym.Group([*rows, *last]),
        "while_loop": mx.sym.Group([mx.sym.slice_axis(stacked[0], axis=0, begin=0, end=3), *values]),
        "cond": chosen[0] if isinstance(chosen, list) else chosen,
    }


def networks(folder: Path) -> None:
    """Writes networks with their weights and results."""
    rng = np.random.RandomState(5)
    images = rng.uniform(0, 0.25, (2, 3, 8, 8)).astype("float32")
    steps = {"data": rng.normal(size=(2, 3, 4)).astype("float32")}
    loops = {"data": rng.normal(size=(4, 2, 3)), "first": rng.normal(size=(2, 3)), "fixed": rng.normal(size=(2, 3)), "i": np.ones(1)}
    given = {name: value.astype("float32") for name, value in loops.items()}
    *blocks, data = _quantised_blocks()
    made: dict[str, Any] = {
        "quantised_blocks": (*blocks, {"data": data}),
        "quantised": (*_quantised(images), {"data": images}),
        "fused": (_images().get_backend_symbol("MKLDNN"), *_random(_images(), 1, data=images.shape), {"data": images}),
        "cell": (_cell(), *_random(_cell(), 2, data=(2, 3, 4)), steps),
    }
    for name, symbol in _loops().items():
        made[name] = (symbol, {}, {}, {n: v for n, v in given.items() if n in symbol.list_arguments()})
    for name, (symbol, args, states, inputs) in made.items():
        values = {**{n: v.asnumpy() for n, v in {**args, **states}.items()}, **inputs}
        wanted = (*symbol.list_arguments(), *symbol.list_auxiliary_states())
        outputs = results(symbol, {n: v for n, v in values.items() if n in wanted})
        symbol.save(str(folder / f"{name}-symbol.json"))
        if args:
            saved = {**{f"arg:{n}": v for n, v in args.items()}, **{f"aux:{n}": v for n, v in states.items()}}
            mx.nd.save(str(folder / f"{name}-0000.params"), saved)
        np.savez_compressed(folder / f"{name}.npz", **inputs, **{f"output{i}": v for i, v in enumerate(outputs)})
        print(f"{name}: {[v.shape for v in outputs]}", flush=True)


#: The classifiers of Gluon's model zoo.
ZOO = (
    *(f"resnet{depth}_v{version}" for depth in (18, 34, 50, 101, 152) for version in (1, 2)),
    *(f"vgg{depth}{norm}" for depth in (11, 13, 16, 19) for norm in ("", "_bn")),
    *(f"densenet{depth}" for depth in (121, 161, 169, 201)),
    *(f"mobilenet{version}{width}" for version in ("", "v2_") for width in ("1.0", "0.75", "0.5", "0.25")),
    *("alexnet", "inceptionv3", "squeezenet1.0", "squeezenet1.1"),
)


def zoo(folder: Path) -> None:
    """The classifiers of Gluon's model zoo as `export` writes them, with random weights and moments, and MXNet's results."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ZOO:
        mx.random.seed(7)
        rng = np.random.RandomState(7)
        net = mx.gluon.model_zoo.vision.get_model(name, classes=10)
        net.initialize(mx.init.Xavier())
        net.hybridize()
        x = rng.normal(size=(1, 3, *[299 if name == "inceptionv3" else 224] * 2)).astype("float32")
        net(mx.nd.array(x))
        for key, parameter in net.collect_params().items():
            if key.endswith(("running_mean", "running_var")):
                low, high = (0.5, 1.5) if key.endswith("var") else (-0.1, 0.1)
                parameter.set_data(mx.nd.array(rng.uniform(low, high, parameter.shape)))
        y = net(mx.nd.array(x)).asnumpy()
        net.export(str(folder / name))
        np.savez(folder / f"{name}.npz", data=x, output0=y)
        print(f"{name}: {np.abs(y).max():.3g}", flush=True)


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    names = list(cases())
    found: dict[str, np.ndarray] = {}
    for start in range(0, len(names), 40):
        found.update(apart(names[start : start + 40], folder, "1"))
    # oneDNN's kernels refuse a few layers, which MXNet's own compute.
    found.update(apart([name for name in names if f"{name}/0" not in found], folder, "0"))
    np.savez_compressed(folder / "layers.npz", **found)
    subprocess.run([sys.executable, __file__, "--networks", str(folder)], check=True)
    print(f"{len(found)} results, {os.path.getsize(folder / 'layers.npz')} bytes", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--networks"]:
        networks(Path(sys.argv[2]))
        os._exit(0)
    if sys.argv[1:2] == ["--zoo"]:
        zoo(Path(sys.argv[2]))
        os._exit(0)
    if sys.argv[1:2] == ["--some"]:
        np.savez(sys.argv[2], **layers(sys.argv[3:]))
        os._exit(0)  # the end of a process is a fault of memory in MXNet, too
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "tests" / "frontends" / "mxnet" / "data")
