"""The command tvmc in TVM's spelling: compile, run, tune; micro says what replaces it."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from relaylang.cli.command import Parser, guarded
from relaylang.cli.common import check_writable, report
from relaylang.cli.reporting import begin, end
from relaylang.cli.streams import prepare
from relaylang.cli.usage import UsageError
from relaylang.diagnostics import RelayError, error
from relaylang.plugins.files import load_file
from relaylang.runtime.text import read_text
from relaylang.tune.report import rows, table
from relaylang.tvm.driver.tvmc import TVMCPackage, load, run, tune
from relaylang.tvm.driver.tvmc.autotuner import TUNERS
from relaylang.tvm.driver.tvmc.compiler import POOLS, compiled, refused
from relaylang.tvm.driver.tvmc.frontends import FORMATS, parse_shapes
from relaylang.tvm.driver.tvmc.runner import FILLS
from relaylang.tvm.relay.backend import Executor, Runtime
from relaylang.tvm.tuning import loaded

#: `--target-llvm-mcpu=skylake`, `--executor-aot-interface-api=c`: an option beside the name that it belongs to.
_OPTION = re.compile(r"--(target|executor|runtime)-(ethos-u|ethos-n|cmsis-nn|compute-library|[a-z_]+)-([\w-]+)(?:=(.*))?", re.S)
#: Options of `tune` that have no effect: the compiler knows the machine, and one search stands for both of TVM's tuners.
_WITHOUT_EFFECT = (
    "enable-autoscheduler",
    "include-simple-tasks",
    "log-estimated-latency",
    "mixed-precision-ops",
    *("mixed-precision-acc-type", "number", "parallel", "target-host", "cache-line-bytes", "num-cores", "vector-unit-bytes"),
    *("max-shared-memory-per-block", "max-local-memory-per-block", "max-threads-per-block", "max-vthread-extent", "warp-size"),
)
#: What belongs to memory pools.
_POOLS = re.compile(r"--(workspace|constant)-pools-")


def _compile_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("FILE", help="the network, or a Relay text")
    parser.add_argument("--target", default="llvm", help="what to compile for, with accelerators in front")
    parser.add_argument("--target-host", default="", help=argparse.SUPPRESS)
    parser.add_argument("-o", "--output", default="module.tar", help="the package: a .tar, or a library (default: module.tar)")
    parser.add_argument("-f", "--output-format", default="so", help="mlf: C for a microcontroller; else --output's suffix decides")
    parser.add_argument("--cross-compiler", default="", help="the C compiler for another machine")
    parser.add_argument("--cross-compiler-options", default="", help="flags for it")
    parser.add_argument("--dump-code", default="", metavar="FORMS", help="write relay, c or asm beside the package")
    parser.add_argument("--dump-offloads", default="", metavar="FILE", help="write what accelerators take; - for the output")
    parser.add_argument("--model-format", choices=FORMATS, help="the network's format; its content says it, too")
    parser.add_argument("--pass-config", action="append", default=[], metavar="NAME=VALUE", help="an option of passes")
    parser.add_argument("--desired-layout", nargs="+", default=[], help="NHWC or NHWC:HWIO, for convolutions")
    parser.add_argument("--desired-layout-ops", nargs="+", default=[], help="the operators that get it")
    parser.add_argument("--input-shapes", default="", metavar="SHAPES", help='shapes of inputs: "data:[1,3,224,224]"')
    parser.add_argument("-O", "--opt-level", type=int, choices=range(4), default=3, help="the level of passes")
    parser.add_argument("--disabled-pass", default="", help="passes to leave out, with commas")
    parser.add_argument("--module-name", default="default", help="the program's name")
    parser.add_argument("--mixed-precision", action="store_true", help="compute products in 16 bits")
    parser.add_argument("--mixed-precision-ops", nargs="+", default=[], help=argparse.SUPPRESS)
    parser.add_argument("--mixed-precision-calculation-type", choices=["float16", "float32"], default="float16", help="their type")
    parser.add_argument("--mixed-precision-acc-type", default=None, help=argparse.SUPPRESS)
    parser.add_argument("--executor", default="graph", help="graph or aot: one program stands for both")
    parser.add_argument("--runtime", default="cpp", help="cpp; crt with -f mlf")
    parser.add_argument("--tuning-records", default="", metavar="LOG", help="take the best schedules of a log")
    parser.add_argument("--workspace-pools", default="", help=argparse.SUPPRESS)
    parser.add_argument("--constant-pools", default="", help=argparse.SUPPRESS)
    parser.add_argument("--print-ir-before", default="", help=argparse.SUPPRESS)
    parser.add_argument("--print-ir-after", default="", help=argparse.SUPPRESS)
    parser.add_argument("--print-pass-times", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--load", action="append", default=[], metavar="FILE.py", help="code generators of your own")


def _run_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("PATH", help="the package")
    parser.add_argument("--device", default="cpu", help="cpu")
    parser.add_argument("-i", "--inputs", metavar="IN.npz", help="values of inputs")
    parser.add_argument("-o", "--outputs", "--output", metavar="OUT.npz", help="where outputs go")
    parser.add_argument("--fill-mode", choices=FILLS, default="random", help="values of other inputs")
    parser.add_argument("--print-time", action="store_true", help="print the time of a run")
    parser.add_argument("--print-top", type=int, metavar="N", help="print the largest elements of the first output")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="measurements (default: 1)")
    parser.add_argument("--number", type=int, default=1, metavar="N", help="runs in each measurement (default: 1)")
    parser.add_argument("--end-to-end", action="store_true", help="measure the copies of outputs, too")
    parser.add_argument("--profile", action="store_true", help="print the time of each kernel")
    parser.add_argument("--rpc-key", help=argparse.SUPPRESS)
    parser.add_argument("--rpc-tracker", help=argparse.SUPPRESS)
    parser.add_argument("--load", action="append", default=[], metavar="FILE.py", help="code generators of your own")


def _compile(args: argparse.Namespace) -> int:
    if args.print_pass_times:
        raise refused("--print-pass-times", "relay run --time, or a PassTimingInstrument in Python")
    check_writable(args.output)
    if args.target_host:
        title = "--target-host has no effect: --target names the processor for all code that no accelerator takes"
        report([error("R0609", title, severity="note")])
    shapes = parse_shapes(args.input_shapes)
    model = load(args.FILE, args.model_format, shapes)
    path = compiled(
        {
            "tvmc_model": model,
            "target": _target(args.target),
            "opt_level": args.opt_level,
            "executor": Executor.of_texts(args.executor, args.options["executor"]),
            "runtime": Runtime.of_texts(args.runtime, args.options["runtime"]),
            "tuning_records": args.tuning_records,
            "package_path": args.output,
            "cross": args.cross_compiler,
            "cross_options": args.cross_compiler_options,
            "output_format": args.output_format,
            "dump_code": args.dump_code,
            "dump_offloads": args.dump_offloads,
            "disabled_pass": [n for n in args.disabled_pass.split(",") if n],
            "pass_context_configs": args.pass_config,
            "additional_target_options": args.options["target"],
            "use_vm": False,
            "mod_name": args.module_name,
            "workspace_pools": args.workspace_pools or args.constant_pools,
            "print_ir_before": args.print_ir_before,
            "print_ir_after": args.print_ir_after,
            "instruments": None,
            "desired_layout": args.desired_layout,
            "desired_layout_ops": args.desired_layout_ops,
            "mixed_precision": args.mixed_precision,
            "mixed_precision_calculation_type": args.mixed_precision_calculation_type,
            "mixed_precision_acc_type": args.mixed_precision_acc_type,
        }
    )
    print(f"{path}: {Path(path).stat().st_size / 1000:.1f} kB")
    return 0


def _target(text: str) -> str:
    """A target string, or the content of a JSON file that names one."""
    return read_text(text).text if text.endswith(".json") and Path(text).is_file() else text


def _run(args: argparse.Namespace) -> int:
    if args.rpc_key or args.rpc_tracker:
        raise refused("a run on another machine", "copy the package there, and run it with relay run")
    check_writable(args.outputs)
    package = TVMCPackage(args.PATH)
    result = run(
        package,
        args.device,
        inputs=args.inputs,
        fill_mode=args.fill_mode,
        benchmark=args.print_time,
        repeat=args.repeat,
        number=args.number,
        profile=args.profile,
        end_to_end=args.end_to_end,
    )
    if args.print_time:
        print(result.format_times())
    if args.print_top:
        print(result.top(args.print_top))
    if args.outputs:
        result.save(args.outputs)
    return 0


def _tune_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("FILE", help="the network, or a Relay text")
    parser.add_argument("-o", "--output", required=True, metavar="LOG", help="the log, which grows")
    parser.add_argument("--target", default="llvm", help="what to tune for, with accelerators in front")
    parser.add_argument("--tuning-records", metavar="LOG", help="a log of other networks, to learn from")
    parser.add_argument("--trials", type=int, default=1000, metavar="N", help="measurements in all (default: 1000)")
    parser.add_argument("--tuner", choices=TUNERS, default="xgb", help="how points are chosen (default: xgb)")
    parser.add_argument("--early-stopping", type=int, metavar="N", help="leave a task after N trials without a gain")
    parser.add_argument("--tasks", default="all", help="which tasks: all, list, 0,2 or 3-5 (default: all)")
    parser.add_argument("--timeout", type=int, default=10, metavar="SECONDS", help="for a compilation, and for runs (default: 10)")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="turns of a measurement, at least 4 (default: 1)")
    parser.add_argument("--min-repeat-ms", type=int, metavar="N", help="the least time of a turn (default: 0)")
    parser.add_argument("--model-format", choices=FORMATS, help="the network's format; its content says it, too")
    parser.add_argument("--input-shapes", default="", metavar="SHAPES", help='shapes of inputs: "data:[1,3,224,224]"')
    parser.add_argument("--desired-layout", nargs="+", default=[], help="NHWC or NHWC:HWIO, for convolutions")
    parser.add_argument("--desired-layout-ops", nargs="+", default=[], help="the operators that get it")
    parser.add_argument("--mixed-precision", action="store_true", help="compute products in 16 bits")
    parser.add_argument("--mixed-precision-calculation-type", choices=["float16", "float32"], default="float16", help="their type")
    parser.add_argument("--rpc-key", help=argparse.SUPPRESS)
    parser.add_argument("--rpc-tracker", help=argparse.SUPPRESS)
    for name in _WITHOUT_EFFECT:
        parser.add_argument(f"--{name}", nargs="*", help=argparse.SUPPRESS)
    parser.add_argument("--load", action="append", default=[], metavar="FILE.py", help="code generators of your own")


def _tune(args: argparse.Namespace) -> int:
    for name in ("trials", "timeout", "repeat"):
        if getattr(args, name) < 1:
            raise RelayError(error("R0707", f"--{name} {getattr(args, name)} is not 1 or more"))
    model = load(args.FILE, args.model_format, parse_shapes(args.input_shapes))
    path = tune(
        model,
        _target(args.target),
        args.output,
        args.tuning_records,
        rpc_key=args.rpc_key or args.rpc_tracker,
        trials=args.trials,
        tuner=args.tuner,
        min_repeat_ms=args.min_repeat_ms,
        early_stopping=args.early_stopping,
        timeout=args.timeout,
        repeat=args.repeat,
        tasks_filter=args.tasks,
        desired_layout=args.desired_layout,
        desired_layout_ops=args.desired_layout_ops,
        mixed_precision=args.mixed_precision,
        mixed_precision_calculation_type=args.mixed_precision_calculation_type,
    )
    if path is not None:
        print(table(rows(loaded(path))))
    return 0


def _options(arguments: Sequence[str]) -> tuple[list[str], dict[str, dict[str, dict[str, str]]]]:
    """The arguments without options of targets, executors and runtimes, and these: by what they belong to, and its name."""
    rest: list[str] = []
    options: dict[str, dict[str, dict[str, str]]] = {"target": {}, "executor": {}, "runtime": {}}
    waiting = iter(arguments)
    for item in waiting:
        match = _OPTION.fullmatch(item)
        if match is None:
            rest.append(item)
            continue
        kind, name, key, value = match.groups()
        options[kind].setdefault(name, {})[key.replace("_", "-")] = value if value is not None else next(waiting, "")
    return rest, options


def _called(arguments: Sequence[str]) -> int:
    rest, options = _options(arguments)
    pools = [item for item in rest if _POOLS.match(item)]
    if pools:
        raise refused(pools[0].partition("=")[0], POOLS)
    parser = Parser(prog="tvmc", description=__doc__, allow_abbrev=False)
    parser.add_argument("--version", action="store_true", help="show the version of TVM whose spelling this is")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", parser_class=Parser)
    for name, (doc, add, call) in VERBS.items():
        sub = verbs.add_parser(name, help=doc, description=doc, allow_abbrev=False)
        add(sub)
        sub.add_argument("-v", "--verbose", action="count", default=0, help=argparse.SUPPRESS)
        sub.set_defaults(call=call)
    if rest[:1] == ["micro"]:
        raise refused("micro", "compile -f mlf writes C for a microcontroller")
    args = parser.parse_args(rest)
    if args.version:
        print("0.16.0")
        return 0
    if args.verb is None:
        raise UsageError("tvmc: it needs a verb: compile, run or tune", "python -m relaylang.tvm.driver.tvmc --help")
    for path in args.load:
        load_file(path)
    args.options = options
    status: int = args.call(args)
    return status


VERBS: dict[str, tuple[str, Any, Any]] = {
    "compile": ("compile a network", _compile_arguments, _compile),
    "run": ("run a compiled package", _run_arguments, _run),
    "tune": ("search schedules of a network", _tune_arguments, _tune),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    prepare()
    begin(())
    status = guarded(lambda: _called(arguments))
    end(status)
    return status


__all__ = ["main"]
