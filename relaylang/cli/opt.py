"""Run passes over a program and print the result.

--passes is a list with commas: NAME or NAME(option=value). Without it, the passes run that prepare a network for
compilation, and stderr names them. --list shows all passes. Reports about passes (--print-changed, --time, --bisect) go to
stderr.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable
from typing import Any

from relaylang.cli.arguments import add_value_options
from relaylang.cli.bisect import bisect
from relaylang.cli.common import (
    VERIFY_HELP,
    add_print_options,
    check_ending,
    check_program_file,
    check_writable,
    exit_status,
    report,
    verified,
    write_text,
)
from relaylang.cli.models import FILE_HELP, add_import_options, import_options
from relaylang.cli.print import write_printed
from relaylang.cli.program import check, load
from relaylang.cli.progress import Stages
from relaylang.cli.usage import UsageError
from relaylang.diagnostics import RelayError, SourceFile
from relaylang.ir import IRModule
from relaylang.passes import PASSES
from relaylang.passes.context import PassContext, PassInfo, PassInstrument
from relaylang.passes.describe import heading, summary
from relaylang.passes.instruments import PassTimingInstrument, PrintChanged, PrintIRAfter, PrintIRBefore, Verify
from relaylang.passes.manager import Pass, Sequential
from relaylang.passes.spec import STANDARD, parse_passes
from relaylang.plugins.files import Passes
from relaylang.runtime.files import together
from relaylang.viz.steps import DrawSteps

EPILOG = """\
examples:
  relay opt net.relay
  relay opt net.relay --passes SimplifyInference,FoldConstant,FuseOps
  relay opt net.relay --passes "FoldConstant,FuseOps(fuse_opt_level=2)" --print-changed --time
  relay opt net.relay --load my_passes.py --passes MyPass,DeadCodeElimination --verify
  relay opt net.relay --passes "SimplifyInference,MyPass,FuseOps" --load my_passes.py --bisect
  relay opt net.relay --passes SimplifyInference,FuseOps --viz steps.html
  relay opt --list

--bisect runs the program on random inputs (or --input, --params) after each pass, and names the first pass after which
the result is another one.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", nargs="?", help=FILE_HELP)
    parser.add_argument("--passes", metavar="LIST", help="what to run: NAME, or NAME(option=value), with commas")
    parser.add_argument("--load", action="append", default=[], metavar="FILE.py", help="passes of your own")
    parser.add_argument("--list", action="store_true", help="show every pass with its options")
    parser.add_argument("--opt-level", type=int, metavar="N", help="leave passes of higher levels out (4; 3 without --passes)")
    parser.add_argument("--disable", action="append", default=[], metavar="NAME", help="leave a pass out")
    parser.add_argument("--config", action="append", default=[], metavar="KEY=VALUE", help="the pass context's options")
    parser.add_argument("--verify", action="store_true", help="check types and variables after every pass")
    parser.add_argument("--time", action="store_true", help="print the time of each pass")
    parser.add_argument("--print-before", action="store_true", help="print the program before every pass")
    parser.add_argument("--print-after", action="store_true", help="print the program after every pass")
    parser.add_argument("--print-changed", action="store_true", help="print what every pass changed")
    parser.add_argument("--viz", metavar="FILE.html", help="write a page that shows the graph before and after every pass")
    parser.add_argument("--verify-diagnostics", action="store_true", help=VERIFY_HELP)
    parser.add_argument("--bisect", action="store_true", help="find the first pass that changes the result")
    parser.add_argument("--entry", default="main", metavar="NAME", help="the function that --bisect runs (main)")
    parser.add_argument("-i", "--input", action="append", default=[], metavar="NAME=VALUE", help="a value for --bisect")
    add_value_options(parser)
    add_print_options(parser)
    add_import_options(parser)


def run(args: argparse.Namespace) -> int:
    registry = Passes(PASSES, args.load)
    if args.list:
        print(listing(registry))
        return 0
    if args.file is None:
        raise UsageError("relay opt: give FILE, or --list", "relay opt --help")
    check_program_file("opt", args.output)
    check_writable(args.viz)
    check_ending("opt", args.viz, "--viz writes a page of HTML", (".html", ".htm"))
    if args.opt_level is None:
        args.opt_level = 3 if args.passes is None else 4
    passes = parse_passes(STANDARD if args.passes is None else args.passes, registry)
    if args.passes is None:
        infos = [(text, step.info) for text, step in zip(STANDARD.split(", "), passes)]
        run = [text for text, info in infos if info.opt_level <= args.opt_level and info.name not in args.disable]
        print(f"runs --passes {','.join(run)}", file=sys.stderr)
    if args.verify_diagnostics:
        return exit_status(verified(args.file, lambda part: _run(part, passes, args), quiet=True))
    return _run(args.file, passes, args)


def _run(text: str | SourceFile, passes: list[Pass], args: argparse.Namespace) -> int:
    """Run the passes over a file or a text, and print the result."""
    with Stages() as stages:
        with stages.stage("read"):
            program = load(text, options=import_options(args))
        with stages.stage("check"):
            check(program)
        report(program.notes)
        if args.bisect:
            with stages.stage("passes"):
                return bisect(program.module, passes, args, _config(args.config))
        timing = PassTimingInstrument()
        drawn = DrawSteps(program.module) if args.viz else None
        with stages.stage("passes", _count(passes)) as step, _context(args, timing, drawn, stages, step):
            mod = Sequential(passes)(program.module)
            if args.time:
                with stages.hidden():
                    print(timing.render(), file=sys.stderr)
        if not args.no_types:
            with stages.stage("check"):
                Sequential([PASSES["InferType"]()])(mod)
    with together():
        if drawn is not None:
            write_text(args.viz, drawn.page(os.path.basename(program.name)))
        write_printed(mod, args)
    return 0


def listing(registry: Passes) -> str:
    """Each pass with its options, and its summary."""
    lines = []
    for name in sorted(registry):
        try:
            maker = registry[name]
        except RelayError as wrong:
            lines += [name, f"    {wrong.diagnostics[0].title}"]
            continue
        lines.append(heading(name, maker))
        if said := summary(maker):
            lines.append(f"    {said}")
    return "\n".join(lines)


def _count(passes: Iterable[Pass]) -> int:
    """The number of passes, those of sequences one by one."""
    return sum(_count(p.passes) if isinstance(p, Sequential) else 1 for p in passes)


class Counted(PassInstrument):
    """Shows the passes of the list by name and number, but not those that they run themselves."""

    name = "Counted"

    def __init__(self, stages: Stages, step: Callable[[int], None]) -> None:
        self.stages, self.step, self.depth = stages, step, 0

    def run_before_pass(self, mod: IRModule, info: PassInfo) -> None:
        if self.depth == 0:
            self.stages.rename(info.name)
        self.depth += 1

    def run_after_pass(self, mod: IRModule, info: PassInfo) -> None:
        self.depth -= 1
        if self.depth == 0:
            self.step(1)


def _context(
    args: argparse.Namespace, timing: PassTimingInstrument, drawn: DrawSteps | None, stages: Stages, step: Callable[[int], None]
) -> PassContext:
    def say(text: str) -> None:
        with stages.hidden():
            print(text, file=sys.stderr)

    instruments: list[PassInstrument] = [Counted(stages, step)]
    if args.print_before:
        instruments.append(PrintIRBefore(write=say, show_types=not args.no_types))
    if args.time:
        instruments.append(timing)
    if args.print_after:
        instruments.append(PrintIRAfter(write=say, show_types=not args.no_types))
    if args.print_changed:
        instruments.append(PrintChanged(write=say, show_types=False))
    if args.verify:
        instruments.append(Verify())
    if drawn is not None:
        instruments.append(drawn)
    return PassContext(args.opt_level, disabled_pass=args.disable, config=_config(args.config), instruments=instruments)


def _config(items: list[str]) -> dict[str, Any]:
    config: dict[str, Any] = {}
    for item in items:
        key, equals, value = item.partition("=")
        if not equals:
            raise UsageError(f"relay opt: --config wants KEY=VALUE, not {item}", "relay opt --help")
        plain = {"True": True, "False": False, "true": True, "false": False}
        config[key] = plain.get(value, int(value) if value.lstrip("-").isdigit() else value)
    return config
