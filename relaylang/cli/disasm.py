"""Print a program compiled for the VM: its constants, kernels and instructions, each with its line of the Relay program.

The file may be for another machine. Nothing of it runs.
"""

from __future__ import annotations

import argparse

from relaylang.cli.common import check_writable, write_text
from relaylang.runtime.artifact import read_file
from relaylang.runtime.vm.file import unpacked
from relaylang.runtime.vm.listing import listing

EPILOG = """\
examples:
  relay compile numbers.relay --runtime vm -o numbers.vm
  relay disasm numbers.vm

$3 is a register, and $3! one whose value moves. c0 is a constant, k0 a kernel, .1 a field, L12 a place in the code.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("file", metavar="FILE.vm", help="what relay compile --runtime vm wrote")
    parser.add_argument("-o", "--output", metavar="FILE", help="write the text to a file")


def run(args: argparse.Namespace) -> int:
    check_writable(args.output)
    write_text(args.output, listing(unpacked(read_file(args.file), args.file)[0]))
    return 0
