"""Scripts as users of TVM wrote them, in examples/legacy: `relay tvm` runs them unchanged."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

from tests.shared import ROOT, few

#: Script -> what it prints, and the modules that it needs.
SCRIPTS: dict[str, tuple[list[str], list[str]]] = {
    "conv_net": (["10 classes, 5 parameters", "the scores sum to 1.0", "3 times of a run, all positive: True"], []),
    "rewrite": (["nn.relu(%1)", "sqrt is gone: True and batch_norm is there: True", "epsilon: True"], []),
    "byoc": (
        ["tvmgen_default_my_accel_main_0 for my_accel has ['my_accel.conv2d', 'my_accel.conv2d']", "the same values: (1, 4, 4, 4)"],
        [],
    ),
    "import_onnx": (["image [1, 1, 16, 16]", "the digit is 7"], ["onnx"]),
    "vm": (["2 to the power of 10 is 1024.0", "the sum up to 100 is 5050", "the list's sum is 10"], ["relaylang.backends.vm"]),
    "quick_start": (
        [
            "96 inputs, 95 of them parameters",
            "the scores sum to 1.0",
            "['net.json', 'net.params', 'net.tar']",
            "the loaded files give the same: True",
        ],
        [],
    ),
    "pass_infra": (
        [
            "at first: 7 calls",
            "constants folded: 6",
            "equal calls shared: 6",
            "in a sequence: 5 True",
            "without FoldConstant: 6",
            "HalveConstants adds ['divide']",
            "['FoldConstant', 'EliminateCommonSubexpr', 'FuseOps']",
            "each has a time: True",
        ],
        [],
    ),
    "inner_values": (
        ["each row sums to 1: True", "the last node has the result: True", "kinds of nodes: ['null', 'tvm_op']"],
        [],
    ),
    "instruments": (
        [
            "watching",
            "watched SimplifyInference +9, FoldConstant -9",
            "fused: True",
            "watching",
            "watched ",
            "without fusion: True",
            "a failing instrument ends the block, and leaves none: True",
        ],
        [],
    ),
    "visualise": (
        ["the text has 3 of 3 calls", "calls: ['conv2d', 'relu', 'global_avg_pool2d']", "edges: 5 and a file: True"],
        [],
    ),
    "graph_conv": (["Tensor[(30, 3), float32]", "the same as with a dense matrix"], []),
    "sparse": (
        [
            "transposes are gone: True",
            "['nn.dense', 'nn.relu', 'nn.sparse_dense']",
            "parameters: ['data', 'indices', 'indptr', 'w2']",
            "the same values",
        ],
        [],
    ),
    "tvmc_python": (["the digit is 7", "times: 2 and the same result: True"], ["onnx"]),
    "uma": (["dimension: 16", "regions: 1", "the accelerator's sum is right"], []),
    "tune": (
        [
            "3 tasks, each with knobs: True",
            *[
                line
                for number, name in enumerate(("ga", "random", "grid"), 1)
                for line in (f"[Task  {number}/ 3]", f"{name} tuner: True")
            ],
            "measurements without an error: True True",
            "each row sums to 1: True",
        ],
        [],
    ),
    "micro": (
        ["aot crt", "C files: True and a header: True", "the archive's version: 7 with the modules ['words']"],
        [],
    ),
    "remote": (["the best is 3 of 4", "a benchmark: True", "an array there: True"], []),
    "calibrate": (
        [
            "layers that stay as floats: [0]",
            "int8 with a global scale: True",
            "int8 with calibration: True",
            "errors below a quarter: True True",
        ],
        [],
    ),
    "quantize": (
        [
            "operators: qnn.conv2d, qnn.dequantize, qnn.quantize, qnn.requantize",
            "qnn is left: False",
            "differs by a step at most: True",
        ],
        [],
    ),
}


def test_every_script_is_listed() -> None:
    assert {path.stem for path in (ROOT / "examples/legacy").glob("*.py")} == set(SCRIPTS)


@pytest.mark.parametrize("names", few([list(SCRIPTS)[:2], list(SCRIPTS)[2:]], list(SCRIPTS)[:2]), ids=["first", "others"])
def test_the_scripts_run(names: list[str]) -> None:
    """In one process: half of the time of a script is the start of its process."""
    names = [name for name in names if all(importlib.util.find_spec(module) for module in SCRIPTS[name][1])]
    assert len(names) >= 2
    code = "import sys\nfrom relaylang.cli import main\nfor name in sys.argv[1:]:\n"
    code += "    print('==', name, main(['tvm', f'examples/legacy/{name}.py']), flush=True)"
    done = subprocess.run([sys.executable, "-I", "-c", code, *names], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    lines = [line.partition("  Current/Best")[0] for line in done.stdout.splitlines()]
    assert lines == [line for name in names for line in (*SCRIPTS[name][0], f"== {name} 0")]
