"""Step 6, the tests: generated layers give what the interpreter gives, and a wrong program is found.

`pytest examples/accelerator/generated.py` runs them.
"""

import sys
from pathlib import Path

import numpy as np
import pytest

import relaylang as relay
from relaylang.partition import partition

sys.path.insert(0, str(Path(__file__).parent))
import checks  # noqa: F401  (registers the table)
from codegen import emit, layers_of
from simulator import simulate


def random_layer(seed):
    """A module of one layer, and its input."""
    rng = np.random.default_rng(seed)
    n, i, o = (int(size) for size in rng.integers(1, 40, 3))
    weights = relay.const(rng.integers(-128, 128, (o, i)).astype(np.int8))
    x = relay.var("x", shape=(n, i), dtype="int8")
    dense = relay.nn.dense(x, weights, units=o, out_dtype="int32")
    limited = relay.clip(relay.right_shift(dense, relay.const(np.int32(rng.integers(0, 12)))), 0, 127)
    mod = relay.IRModule.from_expr(relay.Function([x], relay.cast(limited, "int8")))
    return relay.transform.InferType()(mod), rng.integers(-128, 128, (n, i)).astype(np.int8)


def program_of(mod):
    """The program of a module's one layer."""
    (region,) = [f for f in partition(mod, "mac8").functions.values() if f.attrs.get("Compiler") == "mac8"]
    ((_, cast),), _ = layers_of(region)
    return emit(cast)


@pytest.mark.parametrize("seed", range(20))
def test_a_generated_layer(seed):
    mod, x = random_layer(seed)
    program = program_of(mod)
    assert np.array_equal(simulate(program, x), relay.evaluate(mod, x))


def test_a_program_without_a_load():
    mod, x = random_layer(0)
    program = bytearray(program_of(mod))
    program[10] = 0  # CLEAR in place of the first LOAD
    with pytest.raises(ValueError, match="byte 4: MAC uses what no instruction has set"):
        simulate(bytes(program), x)
