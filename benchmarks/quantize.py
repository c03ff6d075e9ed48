"""The accuracy of quantised networks beside onnxruntime's `quantize_static`: `make bench-quantize`.

Small networks are trained on the digits of scikit-learn in about a minute. Both quantisers get the same 200 images and the
same calibrator; the accuracy is that on 597 images that neither saw. Needs torch, onnxruntime, and scikit-learn.
`--write` writes the table to benchmarks/results/quantize.md.
"""

from __future__ import annotations

import argparse
import io
import logging
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
import onnxruntime
import torch
from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process
from sklearn.datasets import load_digits
from torch import nn

from benchmarks.machine import model as machine
from relaylang.backends import compile_module
from relaylang.frontends.formats import import_bytes
from relaylang.ir import IRModule
from relaylang.quantize import StaticConfig, StaticQuantization
from relaylang.quantize.correct import correct_biases

RESULTS = Path(__file__).parent / "results" / "quantize.md"
#: Images for training and for calibration; the others measure.
TRAINED, CALIBRATED = 1000, 200


class Residual(nn.Module):
    """Two convolutions, with normalisation, beside the identity."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        layers = [nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels)]
        self.body = nn.Sequential(*layers, nn.ReLU(), nn.Conv2d(channels, channels, 3, padding=1), nn.BatchNorm2d(channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x + self.body(x))


def small_cnn() -> nn.Module:
    first = [nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2)]
    second = [nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.AdaptiveAvgPool2d(1)]
    return nn.Sequential(*first, *second, nn.Flatten(), nn.Linear(32, 10))


def residual() -> nn.Module:
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(24, 10)]
    return nn.Sequential(nn.Conv2d(1, 24, 3, padding=1), nn.ReLU(), Residual(24), nn.MaxPool2d(2), Residual(24), *head)


def depthwise() -> nn.Module:
    def block(a: int, b: int) -> list[nn.Module]:
        narrow = [nn.Conv2d(a, a, 3, padding=1, groups=a, bias=False), nn.BatchNorm2d(a), nn.ReLU6()]
        return [*narrow, nn.Conv2d(a, b, 1, bias=False), nn.BatchNorm2d(b), nn.ReLU6()]

    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(48, 10)]
    return nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU6(), *block(16, 32), nn.MaxPool2d(2), *block(32, 48), *head)


NETWORKS: dict[str, Callable[[], nn.Module]] = {"CNN": small_cnn, "residual": residual, "depthwise": depthwise}


def digits() -> tuple[np.ndarray, np.ndarray]:
    """The images, float32 of shape (1797, 1, 8, 8) from 0 to 1, and their classes, in a fixed order."""
    data = load_digits()
    order = np.random.default_rng(0).permutation(len(data.target))
    return (data.images[order, None] / 16).astype("float32"), data.target[order]


def trained(make: Callable[[], nn.Module], images: np.ndarray, classes: np.ndarray) -> bytes:
    """A network that is trained on the first images, as an ONNX model for one image."""
    torch.manual_seed(0)
    net = make()
    optimiser = torch.optim.Adam(net.parameters(), 3e-3)
    x, y = torch.from_numpy(images[:TRAINED]), torch.from_numpy(classes[:TRAINED])
    for _ in range(25):
        for part in torch.randperm(TRAINED).split(50):
            loss = nn.functional.cross_entropy(net(x[part]), y[part])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    file = io.BytesIO()
    torch.onnx.export(net.eval(), (x[:1],), file, input_names=["x"], output_names=["y"], dynamo=False)
    return file.getvalue()


class _Samples(CalibrationDataReader):
    def __init__(self, images: np.ndarray) -> None:
        self.left = iter([{"x": image[None]} for image in images])

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self.left, None)


#: Calibrators of both, by our name.
METHODS = {"minmax": CalibrationMethod.MinMax, "entropy": CalibrationMethod.Entropy, "percentile": CalibrationMethod.Percentile}


def theirs(data: bytes, images: np.ndarray, calibrator: str) -> bytes:
    """onnxruntime's quantised model, with int8 weights for each channel."""
    with tempfile.TemporaryDirectory() as folder:
        plain, ready, small = (Path(folder) / f"{name}.onnx" for name in ("plain", "ready", "small"))
        plain.write_bytes(data)
        quant_pre_process(plain, ready, skip_symbolic_shape=True)
        types = {"activation_type": QuantType.QInt8, "weight_type": QuantType.QInt8, "per_channel": True}
        method = METHODS[calibrator]
        quantize_static(ready, small, _Samples(images), quant_format=QuantFormat.QDQ, calibrate_method=method, **types)
        return small.read_bytes()


def outputs(data: bytes, images: np.ndarray) -> np.ndarray:
    """The outputs of a model in onnxruntime, one row for each image.

    Quantised layers compute in floats between their conversions: on some machines its int8 kernels saturate.
    """
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    return np.concatenate([session.run(None, {"x": image[None]})[0] for image in images])


def ours(mod: IRModule, images: np.ndarray) -> np.ndarray:
    """The outputs of a module, compiled."""
    artifact = compile_module(mod, "c")
    return np.concatenate([np.asarray(artifact.run(image[None])).copy() for image in images])


def decibels(wanted: np.ndarray, found: np.ndarray) -> float:
    return float(10 * np.log10((wanted**2).sum() / ((wanted - found) ** 2).sum()))


def rows(name: str) -> list[str]:
    """The table's rows of one network."""
    images, classes = digits()
    data = trained(NETWORKS[name], images, classes)
    calibration, test = images[TRAINED : TRAINED + CALIBRATED], images[TRAINED + CALIBRATED :]
    answers = classes[TRAINED + CALIBRATED :]
    wanted = outputs(data, test)

    def cells(found: np.ndarray) -> str:
        return f"{100 * (found.argmax(1) == answers).mean():.2f} | {decibels(wanted, found):.1f}"

    made = [f"| {name} | float | | {100 * (wanted.argmax(1) == answers).mean():.2f} | |"]
    mod = import_bytes(data, f"{name}.onnx").module
    for calibrator in METHODS:
        made.append(f"| {name} | onnxruntime int8 | {calibrator} | {cells(outputs(theirs(data, calibration, calibrator), test))} |")
    choices: list[tuple[str, dict[str, Any], bool]] = [("relay int8", {"calibrator": c}, False) for c in (*METHODS, "mse")]
    choices += [("relay int8, biases corrected", {}, True), ("relay int8, weights by mse", {"weights": "mse"}, False)]
    choices += [("relay int8 for each tensor", {"per_channel": False}, False)]
    choices += [("relay int8 for each tensor, biases corrected", {"per_channel": False}, True)]
    choices += [("relay int8 for the Ethos-U", {"target": "ethos-u"}, False), ("relay int16x8", {"dtype": "int16"}, False)]
    for label, options, corrected in choices:
        quantization = StaticQuantization(mod, None, StaticConfig(**options))
        batches = [{quantization.prepared["main"].params[0].name_hint: image[None]} for image in calibration]
        quantization.calibrate(batches)
        if corrected:
            correct_biases(quantization, batches)
        made.append(f"| {name} | {label} | {options.get('calibrator', 'minmax')} | {cells(ours(quantization.module, test))} |")
    return made


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=[*NETWORKS], help=f"networks ({', '.join(NETWORKS)})")
    parser.add_argument("--write", action="store_true", help="write the table to benchmarks/results/quantize.md")
    args = parser.parse_args()
    logging.disable(logging.WARNING)
    begin = time.perf_counter()
    table = ["| network | form | calibrator | accuracy % | SQNR dB |", "|---|---|---|---|---|"]
    for name in args.names:
        table += rows(name)
        print("\n".join(table[-14:]), flush=True)
    text = f"# Quantised networks\n\n{machine()}; `make bench-quantize` took {time.perf_counter() - begin:.0f} s.\n"
    text += "Accuracy is on 597 digits of scikit-learn that no quantiser saw; 200 others calibrate.\n\n" + "\n".join(table) + "\n"
    if args.write:
        RESULTS.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
