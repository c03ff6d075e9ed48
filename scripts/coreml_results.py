"""Converts the networks of tests/frontends/coreml for Core ML and writes what PyTorch computes: tests/frontends/coreml/data.

    scripts/coreml_results.py

It needs an environment of its own, with `pip install torch coremltools scikit-learn`. Core ML itself runs on macOS alone, so
the results are those of the networks that are converted, and of weights that coremltools has unpacked.
"""

from __future__ import annotations

import io
import sys
import tempfile
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
warnings.filterwarnings("ignore")

import coremltools as ct  # noqa: E402
from coremltools.models.neural_network import quantization_utils  # noqa: E402
from coremltools.optimize import coreml as packing  # noqa: E402

from tests.frontends.coreml.built import built  # noqa: E402
from tests.frontends.coreml.networks import NETWORKS, network, operands  # noqa: E402

DATA = ROOT / "tests" / "frontends" / "coreml" / "data" / "recorded.zip"


def packed(model: Any) -> bytes:
    """A model as a package in a zip archive."""
    out = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "net.mlpackage"
        model.save(str(path))
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            for part in sorted(path.rglob("*")):
                if part.is_file():
                    archive.write(part, part.relative_to(folder))
    return out.getvalue()


def converted(name: str, **how: Any) -> Any:
    module, values = network(name), operands(name)
    scripted = torch.jit.script(module) if name == "loops" else torch.jit.trace(module, values)
    inputs = [ct.TensorType(name=f"x{i}", shape=v.shape) for i, v in enumerate(values)]
    return ct.convert(scripted, inputs=inputs, **how)


def compressed(name: str) -> dict[str, Any]:
    """The weights of a network in fewer bits, by each way of both forms of operators."""
    made: dict[str, Any] = {}
    whole = {"compute_precision": ct.precision.FLOAT32}
    for target in ("iOS16", "iOS18"):
        base = converted(name, minimum_deployment_target=getattr(ct.target, target), **whole)
        ways = {
            "palette": (packing.palettize_weights, packing.OpPalettizerConfig(mode="uniform", nbits=4, weight_threshold=0)),
            "palette6": (packing.palettize_weights, packing.OpPalettizerConfig(mode="uniform", nbits=6, weight_threshold=0)),
            "affine": (packing.linear_quantize_weights, packing.OpLinearQuantizerConfig(mode="linear", weight_threshold=0)),
            "sparse": (packing.prune_weights, packing.OpMagnitudePrunerConfig(target_sparsity=0.6, weight_threshold=0)),
        }
        if target == "iOS18":
            ways["blocks"] = (
                packing.linear_quantize_weights,
                packing.OpLinearQuantizerConfig(dtype="int4", granularity="per_block", block_size=2, weight_threshold=0),
            )
            ways["groups"] = (
                packing.palettize_weights,
                packing.OpPalettizerConfig(
                    mode="kmeans", nbits=2, granularity="per_grouped_channel", group_size=2, weight_threshold=0
                ),
            )
        for way, (function, config) in ways.items():
            made[f"{way}-{target}"] = function(base, packing.OptimizationConfig(global_config=config))
        both = packing.prune_weights(base, packing.OptimizationConfig(global_config=ways["sparse"][1]))
        if target == "iOS18":
            made["joint-palette-iOS18"] = packing.palettize_weights(
                both, packing.OptimizationConfig(global_config=ways["palette"][1]), joint_compression=True
            )
            made["joint-affine-iOS18"] = packing.linear_quantize_weights(
                both, packing.OptimizationConfig(global_config=ways["affine"][1]), joint_compression=True
            )
    return made


def palette(bits: int, weights: np.ndarray) -> tuple[list[float], np.ndarray]:
    """A table of numbers at equal steps, and the nearest one for each weight."""
    table = np.linspace(weights.min(), weights.max(), 1 << bits)
    return [float(v) for v in table], np.abs(np.asarray(weights).reshape(-1)[:, None] - table).argmin(1).astype(np.uint8)


def main() -> None:
    files: dict[str, bytes] = {}
    arrays: dict[str, np.ndarray] = {}
    for name in NETWORKS:
        values = operands(name)
        with torch.no_grad():
            found = network(name)(*values)
        for i, v in enumerate(values):
            arrays[f"{name}/x{i}"] = v.numpy()
        for i, v in enumerate(found if isinstance(found, tuple) else [found]):
            arrays[f"{name}/y{i}"] = v.numpy()
        forms: dict[str, dict[str, Any]] = {
            "program": {"convert_to": "mlprogram", "compute_precision": ct.precision.FLOAT32},
            "half": {"convert_to": "mlprogram"},
            "network": {"convert_to": "neuralnetwork"},
        }
        for form, how in forms.items():
            try:
                made = converted(name, **how)
            except Exception as wrong:
                print(name, form, type(wrong).__name__, str(wrong)[:200])
                continue
            files[f"{name}.{form}"] = made.get_spec().SerializeToString() if form == "network" else packed(made)
    for name, data, values, wanted in built():
        files[f"{name}.layer"] = data
        arrays |= {f"{name}/x{i}": v for i, v in enumerate(values)} | {f"{name}/y{i}": v for i, v in enumerate(wanted)}
    for way, made in compressed("lenet").items():
        files[f"lenet.{way}"] = packed(made)
        files[f"lenet.{way}.plain"] = packed(packing.decompress_weights(made))
    for way, (bits, mode) in {"q8": (8, "linear"), "q3": (3, "linear"), "q4": (4, "custom_lut"), "q16": (16, "linear")}.items():
        own = {"lut_function": palette} if mode == "custom_lut" else {}
        made = quantization_utils.quantize_weights(converted("lenet", convert_to="neuralnetwork"), bits, mode, **own)
        spec = made if not hasattr(made, "get_spec") else made.get_spec()
        files[f"lenet.{way}"] = spec.SerializeToString()
        if bits < 16:
            files[f"lenet.{way}.plain"] = _plain(spec).SerializeToString()
    out = io.BytesIO()
    np.savez_compressed(out, **arrays)
    files["arrays.npz"] = out.getvalue()
    with zipfile.ZipFile(DATA, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
    print(DATA, DATA.stat().st_size)


def _plain(spec: Any) -> Any:
    """A network whose weights coremltools has unpacked."""
    made = type(spec)()
    made.CopyFrom(spec)
    quantization_utils._dequantize_nn_spec(made.neuralNetwork)
    return made


if __name__ == "__main__":
    main()
