"""The accuracy of quantised networks beside onnxruntime's `quantize_static`: `make bench-quantize`.

Both quantisers get the same 200 samples and the same calibrator; the accuracy is on samples that neither saw. Real networks
have no labels here: their table has the ratio of signal and noise of all outputs, on parts of two photographs.
Needs torch, onnxruntime, and scikit-learn. `--write` writes the tables to benchmarks/results/quantize.md.
"""

from __future__ import annotations

import argparse
import itertools
import logging
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import onnx
import onnxruntime
import torch
from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

from benchmarks.cpu_networks import NETWORKS, imported
from benchmarks.machine import model as machine
from benchmarks.quantize_networks import CALIBRATED, TASKS, TRAINED, crops, trained
from relaylang.backends import compile_module
from relaylang.export import export_onnx
from relaylang.frontends.formats import import_bytes
from relaylang.ir import IRModule
from relaylang.quantize import StaticConfig, StaticQuantization
from relaylang.quantize.correct import correct_biases
from relaylang.quantize.observe import Observer
from relaylang.quantize.ranges import CALIBRATORS, EXTREMES
from relaylang.quantize.rounding import adapt_rounding
from tests.frontends import networks

RESULTS = Path(__file__).parent / "results" / "quantize.md"
#: The real networks, with the shape of the input where the file leaves it open.
REAL: dict[str, tuple[int, ...] | None] = {
    "ch_PP-OCRv4_det_infer.onnx": (1, 3, 160, 160),
    "ch_PP-OCRv4_rec_infer.onnx": (1, 3, 48, 160),
    "ch_ppocr_mobile_v2.0_cls_infer.onnx": (1, 3, 48, 192),
    "face_detection_short_range.tflite": None,
    "palm_detection_lite.tflite": None,
    "hand_landmark_lite.tflite": None,
    "face_landmark.tflite": None,
    "selfie_segmentation.tflite": None,
}
#: Parts of photographs for calibration, and for the measurement.
PARTS = 8

Samples = Sequence[np.ndarray]


class _Samples(CalibrationDataReader):
    def __init__(self, name: str, samples: Samples) -> None:
        self.left = iter([{name: sample} for sample in samples])

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self.left, None)


#: Calibrators of both, by our name.
METHODS = {"minmax": CalibrationMethod.MinMax, "entropy": CalibrationMethod.Entropy, "percentile": CalibrationMethod.Percentile}


def theirs(data: bytes, name: str, samples: Samples, calibrator: str) -> bytes:
    """onnxruntime's quantised model, with int8 weights for each channel."""
    with tempfile.TemporaryDirectory() as folder:
        plain, ready, small = (Path(folder) / f"{part}.onnx" for part in ("plain", "ready", "small"))
        plain.write_bytes(data)
        quant_pre_process(plain, ready, skip_symbolic_shape=True)
        types = {"activation_type": QuantType.QInt8, "weight_type": QuantType.QInt8, "per_channel": True}
        method = METHODS[calibrator]
        quantize_static(ready, small, _Samples(name, samples), quant_format=QuantFormat.QDQ, calibrate_method=method, **types)
        return small.read_bytes()


Outputs = list[np.ndarray]


def _joined(results: Sequence[Sequence[Any]]) -> Outputs:
    """The outputs of all samples, one row for each sample."""
    return [np.stack([np.asarray(result[n], "float64").reshape(-1) for result in results]) for n in range(len(results[0]))]


def in_onnxruntime(data: bytes, samples: Samples) -> Outputs:
    """The outputs of a model in onnxruntime.

    Quantised layers compute in floats between their conversions: on some machines its int8 kernels saturate. It gets one
    thread: several that spin for each other take long where other processes have the cores.
    """
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    (name,) = (i.name for i in session.get_inputs())
    return _joined([session.run(None, {name: sample}) for sample in samples])


def compiled(mod: IRModule, samples: Samples) -> Outputs:
    """The outputs of a module, compiled."""
    artifact = compile_module(mod, "c")

    def run(sample: np.ndarray) -> list[np.ndarray]:
        found = artifact.run(sample)
        return [np.array(v) for v in (found if isinstance(found, (tuple, list)) else (found,))]

    return _joined([run(sample) for sample in samples])


def decibels(wanted: Outputs, found: Outputs) -> float:
    signal = sum(float((a**2).sum()) for a in wanted)
    noise = sum(float(((a - b) ** 2).sum()) for a, b in zip(wanted, found, strict=True))
    return float(10 * np.log10(signal / noise)) if noise else float("inf")


def quantised(mod: IRModule, samples: Samples, *steps: Callable[..., Any], **options: Any) -> IRModule:
    quantization = StaticQuantization(mod, None, StaticConfig(**options))
    batches = [{quantization.prepared["main"].params[0].name_hint: sample} for sample in samples]
    quantization.calibrate(batches)
    for step in steps:
        step(quantization, batches)
    return quantization.module


TENSOR: dict[str, Any] = {"per_channel": False}
#: Ours: the label, the options, and the steps behind calibration.
FORMS: list[tuple[str, dict[str, Any], tuple[Callable[..., Any], ...]]] = [
    *[("relay int8", {"calibrator": c}, ()) for c in (*METHODS, "mse")],
    ("relay int8, weights by mse", {"weights": "mse"}, ()),
    ("relay int8, rounding adapted", {}, (adapt_rounding,)),
    ("relay int8, biases corrected", {}, (correct_biases,)),
    ("relay int8 for each tensor", TENSOR, ()),
    ("relay int8 for each tensor, equalised", {**TENSOR, "equalize": True}, ()),
    ("relay int8 for each tensor, rounding adapted", TENSOR, (adapt_rounding,)),
    ("relay int8 for each tensor, biases corrected", TENSOR, (correct_biases,)),
    ("relay int8 for each tensor, all three", {**TENSOR, "equalize": True}, (adapt_rounding, correct_biases)),
    ("relay int8 for the Ethos-U", {"target": "ethos-u"}, ()),
    ("relay int16x8", {"dtype": "int16"}, ()),
]


def small(name: str, say: Callable[[str], None]) -> None:
    """The rows of a small network."""
    task = TASKS[name]
    values, classes = task.data()
    data = trained(task, (values, classes))
    rows = [row[None] for row in values[TRAINED:]]
    calibration, test = rows[:CALIBRATED], rows[CALIBRATED:]
    answers = classes[TRAINED + CALIBRATED :]
    wanted = in_onnxruntime(data, test)

    def hits(found: Outputs) -> str:
        return f"{100 * (found[0].argmax(1) == answers).mean():.2f}"

    def row(label: str, calibrator: str, found: Outputs) -> None:
        say(f"| {name} | {label} | {calibrator} | {hits(found)} | {decibels(wanted, found):.1f} |")

    say(f"| {name} | float | | {hits(wanted)} | |")
    mod = import_bytes(data, f"{name}.onnx").module
    for calibrator in METHODS:
        row("onnxruntime int8", calibrator, in_onnxruntime(theirs(data, "x", calibration, calibrator), test))
    for label, options, steps in FORMS:
        row(label, options.get("calibrator", "minmax"), compiled(quantised(mod, calibration, *steps, **options), test))


def real(name: str, say: Callable[[str], None]) -> None:
    """The row of a real network. onnxruntime gets it as an ONNX model of a new version; the ranges are the extremes."""
    try:
        data = networks.read(name)
    except networks.Absent as absent:
        say(f"| {name} | {absent} | | |")
        return
    shape = REAL[name]
    mod = imported(data, {"x": np.zeros(shape, "float32")}).module if shape is not None else import_bytes(data, name).module
    data = export_onnx(mod).SerializeToString()
    (info,) = onnx.load_from_string(data).graph.input
    samples = crops(tuple(d.dim_value for d in info.type.tensor_type.shape.dim), 2 * PARTS, 3)
    calibration, test = samples[:PARTS], samples[PARTS:]
    wanted = in_onnxruntime(data, test)
    cells = [decibels(wanted, in_onnxruntime(theirs(data, info.name, calibration, "minmax"), test))]
    for dtype in ("int8", "int16"):
        cells.append(decibels(wanted, compiled(quantised(mod, calibration, dtype=dtype), test)))
    say(f"| {name} | {' | '.join(f'{cell:.1f}' for cell in cells)} |")


def _milliseconds(one: Callable[[], Any], two: Callable[[], Any], count: int) -> tuple[float, float]:
    """The milliseconds of processor time that two functions take, in turns."""
    spent = [0.0, 0.0]
    for run in (one, two):
        run()
    for _ in range(count):
        for n, run in enumerate((one, two)):
            begin = time.process_time()
            run()
            spent[n] += time.process_time() - begin
    return 1000 * spent[0] / count, 1000 * spent[1] / count


#: The rows about time. The goals of the first are 0.4 with products of four int8 (VNNI), and 0.5 without.
TIMES = ("resnet18", "mobilenet")


def speed(say: Callable[[str], None]) -> None:
    """The time of int8 beside floats: resnet18 for the CPU."""
    plain, whole = NETWORKS["resnet18"](), NETWORKS["resnet18-int8"]()
    runs = []
    for case in (plain, whole):
        artifact, inputs = compile_module(case.module, "c", params=case.params), case.inputs
        runs.append(lambda artifact=artifact, inputs=inputs: artifact.run(**inputs))  # type: ignore[misc]
    floats, integers = _milliseconds(*runs, 20)
    say(f"| resnet18, float32 and int8 | {floats:.1f} | {integers:.1f} | {integers / floats:.2f} |")


def calibration(calibrator: str, say: Callable[[str], None]) -> None:
    """The time of mobilenet's calibration on 500 images, with the choice of scales, beside that of running it."""
    case = NETWORKS["mobilenet"]()
    quantization = StaticQuantization(case.module, case.params, StaticConfig(calibrator=calibrator))
    observer = Observer(quantization.prepared, [v.source for v in quantization.plan.values], calibrator not in EXTREMES)
    artifact, (name,) = compile_module(quantization.prepared, "c"), case.inputs
    rng = np.random.default_rng(0)
    images = [rng.standard_normal(case.inputs[name].shape, np.float32) for _ in range(4)]
    first, second = itertools.cycle(images), itertools.cycle(images)
    plain, observed = _milliseconds(lambda: artifact.run(**{name: next(first)}), lambda: observer.add({name: next(second)}), 500)
    quantization.seen, begin = observer.seen, time.process_time()
    quantization.choose()
    observed += 1000 * (time.process_time() - begin) / 500
    say(f"| mobilenet, run and calibrated by {calibrator} | {plain:.1f} | {observed:.1f} | {observed / plain:.2f} |")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    known = [*TASKS, *REAL, *TIMES]
    parser.add_argument("names", nargs="*", default=known, help=f"networks ({', '.join(known)})")
    parser.add_argument("--write", action="store_true", help="write the tables to benchmarks/results/quantize.md")
    args = parser.parse_args()
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    begin = time.perf_counter()
    lines: list[str] = []

    def say(line: str) -> None:
        lines.append(line)
        print(line, flush=True)

    say("| network | form | calibrator | accuracy % | SQNR dB |")
    say("|---|---|---|---|---|")
    for name in TASKS:
        if name in args.names:
            small(name, say)
    say("")
    say("| network | onnxruntime int8, SQNR dB | relay int8 | relay int16x8 |")
    say("|---|---|---|---|")
    for name in REAL:
        if name in args.names:
            real(name, say)
    say("")
    say("| network, one and the other | ms | ms | ratio |")
    say("|---|---|---|---|")
    if "resnet18" in args.names:
        speed(say)
    if "mobilenet" in args.names:
        for calibrator in CALIBRATORS:
            calibration(calibrator, say)
    text = f"# Quantised networks\n\n{machine()}; `make bench-quantize WRITE=1` took {time.perf_counter() - begin:.0f} s.\n"
    text += "Accuracy is on 597 digits of scikit-learn, or 6000 synthetic keywords, that no quantiser saw; 200 others calibrate.\n"
    text += (
        f"Real networks see {PARTS} parts of two photographs for calibration, and {PARTS} others. Times are of the processor.\n\n"
        + "\n".join(lines)
        + "\n"
    )
    if args.write:
        RESULTS.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
