"""Quantises by TVM: JSON lines [file without its ending, configuration] in, a line of nodes out (see `conformance/passes`).

Runs under the oracle's Python; its argument is the folder of `x86.py`.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "conformance" / "passes"))
sys.path.insert(0, sys.argv[1])
import numpy as np
import tvm
import x86
from tvm import relay
from tvm.target.tag import register_tag
from worker import Nodes

# Each constant is a program that runs once: optimising it takes most of the time, and changes nothing.
register_tag("llvm", {"kind": "llvm", "mtriple": x86.TRIPLE, "opt-level": 0}, override=True)

for line in sys.stdin:
    file, config = json.loads(line)
    params = {name: tvm.nd.array(value) for name, value in np.load(f"{file}.npz").items()}
    mod = relay.parse(Path(f"{file}.relay").read_text())
    with relay.quantize.qconfig(**config):
        made = relay.quantize.quantize(mod, params)
    print(json.dumps(Nodes().module(relay.transform.InferType()(made))), flush=True)
