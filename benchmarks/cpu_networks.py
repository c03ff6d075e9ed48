"""The networks of the processor benchmark: each as a Relay program, and as the ONNX model that other runtimes get."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from benchmarks.cpu_graphs import GRAPHS
from relaylang.export import export_onnx
from relaylang.frontends.formats import import_bytes
from relaylang.frontends.options import Options
from relaylang.ir import Call, Function, IRModule
from relaylang.ir.binding import bind_params
from relaylang.ops.record import Op
from relaylang.passes.quantize.fake_quantization_to_integer import FakeQuantizationToInteger
from relaylang.runtime.random import random_params
from relaylang.syntax import parse
from relaylang.typing import check
from tests.frontends import networks, originals
from tests.shared import SHARED

try:
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process
except ImportError:
    CalibrationDataReader = object


class Absent(Exception):
    """The network cannot be made on this machine; the message states the reason."""


@dataclass(frozen=True)
class Case:
    """A network. `inputs` are arrays by name, in the order of parameters; `params` the weights that are no constants."""

    module: IRModule
    model: bytes
    inputs: dict[str, np.ndarray]
    params: Mapping[str, np.ndarray] = field(default_factory=dict)


def golden(name: str) -> Case:
    """A classic network of the shared texts, without a softmax at its end, which would hide differences."""
    path = SHARED / "golden" / f"{name}.typed.relay"
    if not path.is_file():
        raise Absent(f"no text {path}; RELAY_SHARED names its folder")
    mod = parse(path.read_text(encoding="utf-8")).module
    assert mod is not None
    main = mod["main"]
    match main.body:
        case Call(Op(name="nn.softmax"), [logits]):
            mod = IRModule.from_expr(Function(main.params, logits))
    check(mod)
    values = random_params(0, mod["main"].params)
    data = mod["main"].params[0].name_hint
    # Random convolutions have the variance 1 / fan-in; before rectifiers, twice that keeps the size of activations.
    params = {k: v * np.float32(2**0.5) if v.ndim == 4 else v for k, v in values.items() if k != data}
    bound = bind_params(mod, params)
    check(bound)
    return Case(mod, bytes(export_onnx(bound).SerializeToString()), {data: values[data]}, params)


def imported(model: bytes, inputs: dict[str, np.ndarray]) -> Case:
    """An ONNX model. Its inputs get the extents of the arrays."""
    proto = onnx.load_from_string(model)
    for info in proto.graph.input:
        if info.name in inputs:
            shape = info.type.tensor_type.shape
            del shape.dim[:]
            for extent in inputs[info.name].shape:
                shape.dim.add().dim_value = extent
    del proto.graph.value_info[:]
    for info in proto.graph.output:
        info.type.tensor_type.ClearField("shape")
    model = proto.SerializeToString()
    made = import_bytes(model, "network.onnx", Options({k: v.shape for k, v in inputs.items()}))
    return Case(made.module, model, inputs, made.params)


def built(name: str) -> Case:
    """A network of `cpu_graphs`, with random inputs."""
    model = GRAPHS[name]()
    rng = np.random.default_rng(1)
    inputs = {}
    for info in onnx.load_from_string(model).graph.input:
        shape = [d.dim_value for d in info.type.tensor_type.shape.dim]
        inputs[info.name] = rng.standard_normal(shape, np.float32)
    return imported(model, inputs)


def real(name: str, shape: tuple[int, ...]) -> Case:
    """A network of a PyPI package, on a page full of marks."""
    try:
        model = networks.read(name)
    except networks.Absent as absent:
        raise Absent(str(absent)) from None
    # A page of this size is one on which text detection finds something; it is repeated to fill the shape.
    page = originals.page((1, 3, 64, 96), np.random.default_rng(0))
    times = [-(-extent // own) for extent, own in zip(shape, page.shape)]
    return imported(model, {"x": np.ascontiguousarray(np.tile(page, times)[tuple(map(slice, shape))])})


class _Samples(CalibrationDataReader):
    def __init__(self, name: str, shape: tuple[int, ...]) -> None:
        rng = np.random.default_rng(2)
        self.left: Iterator[dict[str, Any]] = iter([{name: rng.standard_normal(shape, np.float32)} for _ in range(4)])

    def get_next(self) -> dict[str, Any] | None:
        return next(self.left, None)


def quantised(name: str) -> Case:
    """A classic network in onnxruntime's quantisation: int8 weights for each channel, uint8 activations, integer results.

    It ends before the last conversion to floats. The Relay program multiplies integers, as onnxruntime does.
    """
    if CalibrationDataReader is object:
        raise Absent("onnxruntime quantises the network, and is not installed")
    case = golden(name)
    ((data, value),) = case.inputs.items()
    proto = onnx.load_from_string(case.model)
    with tempfile.TemporaryDirectory() as folder:
        plain, folded, small = (Path(folder) / f"{n}.onnx" for n in ("plain", "folded", "small"))
        onnx.save(proto, plain)
        quant_pre_process(plain, folded, skip_symbolic_shape=True)
        quantize_static(
            folded,
            small,
            _Samples(data, value.shape),
            quant_format=QuantFormat.QDQ,
            per_channel=True,
            weight_type=QuantType.QInt8,
            activation_type=QuantType.QUInt8,
        )
        proto = onnx.load(small)
    last = next(n for n in proto.graph.node if n.output[0] == proto.graph.output[0].name)
    assert last.op_type == "DequantizeLinear"
    _end_at(proto, last.input[0], onnx.TensorProto.UINT8)
    case = imported(proto.SerializeToString(), case.inputs)
    return replace(case, module=FakeQuantizationToInteger()(case.module))


def _end_at(proto: onnx.ModelProto, value: str, dtype: int) -> None:
    """Make a value the only result, and drop the layers that it does not need."""
    del proto.graph.output[:]
    proto.graph.output.append(onnx.helper.make_tensor_value_info(value, dtype, None))
    wanted, live = {value}, []
    for node in reversed(proto.graph.node):
        if wanted.intersection(node.output):
            wanted.update(node.input)
            live.append(node)
    del proto.graph.node[:]
    proto.graph.node.extend(reversed(live))


#: The networks by the names of the table's rows.
NETWORKS: dict[str, Callable[[], Case]] = {
    "resnet18": partial(golden, "resnet18"),
    "resnet50": partial(built, "resnet50"),
    "mobilenet": partial(golden, "mobilenet"),
    "squeezenet": partial(golden, "squeezenet"),
    "densenet121": partial(built, "densenet121"),
    "inception3": partial(built, "inception3"),
    "vgg11": partial(built, "vgg11"),
    "dqn": partial(golden, "dqn"),
    "resnet18-int8": partial(quantised, "resnet18"),
    "mobilenet-int8": partial(quantised, "mobilenet"),
    "encoder": partial(built, "encoder"),
    "lstm256": partial(built, "lstm256"),
    "gpt-step": partial(built, "gpt_step"),
    "rapidocr-det": partial(real, "ch_PP-OCRv4_det_infer.onnx", (1, 3, 640, 640)),
    "rapidocr-rec": partial(real, "ch_PP-OCRv4_rec_infer.onnx", (1, 3, 48, 320)),
    "mobilenet2": partial(built, "mobilenet2"),
    "vit": partial(built, "vit"),
    "unet": partial(built, "unet"),
}
