"""Quantisation of float networks: scales from data, and integers in the place of floats, as in TVM's `relay.quantize`.

    with qconfig(calibrate_mode="kl_divergence"):
        mod = quantize(mod, params, dataset)

`dataset` has mappings from inputs' names to arrays. The steps are passes: `QuantizePartition`, `QuantizeAnnotate`,
calibration, `QuantizeRealize`.
"""

from __future__ import annotations

from relaylang.quantize.calibrate import QuantizeCalibrate, calibrate, collect_stats
from relaylang.quantize.conversions import partition_conversions
from relaylang.quantize.dynamic import quantize_dynamic
from relaylang.quantize.quantize import annotate, partition, prerequisite_optimize, qconfig, quantize, realize
from relaylang.quantize.static import StaticConfig, StaticQuantization, quantize_static
from relaylang.quantize.weights import quantize_weights
from relaylang.rules.quantization.common import QAnnotateKind, QConfig, current_qconfig

__all__ = [
    "QAnnotateKind",
    "QConfig",
    "QuantizeCalibrate",
    "StaticConfig",
    "StaticQuantization",
    "annotate",
    "calibrate",
    "collect_stats",
    "current_qconfig",
    "partition",
    "partition_conversions",
    "prerequisite_optimize",
    "qconfig",
    "quantize",
    "quantize_dynamic",
    "quantize_static",
    "quantize_weights",
    "realize",
]
