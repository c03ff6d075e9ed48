"""Import a network: it becomes Relay text.

It may be of ONNX, TFLite, TensorFlow, Keras, PyTorch (.pt2 and TorchScript), StableHLO, MXNet, Core ML,
PaddlePaddle, Darknet or Caffe.

The format is found from the contents. Layers and tensors give their names to variables and to places in diagnostics. What
cannot be converted is listed whole, and nothing is written; --partial puts external functions there.
"""

from __future__ import annotations

import argparse
import os

from relaylang.cli.common import check_outputs, check_program_file, report
from relaylang.cli.models import add_import_options, import_options, imported
from relaylang.cli.print import write_text_and_constants
from relaylang.cli.progress import Stages
from relaylang.diagnostics import RelayError, error
from relaylang.frontends.contents import KNOWN, main_file
from relaylang.frontends.formats import route
from relaylang.runtime.files import together
from relaylang.runtime.params import check_suffix, save_params
from relaylang.runtime.text import read_bytes

EPILOG = """\
examples:
  relay import net.onnx -o net.relay
  relay import net.onnx --shape image=1x3x224x224 -o net.relay --constants net.safetensors
  relay import net.onnx --no-freeze -o net.relay --constants weights.npz
  relay import net.onnx --partial | relay check -
  relay import net-symbol.json --shape data=1x3x224x224 --weights net-0000.params -o net.relay

Other verbs take a network in the place of Relay text, too: relay compile net.onnx -o net.so
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the network; - is the standard input")
    parser.add_argument("-o", "--output", metavar="FILE", help="the Relay text (default: the standard output)")
    parser.add_argument("--constants", metavar="FILE", help="write constants or weights there: .npz, .params, .safetensors")
    parser.add_argument(
        "--freeze",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="weights become constants (default), or parameters of @main",
    )
    parser.add_argument("--layout", choices=["NHWC", "NCHW"], help="convert convolutions and pools to this layout")
    parser.add_argument("--partial", action="store_true", help="put external functions where layers cannot be converted")
    parser.add_argument("--spans", action="store_true", help="write each layer's place behind its calls")
    parser.add_argument("--no-types", action="store_true", help="write no types behind the expressions")
    add_import_options(parser)


def run(args: argparse.Namespace) -> int:
    check_outputs(args.output, args.constants)
    check_program_file("import", args.output)
    if args.constants is not None:
        check_suffix(args.constants)
    with Stages() as stages:
        with stages.stage("read"):
            file = main_file(args.file)
            if os.path.isdir(file):
                notes = route(file) or ["relay import takes a file, or the folder of a SavedModel or .mlpackage"]
                raise RelayError(error("R0001", f"cannot read {file}: it is a directory", notes=notes))
            data = read_bytes(file)
        with stages.stage("import"):
            program = imported(data, file, import_options(args))
        if program is None:
            notes = [f"relay import takes networks of {KNOWN}", *route(args.file)]
            name = "<stdin>" if args.file == "-" else args.file
            if name.endswith((".relay", ".rly")):
                notes = [f"it is Relay text already: relay check {name} reads it"]
            if not data.strip():
                raise RelayError(error("R0002", f"{name} is empty"))
            raise RelayError(error("R0802", f"{name} is not a network of a known format", notes=notes))
        report(program.notes)
        with stages.stage("write"):
            with together():
                if args.constants is not None and program.params:
                    save_params(args.constants, program.params)
                constants = None if program.params else args.constants
                how = {"show_types": not args.no_types, "show_spans": args.spans}
                write_text_and_constants(program.module, args.output, constants, **how)
    return 0
