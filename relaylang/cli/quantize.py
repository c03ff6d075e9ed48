"""Quantise a float network: whole numbers in the qnn dialect, with scales from calibration data, or floats of 16 bits.

A network's layers get the names of their operators with a number, such as conv2d_3; the names of an imported network's nodes work,
too. --calibration FILE.py:FUNCTION runs the code of that file. Data in files are only read.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from relaylang.cli.arguments import add_value_options, needed_by, with_values
from relaylang.cli.calibration import Calibration
from relaylang.cli.common import PROGRAM, check_ending, check_outputs, report, write_bytes, write_text
from relaylang.cli.inputs import entry_function
from relaylang.cli.models import FILE_HELP, add_import_options, import_options
from relaylang.cli.print import write_text_and_constants
from relaylang.cli.program import check, load
from relaylang.cli.progress import Stages
from relaylang.cli.usage import UsageError
from relaylang.export import export_onnx
from relaylang.ir import IRModule, post_order
from relaylang.ir.binding import bind_params
from relaylang.passes import PASSES
from relaylang.quantize import StaticConfig, StaticQuantization, quantize_dynamic, quantize_weights
from relaylang.quantize.compare import Outputs, compare, outcome, picture, table
from relaylang.quantize.correct import correct_biases, keep_worst
from relaylang.quantize.integer_io import integer_io
from relaylang.quantize.prepare import prepare
from relaylang.quantize.ranges import CALIBRATORS, WEIGHTS
from relaylang.quantize.rounding import adapt_rounding
from relaylang.rules.quantization.static import TARGETS

EPILOG = """\
examples:
  relay quantize net.onnx --calibration images.npz -o q.relay
  relay quantize net.relay --params net.npz --calibration images/ --target ethos-u --compare layers.svg -o q.relay
  relay quantize net.onnx --calibration data.py:batches --calibrator mse --keep-float conv2d_0 -o q.onnx
  relay quantize net.onnx --mode dynamic -o q.relay
  relay quantize decoder.onnx --mode int4 -o small.onnx
  relay quantize net.onnx --mode bfloat16 -o half.relay

-o FILE.onnx writes an ONNX model with QuantizeLinear and DequantizeLinear around each layer.
"""

#: Each mode: the element type of activations of static ones.
_STATIC = {"int8": "int8", "int16x8": "int16"}
_MIXED = ("float16", "bfloat16")
_MODES = (*_STATIC, *_MIXED, "dynamic", "int4")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help=FILE_HELP)
    parser.add_argument(
        "--calibration",
        metavar="DATA",
        help="batches of inputs: a .npz, .npy, .params or .safetensors file, a folder, or FILE.py:FUNCTION, which runs the file",
    )
    parser.add_argument(
        "--mode",
        choices=_MODES,
        default="int8",
        help="int8 (default): weights and activations; int16x8: activations of 16 bits; dynamic: weights, and scales at run time; "
        "int4: weights alone, in blocks of 32",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="the result: Relay text, or an .onnx model; - is the standard output")
    parser.add_argument(
        "--constants", metavar="FILE", help="write the constants to FILE (.npz, .params, .safetensors) instead of the metadata section"
    )
    parser.add_argument("-t", "--target", choices=[*TARGETS], default="c", help="what the result is for (default: c)")
    parser.add_argument("--calibrator", choices=[*CALIBRATORS], help="how ranges follow from data (default: minmax)")
    parser.add_argument(
        "--weights-calibrator", choices=[*WEIGHTS], default="max", help="how ranges of weights are chosen (default: max)"
    )
    parser.add_argument("--percentile", type=float, metavar="P", help="the percent of numbers that percentiles keep (default: 99.99)")
    parser.add_argument("--per-tensor", action="store_true", help="one scale for a weight, not one for each channel")
    parser.add_argument("--symmetric", action="store_true", help="activations with the zero point 0")
    parser.add_argument("--power2", action="store_true", help="scales of activations that are powers of two")
    parser.add_argument("--integer-io", action="store_true", help="inputs and outputs in whole numbers, as --npu-only wants them")
    parser.add_argument("--equalize", action="store_true", help="channels between two layers get ranges that suit both weights")
    parser.add_argument(
        "--adaptive-rounding",
        action="store_true",
        help="round weights up or down so that the results of a layer keep near, not to the nearest",
    )
    parser.add_argument("--bias-correction", action="store_true", help="take the mean error of quantised weights from biases")
    parser.add_argument(
        "--keep-float",
        nargs="+",
        action="extend",
        default=[],
        metavar="LAYER",
        help="layers that stay in floats; auto finds those that --max-drop needs",
    )
    parser.add_argument(
        "--max-drop", type=float, metavar="PERCENT", help="for --keep-float auto: the rows whose top 1 may differ (default: 0.5)"
    )
    parser.add_argument(
        "--compare", nargs="?", const="", metavar="FILE.svg", help="print the error of each layer, and draw it to a picture"
    )
    add_value_options(parser)
    add_import_options(parser)


def run(args: argparse.Namespace) -> int:
    _check_options(args)
    with Stages() as stages:
        with stages.stage("read"):
            program = load(args.file, options=import_options(args))
        with stages.stage("check"):
            check(program)
        report(program.notes)
        mod = _bound(program.module, args)
        if args.mode in _STATIC:
            return _static(mod, args, stages)
        with stages.stage("prepare"):
            data = Calibration(args.calibration, prepare(mod)["main"]) if args.calibration is not None else None
            if data is not None:
                data.check()
        with stages.stage("quantise"):
            quantized = _without_data(mod, args)
        if data is not None:
            with stages.stage("compare"):
                print(outcome(*Outputs(prepare(mod), data).compare(quantized)), file=sys.stderr)
        _write(quantized, quantized, args)
    return 0


def _without_data(mod: IRModule, args: argparse.Namespace) -> IRModule:
    """The module in a mode that needs no data."""
    if args.mode == "dynamic":
        return quantize_dynamic(mod, None, args.keep_float, args.weights_calibrator)
    if args.mode == "int4":
        return quantize_weights(mod, None, args.keep_float)
    mod, infer = prepare(mod), PASSES["InferType"]()
    for step in (infer, PASSES["ToMixedPrecision"](args.mode), infer, PASSES["FoldConstant"](), infer):
        mod = step(mod)
    return mod


def _check_options(args: argparse.Namespace) -> None:
    """Raises `UsageError` for options that do not go together, and `RelayError` for files that cannot be written."""

    def wrong(title: str) -> UsageError:
        return UsageError(f"relay quantize: {title}", "relay quantize --help")

    if args.output is None:
        raise wrong("-o FILE says where the result goes")
    check_ending("quantize", args.output, "the result is Relay text, or an .onnx model", (*PROGRAM, ".txt", ".onnx"))
    check_outputs(args.output, args.constants)
    check_outputs(args.compare or None, None)
    if args.compare:
        check_ending("quantize", args.compare, "--compare draws an .svg picture", (".svg",))
    if args.integer_io and args.output.lower().endswith(".onnx"):
        raise wrong("--integer-io is for Relay text: QuantizeLinear converts inputs of ONNX models")
    static, auto = args.mode in _STATIC, "auto" in args.keep_float
    if static and args.calibration is None:
        raise wrong(f"--mode {args.mode} wants --calibration DATA: scales follow from data")
    options = {
        "--calibrator": args.calibrator is not None,
        "--percentile": args.percentile is not None,
        "--symmetric": args.symmetric,
        "--power2": args.power2,
        "--per-tensor": args.per_tensor,
        "--equalize": args.equalize,
        "--adaptive-rounding": args.adaptive_rounding,
        "--bias-correction": args.bias_correction,
        "--integer-io": args.integer_io,
        "--keep-float auto": auto,
        "--compare": args.compare is not None,
    }
    drop, percentile = args.max_drop, args.percentile
    mistakes = [
        *((there and not static, f"{option} goes with --mode int8 and int16x8, not {args.mode}") for option, there in options.items()),
        (args.keep_float and args.mode in _MIXED, f"--keep-float goes with --mode int8, int16x8, dynamic and int4, not {args.mode}"),
        (
            args.weights_calibrator != "max" and args.mode == "int4",
            "--mode int4 takes --weights-calibrator max alone",
        ),
        (auto and len(args.keep_float) > 1, "--keep-float auto finds the layers: name no others"),
        (drop is not None and not auto, "--max-drop goes with --keep-float auto"),
        (drop is not None and not 0 <= drop <= 100, f"--max-drop is a percentage from 0 to 100, not {drop or 0:g}"),
        (percentile is not None and not 50 < percentile <= 100, f"--percentile is above 50 and at most 100, not {percentile or 0:g}"),
    ]
    for is_wrong, title in mistakes:
        if is_wrong:
            raise wrong(title)


def _bound(mod: IRModule, args: argparse.Namespace) -> IRModule:
    """The module with constants for the parameters with values. With --random-params all but the first have one."""
    function = entry_function(mod, "main")
    needed = needed_by(function.params, post_order(function.body))
    if args.random_params is not None and function.params:
        needed = [node for node in needed if node is not function.params[0]]
    return bind_params(*with_values(mod, needed, args))


def _static(mod: IRModule, args: argparse.Namespace, stages: Stages) -> int:
    auto = args.keep_float == ["auto"]
    config = {
        "target": args.target,
        "dtype": _STATIC[args.mode],
        "symmetric": True if args.symmetric else None,
        "power2": args.power2,
        "calibrator": args.calibrator or "minmax",
        "weights": args.weights_calibrator,
        "share": (99.99 if args.percentile is None else args.percentile) / 100,
        "per_channel": not args.per_tensor,
        "equalize": args.equalize,
    }
    with stages.stage("prepare"):
        first = StaticQuantization(mod, None, StaticConfig(**config, keep_float=() if auto else tuple(args.keep_float)))
        data = Calibration(args.calibration, first.prepared["main"])
        count = data.check() or None

    def calibrated(kept: Sequence[str]) -> StaticQuantization:
        quantized = first if not kept else StaticQuantization(mod, None, StaticConfig(**config, keep_float=tuple(kept)))
        with stages.stage("calibrate", count) as step:
            quantized.calibrate(data, step)
        if args.adaptive_rounding:
            with stages.stage("round weights"):
                adapt_rounding(quantized, data)
        if args.bias_correction:
            with stages.stage("correct biases"):
                correct_biases(quantized, data)
        return quantized

    def say(text: str) -> None:
        with stages.hidden():
            print(text, file=sys.stderr)

    if auto:
        quantized = keep_worst(calibrated, data, 0.5 if args.max_drop is None else args.max_drop, say)
    else:
        quantized = calibrated(())
    with stages.stage("quantise"):
        result = quantized.module
    if args.compare is not None:
        with stages.stage("compare", count) as step:
            comparisons = compare(quantized, data, step)
        print(table(comparisons), end="", file=sys.stderr if args.output == "-" else sys.stdout)
        if args.compare:
            write_text(args.compare, picture(comparisons))
    if args.integer_io:
        result, inputs, outputs = integer_io(result)
        for edge in (*inputs, *outputs):
            print(f"{edge.name}: {edge.dtype}, scale {edge.scale:.9g}, zero point {edge.zero}", file=sys.stderr)
    _write(result, quantized.simulated, args)
    return 0


def _write(mod: IRModule, model: IRModule, args: argparse.Namespace) -> None:
    """Write the module as text, or the form that ONNX has of it."""
    if args.output.lower().endswith(".onnx"):
        write_bytes(args.output, export_onnx(model).SerializeToString())
    else:
        write_text_and_constants(mod, args.output, args.constants)
