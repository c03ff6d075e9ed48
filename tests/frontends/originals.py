"""Inputs of the real networks, what their own runtimes compute for them, and the difference to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from relaylang.ir import Call, Constant, Function, IRModule, TensorType, Tuple, TupleGetItem, Var, post_order

#: The shapes of inputs of each ONNX network: those that `--shape` gets, and others that the network takes, too.
#: A number stands for itself.
_ONNX: dict[str, dict[str, tuple[Any, Any]]] = {
    "ch_PP-OCRv4_det_infer.onnx": {"x": ((1, 3, 64, 96), (2, 3, 96, 64))},
    "ch_PP-OCRv4_rec_infer.onnx": {"x": ((1, 3, 48, 80), (2, 3, 48, 112))},
    "ch_ppocr_mobile_v2.0_cls_infer.onnx": {"x": ((1, 3, 48, 192), (3, 3, 48, 192))},
    "silero_vad.onnx": {"input": ((1, 576), (3, 576)), "state": ((2, 1, 128), (2, 3, 128)), "sr": (16000, 16000)},
    "silero_vad_16k_op15.onnx": {"input": ((1, 576), (3, 576)), "state": ((2, 1, 128), (2, 3, 128)), "sr": (16000, 16000)},
    "silero_vad_16k_sequence.onnx": {"input": ((5, 576), (9, 576)), "h": ((1, 1, 128),) * 2, "c": ((1, 1, 128),) * 2},
    "silero_vad_half.onnx": {"input": ((1, 576), (3, 576)), "state": ((2, 1, 128), (2, 3, 128))},
    "silero_vad_op18_ifless.onnx": {"input": ((1, 576), (3, 576)), "state": ((2, 1, 128), (2, 3, 128)), "sr": (16000, 16000)},
    "silero_vad_openvino_16k.onnx": {"input": ((1, 576),) * 2, "state": ((2, 1, 128),) * 2},
}


def feed(name: str, other: bool = False) -> dict[str, np.ndarray]:
    """Arrays for the inputs of an ONNX network, the same in every run; `other` gives them other extents."""
    random = np.random.default_rng(0)

    def values(shape: Any) -> np.ndarray:
        if isinstance(shape, int):
            return np.array(shape, "int64")
        return page(shape, random) if len(shape) == 4 else (0.1 * random.normal(size=shape)).astype("float32")

    return {key: values(shapes[other]) for key, shapes in _ONNX[name].items()}


def page(shape: tuple[int, ...], random: np.random.Generator) -> np.ndarray:
    """Images with a line of dark marks on white. On mere noise, text detection gives nearly 0 everywhere."""
    count, _, height, width = shape
    marks = random.random((count, 1, height // 12, (width - 16) // 3)) < 0.5
    marks = np.repeat(np.repeat(marks, 6, 2), 3, 3)
    image = np.full(shape, 1.5)
    top = height // 4
    image[:, :, top : top + marks.shape[2], 8 : 8 + marks.shape[3]] = np.where(marks, -1.5, 1.5)
    return (image + 0.1 * random.normal(size=shape)).astype("float32")


def onnx_outputs(data: bytes, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    """The outputs of an ONNX model in onnxruntime, on one thread."""
    runtime = pytest.importorskip("onnxruntime")
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = runtime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    return [np.asarray(x) for x in session.run(None, inputs)]


def tflite_outputs(data: bytes, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The outputs of a TFLite model in LiteRT, on one thread, and without its accelerator's kernels where that works."""
    litert = pytest.importorskip("ai_edge_litert.interpreter")
    plain = litert.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    try:
        machine = litert.Interpreter(model_content=data, num_threads=1, experimental_op_resolver_type=plain)
        machine.allocate_tensors()
    except RuntimeError:  # a custom operator that the accelerator alone has
        machine = litert.Interpreter(model_content=data, num_threads=1)
    machine.allocate_tensors()
    for detail, value in zip(machine.get_input_details(), inputs):
        machine.set_tensor(detail["index"], value)
    machine.invoke()
    return [np.array(machine.get_tensor(d["index"])) for d in machine.get_output_details()]


def known(name: str, data: bytes) -> tuple[dict[str, np.ndarray], list[np.ndarray] | str]:
    """Inputs of a network and its runtime's outputs, or the reason why the runtime gives none."""
    if name.endswith(".onnx"):
        return feed(name), onnx_outputs(data, feed(name))
    inputs = tflite_feed(data)
    try:
        return inputs, tflite_outputs(data, list(inputs.values()))
    except (RuntimeError, ValueError):
        return inputs, "LiteRT refuses"


def tflite_feed(data: bytes) -> dict[str, np.ndarray]:
    """Arrays for the inputs of a TFLite model, by the names of its tensors, the same in every run."""
    model = pytest.importorskip("tflite").Model.GetRootAsModel(data, 0)
    graph = model.Subgraphs(0)
    tensors = [graph.Tensors(graph.Inputs(i)) for i in range(graph.InputsLength())]
    return {t.Name().decode(): picture(t.ShapeAsNumpy()) for t in tensors}


def picture(shape: Sequence[int]) -> np.ndarray:
    """Smooth numbers from 0 to 1: on noise, networks for pictures enlarge errors of rounding a thousandfold."""
    places = np.meshgrid(*[np.linspace(0, 1 + 0.7 * i, n) for i, n in enumerate(shape)], indexing="ij")
    waves: np.ndarray = 0.5 + 0.5 * np.sin(sum((3 + 2 * i) * p for i, p in enumerate(places)))
    return waves.astype("float32")


def difference(found: Sequence[Any], wanted: Sequence[Any]) -> float:
    """The largest difference of two lists of outputs, relative to the largest value of each wanted one."""
    assert len(found) == len(wanted), f"{len(found)} outputs, not {len(wanted)}"
    worst = 0.0
    for f, w in zip(found, wanted):
        f, w = np.asarray(f), np.asarray(w)
        assert f.shape == w.shape, f"the shape {f.shape}, not {w.shape}"
        assert f.dtype == w.dtype, f"the element type {f.dtype}, not {w.dtype}"
        if w.size:
            apart = np.abs(f.astype("float64") - w.astype("float64")).max()
            worst = max(worst, float(apart / (np.abs(w.astype("float64")).max() or 1.0)))
    return worst


def in_double(mod: IRModule) -> IRModule:
    """The program of one function with float64 in the place of float32, to tell whose rounding is which."""
    main, made = mod["main"], {}
    params = [Var(p.name_hint, TensorType(p.checked_type.shape, "float64")) for p in main.params]
    made.update(zip(main.params, params))
    for node in post_order(main.body):
        match node:
            case Constant(data):
                made[node] = Constant(data.astype("float64") if data.dtype == np.float32 else data)
            case Call(op, args, attrs):
                made[node] = Call(op, [made[a] for a in args], attrs)
            case Tuple(fields):
                made[node] = Tuple([made[f] for f in fields])
            case TupleGetItem(value, index):
                made[node] = TupleGetItem(made[value], index)
            case _:
                made.setdefault(node, node)
    return IRModule.from_expr(Function(params, made[main.body]))
