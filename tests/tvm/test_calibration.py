"""What partitions are given and give."""

from __future__ import annotations

import numpy as np

from relaylang.analysis import get_calibration_data, get_calibration_ranges
from relaylang.interpreter import evaluate
from relaylang.op.contrib import partition_for_dnnl
from relaylang.syntax import parse


def test_inputs_and_outputs_of_each_partition() -> None:
    text = """def @main(%x: Tensor[(2, 8), float32], %w: Tensor[(8, 8), float32]) {
      sin(nn.dense(sin(nn.dense(%x, %w, units=8)), ones(shape=[3, 8], dtype="float32"), units=3))
    }"""
    mod = partition_for_dnnl(parse(text).module)
    chance = np.random.default_rng(1)
    data = {"x": chance.normal(size=(2, 8)).astype("float32"), "w": chance.normal(size=(8, 8)).astype("float32")}
    found = get_calibration_data(mod, data)
    assert sorted(gv.name_hint for gv in found) == sorted(gv.name_hint for gv, f in mod.functions.items() if "Compiler" in f.attrs)
    assert len(found) == 2
    for gv, values in found.items():
        (output,) = values["outputs"]
        assert len(values["calls"]) == 1 and len(values["inputs"]) == len(mod[gv].params)
        np.testing.assert_array_equal(output, evaluate(mod, *values["inputs"], entry=gv.name_hint))
    first, second = sorted(found.values(), key=lambda v: v["outputs"][0].shape[1], reverse=True)
    assert any(np.array_equal(v, data["x"]) for v in first["inputs"])
    assert any(np.array_equal(v, np.sin(first["outputs"][0])) for v in second["inputs"])


def test_every_call_of_a_partition_in_a_loop() -> None:
    mod = parse("""
def @relu(%x: Tensor[(3), float32], Compiler="toy", Primitive=1, global_symbol="relu") -> Tensor[(3), float32] { nn.relu(%x) }
def @main(%x: Tensor[(3), float32], %n: int32) -> Tensor[(3), float32] {
  if (less(%n, 1)) { %x } else { @main(subtract(@relu(%x), 1f), subtract(%n, 1)) }
}
def @unused(%x: Tensor[(3), float32], Compiler="toy") -> Tensor[(3), float32] { %x }
""").module
    found = get_calibration_data(mod, {"x": np.array([-1, 2, 5], "float32"), "n": 3})
    ((gv, values),) = found.items()
    assert gv.name_hint == "relu"
    assert [list(c["inputs"][0]) for c in values["calls"]] == [[-1, 2, 5], [-1, 1, 4], [-1, 0, 3]]
    np.testing.assert_array_equal(values["outputs"][0], [0, 2, 5])
    assert get_calibration_ranges(found)[gv] == {"inputs": [(-1.0, 5.0)], "outputs": [(0.0, 5.0)]}
