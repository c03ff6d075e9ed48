"""Model files in the place of Relay text: options about their import, and the import."""

from __future__ import annotations

import argparse
import json
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from relaylang.cli.usage import UsageError
from relaylang.frontends.contents import KNOWN, is_caffe, is_darknet, is_graph, is_mlir, is_pir, is_symbol, is_text
from relaylang.frontends.options import DEFAULTS, Options
from relaylang.ir import ANY
from relaylang.ir.types import Dim

if TYPE_CHECKING:
    from relaylang.frontends.common import Imported

#: What a FILE argument takes.
FILE_HELP = f"Relay text, or a network of {KNOWN}; - is the standard input"
_SHAPE = re.compile(r"(?:\d+|\?)(?:[x,](?:\d+|\?))*|scalar")


def add_import_options(parser: argparse.ArgumentParser) -> None:
    """The options about the inputs of a network."""
    parser.add_argument(
        "--shape",
        action="append",
        default=[],
        metavar="NAME=1x3x224x224",
        help="the shape of a network's input, where ? is an unknown extent; or the number of an extent that it names: batch=1",
    )
    parser.add_argument("--dtype", action="append", default=[], metavar="NAME=DTYPE", help="the element type of a network's input")
    parser.add_argument(
        "--value",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="the value of a network's input, a number or lists of them: it becomes a constant",
    )
    parser.add_argument("--weights", metavar="FILE", help="the weights of a network that has a file for them (default: beside it)")


def import_options(args: argparse.Namespace) -> Options:
    """What the arguments say about an import."""
    return Options(
        shapes={name: _shape(text) for name, text in _pairs("--shape", args.shape)},
        dtypes=dict(_pairs("--dtype", args.dtype)),
        values={name: _value(text) for name, text in _pairs("--value", args.value)},
        freeze=getattr(args, "freeze", True),
        layout=getattr(args, "layout", None) or "",
        partial=getattr(args, "partial", False),
        weights=args.weights or "",
    )


def check_unused(options: Options | None, name: str) -> None:
    """Raise `UsageError` for options about inputs of a network, where the file `name` is Relay text."""
    if options is not None and (options.shapes or options.dtypes or options.values or options.weights):
        raise UsageError(f"--shape, --dtype, --value and --weights are for networks, and {name} is Relay text", "relay import --help")


def _pairs(option: str, items: Sequence[str]) -> list[tuple[str, str]]:
    pairs = []
    for item in items:
        name, equals, value = item.rpartition("=")
        if not equals or not name:
            raise UsageError(f"{option} wants NAME=VALUE, not {item}", "relay import --help")
        pairs.append((name, value.strip()))
    return pairs


def _shape(text: str) -> tuple[Dim, ...]:
    plain = text.strip("[]() ").replace(" ", "") or ("scalar" if text else "")
    if not _SHAPE.fullmatch(plain):
        raise UsageError(f"--shape wants extents such as 1x3x224x224, not {text}", "relay import --help")
    if plain == "scalar":
        return ()
    return tuple([ANY if n == "?" else int(n) for n in re.split("[x,]", plain)])


def _value(text: str) -> Any:
    """An array of a number, or of lists of them: real numbers are float32, as in networks."""
    try:
        array = np.array(json.loads(text))
        if array.dtype.kind in "bif":
            return array.astype("float32") if array.dtype.kind == "f" else array
    except ValueError:
        pass
    raise UsageError(f"--value wants a number, true, false or lists of numbers, not {text}", "relay import --help")


def may_be_network(data: bytes) -> bool:
    """Whether a file's contents may be a network. They begin with control characters, as no text does, or are a known text."""
    texts = (is_symbol, is_pir, is_darknet, is_text, is_mlir, is_caffe)
    return min(data[:64], default=32) < 9 or any(test(data) for test in texts) or (data[:1] == b"\n" and is_graph(data))


def imported(data: bytes, path: str, options: Options | None) -> Imported | None:
    """A program from a network's file; None where the contents are of no known format. Raises `RelayError`."""
    from relaylang.frontends.formats import import_bytes

    folder = "" if path == "-" else os.path.dirname(os.path.abspath(path))
    return import_bytes(data, "<stdin>" if path == "-" else path, replace(options or DEFAULTS, folder=folder))


__all__ = ["FILE_HELP", "add_import_options", "check_unused", "import_options", "imported", "may_be_network"]
