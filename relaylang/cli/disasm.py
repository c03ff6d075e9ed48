"""Print compiled programs: those for the VM with their kernels and instructions, those for an Ethos-U or VTA with theirs.

Each instruction shows its line of the Relay program. The file may be for another machine. Nothing of it runs.
"""

from __future__ import annotations

import argparse

from relaylang.backends.ethosu.listing import archive_listing
from relaylang.backends.ethosu.listing import listing as stream_listing
from relaylang.backends.ethosu.stream import MAGIC, read_stream
from relaylang.backends.ethosu.tflite import npu_layers
from relaylang.backends.vta import VTAArtifact
from relaylang.backends.vta import program as vta
from relaylang.cli.common import check_ending, check_writable, write_text
from relaylang.cli.usage import UsageError
from relaylang.frontends.contents import is_tflite
from relaylang.runtime.artifact import loads, read_file
from relaylang.runtime.vm.file import unpacked
from relaylang.runtime.vm.listing import listing

EPILOG = """\
examples:
  relay compile numbers.relay --runtime vm -o numbers.vm
  relay disasm numbers.vm
  relay compile examples/ethosu_bars.relay --target "ethos-u, c" -o bars.tar && relay disasm bars.tar

Of a .vm file: $3 is a register, and $3! one whose value moves. c0 is a constant, k0 a kernel, .1 a field, L12 a place in the
code. Of an Ethos-U's stream: the byte in the file, the command, its value. Operations have their layer and the cycles that
Vela expects. Of a stream of VTA: the byte in the stream, the instruction, its flags, and the fields that are not 0.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", metavar="FILE", help="a .vm file, an archive for an Ethos-U or VTA, a .npu.bin, .vta, or Vela's .tflite"
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="write the text to a file")


def run(args: argparse.Namespace) -> int:
    check_writable(args.output)
    check_ending("disasm", args.output, "the result is text", (".txt", ".s"))
    write_text(args.output, _text(args.file))
    return 0


def _text(path: str) -> str:
    content = read_file(path)
    if content.startswith(MAGIC):
        return stream_listing(read_stream(content, path))
    if content.startswith(vta.MAGIC):
        return vta.listing(vta.read_program(content, path), path)
    if is_tflite(content):
        return "\n".join(f"{layer.name}: {stream_listing(layer.stream())}" for layer in npu_layers(content, path)[1])
    if path.endswith(".vm"):
        return listing(unpacked(content, path)[0])
    artifact = loads(content, name=path)
    if isinstance(artifact, VTAArtifact):
        return "\n".join([f"@{name}: {vta.listing(program, path)}" for name, program in artifact.regions.items()])
    if "simulate" not in artifact.capabilities or not artifact.regions:
        raise UsageError(f"relay disasm: {path} holds machine code; relay compile --emit c shows its source", "relay disasm --help")
    return archive_listing(artifact.regions)
