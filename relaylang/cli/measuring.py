"""Measures a compiled program that `relay run` runs: --benchmark, --profile."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from typing import Any

from relaylang.cli.common import check_ending, check_writable, write_bytes
from relaylang.cli.inputs import bad_value
from relaylang.cli.usage import UsageError
from relaylang.interpreter import Profile as InterpreterProfile
from relaylang.runtime.profile import Profile
from relaylang.runtime.vm.profile import VMProfile

FORMATS = ("table", "json", "trace", "svg")
_REPETITIONS = ("repeat", "number", "min_repeat_ms")


def add_measuring_options(parser: argparse.ArgumentParser) -> None:
    """The options that measure time."""
    group = parser.add_argument_group("measuring")
    group.add_argument("--time", action="store_true", help="print the time of each stage to stderr")
    group.add_argument(
        "--profile",
        nargs="?",
        const="",
        metavar="FILE",
        help="time by operator, or by kernel of compiled code, as a table on stderr; with a file, also in --profile-format",
    )
    group.add_argument(
        "--profile-format",
        choices=FORMATS,
        metavar="FORMAT",
        help="table, json, svg for cycles of VTA, or trace for Chrome's viewer (default: by the file's ending, table for stderr)",
    )
    group.add_argument("--benchmark", action="store_true", help="print the time of a run of compiled code instead of its value")
    group.add_argument("--repeat", type=int, metavar="N", help="measurements of --benchmark (default: 5), or runs of --profile (10)")
    group.add_argument("--number", type=int, metavar="N", help="runs in each measurement of --benchmark (default: 5)")
    group.add_argument("--min-repeat-ms", type=float, metavar="MS", help="what a measurement of --benchmark takes at least")


def check_measuring(args: argparse.Namespace, repeats: bool) -> None:
    """`repeats` says whether a profile is of several runs.

    Raises `UsageError` for options that do not go together, `RelayError` for wrong values.
    """
    if args.profile_format is not None and args.profile is None:
        raise UsageError("relay run: --profile-format goes with --profile", "relay run --help")
    if args.benchmark and args.profile is not None:
        raise UsageError("relay run: --benchmark and --profile are two calls", "relay run --help")
    for word in _REPETITIONS:
        value, option = getattr(args, word), f"--{word.replace('_', '-')}"
        if value is None:
            continue
        if not (args.benchmark or (word == "repeat" and repeats and args.profile is not None)):
            raise UsageError(f"relay run: {option} goes with --benchmark", "relay run --help")
        least, problem = (0, "negative") if word == "min_repeat_ms" else (1, "not 1 or more")
        if not value >= least:
            raise bad_value(f"{option} {value} is {problem}")
    check_writable(args.profile or None)
    if args.profile_format is None and (args.profile or "").endswith(".svg"):
        args.profile_format = "svg"
    if args.profile_format == "svg":
        check_ending("run", args.profile or None, "--profile-format svg writes a picture", (".svg",))
    else:
        check_ending("run", args.profile or None, "--profile writes JSON", (".json",))


def measured(args: argparse.Namespace, artifact: Any, inputs: Mapping[str, Any]) -> str | None:
    """The text of --benchmark; what --profile found goes to stderr and its file."""
    if args.profile is not None and "cycles" in artifact.capabilities:
        profile = artifact.profile()
        write_profile(args, profile, svg=profile.svg)
        return None
    if "measure" not in artifact.capabilities:
        raise bad_value("only programs for the target c can be measured")
    if args.benchmark:
        return str(artifact.benchmark(**repetitions(args), inputs=inputs))
    write_profile(args, artifact.profile(**repetitions(args), inputs=inputs))
    return None


def repetitions(args: argparse.Namespace) -> dict[str, Any]:
    """How often --benchmark or --profile runs the program, as far as options say."""
    return {name: getattr(args, name) for name in _REPETITIONS if getattr(args, name) is not None}


def write_profile(
    args: argparse.Namespace,
    profile: Profile | InterpreterProfile | VMProfile,
    table: str | None = None,
    svg: Callable[[], str] | None = None,
) -> None:
    """Write a profile where the options say; `table` is its table, `svg` makes its picture. Raises `RelayError` where it has none."""
    forms = {"table": lambda: table or str(profile), "json": profile.json}
    if not isinstance(profile, VMProfile):
        forms["trace"] = profile.chrome_trace
    if svg is not None:
        forms["svg"] = svg
    if args.profile_format not in (None, *forms):
        whose = {"svg": "that count cycles: those for VTA", "trace": "that keep the time of each step, not for those of the VM"}
        raise bad_value(f"--profile-format {args.profile_format} is for programs {whose[args.profile_format]}")
    if args.profile:
        write_bytes(args.profile, forms[args.profile_format or ("trace" if "trace" in forms else "json")]().encode())
    print(forms["table" if args.profile else args.profile_format or "table"](), file=sys.stderr)
