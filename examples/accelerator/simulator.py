"""Step 5, the simulator: executes a program. With it compiled Relay programs run, `relay run --load` included."""

import json
import sys
from pathlib import Path

import numpy as np

from relaylang.runtime.external import codegen

sys.path.insert(0, str(Path(__file__).parent))
from codegen import HEADER, NAMES, emit, layers_of
from layouts import BLOCK, blocks, pack, unpack


def simulate(program, x):
    """The rows (N, O) that a program makes of rows (N, I). Raises `ValueError` for a program that is wrong."""
    channels, outputs, shift, count = HEADER.unpack_from(program)
    code, tiles = program[HEADER.size :][: 2 * count], program[HEADER.size + 2 * count :]
    weights = np.frombuffer(tiles, np.int8).reshape(blocks(outputs), blocks(channels), BLOCK, BLOCK).astype(np.int32)
    vectors = pack(x).astype(np.int32)
    result = np.zeros((len(x), blocks(outputs), BLOCK), np.int8)
    sums = held = None
    row = 0
    for at in range(0, len(code), 2):
        name, n = NAMES[code[at]], code[at + 1]
        if name == "CLEAR":
            sums = np.zeros((len(x), BLOCK), np.int32)
        elif name == "LOAD":
            held = vectors[:, n]
        elif sums is None or held is None:
            raise ValueError(f"byte {at}: {name} uses what no instruction has set")
        elif name == "MAC":
            sums = sums + held @ weights[row, n].T
        elif name == "STORE":
            result[:, n] = np.clip(sums >> shift, 0, 127)
            row += 1
        else:
            return unpack(result, outputs)
    raise ValueError("the program has no END")


def load(content, symbol):
    """The function that a compiled program calls for a region: it takes inputs, then outputs to fill."""
    saved = json.loads(content)
    count = len(saved["outputs"])

    def run(*tensors):
        values = list(tensors[:-count])
        for source, program in saved["layers"]:
            values.append(simulate(bytes.fromhex(program), values[source]))
        for number, out in zip(saved["outputs"], tensors[-count:]):
            np.copyto(out, values[number])

    return run


@codegen("mac8", load=load)
def generate(region):
    layers, outputs = layers_of(region.function)
    return json.dumps({"layers": [(source, emit(cast).hex()) for source, cast in layers], "outputs": outputs}).encode()
