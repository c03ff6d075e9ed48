"""Step 4, the code generator: a layer as instructions of two bytes, with the weights after them.

CLEAR          sets the 8 sums to 0
LOAD n         reads vector n of the input
MAC n          adds its products with tile n of the weights to the sums
STORE n        writes the sums, shifted and limited, as vector n of the output
END            ends a row; the next row runs the same instructions
"""

import struct
import sys
from pathlib import Path

from relaylang.ir import Call, Function, Tuple, post_order

sys.path.insert(0, str(Path(__file__).parent))
from checks import parts
from layouts import blocks, pack_weights

NAMES = ("CLEAR", "LOAD", "MAC", "STORE", "END")
#: The header of a program: channels in and out, the shift, and the number of instructions.
HEADER = struct.Struct("<HHHH")


def layers_of(region):
    """The layers of a region in order: the number of the value that each takes, and the cast that ends it.

    Values are numbered: the region's parameters first, then the results of layers. The last item numbers the results.
    """
    numbers = {id(param): n for n, param in enumerate(region.params)}
    layers = []
    for call in post_order(region.body):
        if isinstance(call, Call) and isinstance(call.op, Function):
            layers.append((numbers[id(call.args[0])], call.op.body))
            numbers[id(call)] = len(numbers)
    outputs = region.body.fields if isinstance(region.body, Tuple) else [region.body]
    return layers, [numbers[id(out)] for out in outputs]


def emit(cast):
    """The program of a layer as bytes."""
    _, weights, shift, _ = parts(cast)
    outputs, inputs = blocks(weights.shape[0]), blocks(weights.shape[1])
    code = []
    for o in range(outputs):
        code.append(("CLEAR", 0))
        for i in range(inputs):
            code += [("LOAD", i), ("MAC", i)]
        code.append(("STORE", o))
    code.append(("END", 0))
    header = HEADER.pack(weights.shape[1], weights.shape[0], int(shift.reshape(-1)[0]), len(code))
    return header + b"".join(bytes([NAMES.index(name), n]) for name, n in code) + pack_weights(weights).tobytes()


def listing(program):
    """The instructions of a program as text."""
    *_, count = HEADER.unpack_from(program)
    pairs = [program[HEADER.size + 2 * n :][:2] for n in range(count)]
    return " ".join(f"{NAMES[name]} {n}" if NAMES[name] in ("LOAD", "MAC", "STORE") else NAMES[name] for name, n in pairs)
