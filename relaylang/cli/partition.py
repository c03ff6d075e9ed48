"""Partition a program for an accelerator, and give the reasons for calls that stay on the host.

The result has a function for each region. With --report, a table shows the target of each call. For a call that stays, it
shows the nearest pattern and the reason for the refusal.
"""

from __future__ import annotations

import argparse
from typing import Any

from relaylang.backends.registry import ALIASES, BACKENDS, parse_target, split_targets
from relaylang.cli.arguments import add_load_option, add_value_options, load_files, needed_by, with_values
from relaylang.cli.common import add_print_options, check_ending, check_program_file, check_writable, report, write_text
from relaylang.cli.inputs import entry_function
from relaylang.cli.models import FILE_HELP, add_import_options, import_options
from relaylang.cli.print import write_printed
from relaylang.cli.program import check, load
from relaylang.diagnostics import error
from relaylang.ir import Function, IRModule, TensorType, post_order
from relaylang.partition import accelerators, explain, get_pattern_table, json_text, partition, prepare, table_text
from relaylang.partition.report import hints

EPILOG = """\
examples:
  relay partition net.relay --target ethos-u --params net.npz --report
  relay partition net.relay --target dnnl --no-types
  relay partition net.relay --target ethos-u --report-format json -o report.json
  relay partition net.relay --target cmsis-nn --random-params 0 -o parts.relay
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help=FILE_HELP)
    parser.add_argument(
        "-t",
        "--target",
        dest="accelerator",
        required=True,
        metavar="NAME",
        help=f"one of {', '.join(accelerators())}, or an installed package's",
    )
    parser.add_argument("--report", action="store_true", help="print where each call goes and why, not the program")
    parser.add_argument(
        "--report-format", choices=["table", "json"], help="print the report in this format (default: table, or by the ending of -o)"
    )
    parser.add_argument("--mod-name", default="default", metavar="NAME", help="goes into the functions' names (default)")
    parser.add_argument(
        "-i",
        "--input",
        action="append",
        default=[],
        metavar="NAME",
        help="a parameter that --random-params leaves open (default: the first)",
    )
    add_value_options(parser)
    add_print_options(parser)
    add_import_options(parser)
    add_load_option(parser)


def run(args: argparse.Namespace) -> int:
    load_files(args)
    reports = args.report or args.report_format is not None
    if reports:
        _check_report_file(args)
    else:
        check_program_file("partition", args.output)
    names = accelerators_of(args.accelerator)
    program = load(args.file, options=import_options(args))
    check(program)
    report(program.notes)
    function = entry_function(program.module, "main")
    mod, params = _with_values(program.module, function, args)
    texts = []
    for name in names:
        ready = prepare(mod, name, params)
        mod = partition(ready, name, mod_name=args.mod_name)
        rows = explain(ready, mod, name)
        if reports:
            text = {"table": table_text, "json": json_text}[args.report_format or "table"]
            texts.append(text(rows, name) + "\n")
        elif not any(row.region for row in rows):
            why = [hint.removeprefix("hint: ") for hint in hints(rows, name) if hint]
            more = [*why, "--report gives each call's reason"]
            report([error("R0620", f"no call of @main goes to {name}", function.span, severity="note", notes=more)])
    if texts:
        write_text(args.output, "\n".join(texts))
    else:
        write_printed(mod, args)
    return 0


def _check_report_file(args: argparse.Namespace) -> None:
    """Refuse an output that cannot hold the report. Its ending says the format where no option does."""
    check_writable(args.output)
    if args.report_format is None and (args.output or "").lower().endswith(".json"):
        args.report_format = "json"
    form = args.report_format or "table"
    makes = "--report-format json writes JSON" if form == "json" else "--report writes a table; --report-format json, JSON"
    check_ending("partition", args.output, makes, (".json",) if form == "json" else (".txt",))


def _with_values(mod: IRModule, function: Function, args: argparse.Namespace) -> tuple[IRModule, dict[str, Any]]:
    """The module with the constants that the options give, and the values of the function's parameters."""
    if not args.params and args.random_params is None:
        return mod, {}
    open_names = set(args.input) or {p.name_hint for p in function.params[:1]}
    needed = needed_by([p for p in function.params if p.name_hint not in open_names], post_order(function.body))
    needed = [n for n in needed if isinstance(n.checked_type, TensorType)]
    return with_values(mod, needed, args, open_ended=args.random_params is None)


def accelerators_of(text: str) -> list[str]:
    """The accelerators of a target, which may be a target string of `relay compile`: `ethos-u -accelerator=ethos-u55-256, c`.

    Raises `RelayError` (R0513, R0601, R0602).
    """
    known = accelerators()
    parts = [part.split()[0] for part in split_targets(text) if part.split()]
    named = [ALIASES.get(part, part) for part in parts]
    if text in known or (len(text.split()) < 2 and "," not in text) or not any(name in known for name in named):
        get_pattern_table(text)
        return [text]
    for part, name in zip(split_targets(text), named):
        if name in BACKENDS or name not in known:
            parse_target(part)  # checks the options
    return [name for name in named if name in known]
