"""The report: where each call goes, the reason for a call that stays, and hints."""

from __future__ import annotations

import re

import numpy as np
import pytest

import relaylang as relay
from relaylang.ir import Function, IRModule
from relaylang.op.contrib import partition_for_cmsisnn
from relaylang.partition import (
    explain,
    partition,
    prepare,
    table_text,
)
from relaylang.transform import (
    InferType,
    PassContext,
    Sequential,
    parse_passes,
)
from tests.passes.meaning import keeps_meaning


def module(text: str) -> IRModule:
    return InferType()(relay.parse(text))


def main(body: str) -> IRModule:
    return module(f"def @main(%x: Tensor[(2, 3), float32]) {{ {body} }}")


def regions(mod: IRModule) -> dict[str, Function]:
    return {gv.name_hint: f for gv, f in mod.functions.items() if "Compiler" in f.attrs}


CONVNET = """
def @main(%x: Tensor[(1, 4, 8, 8), float32], %w: Tensor[(6, 4, 3, 3), float32], %b: Tensor[(6), float32]) {
  %0 = nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=6, kernel_size=[3, 3]);
  nn.max_pool2d(nn.relu(nn.bias_add(%0, %b)), pool_size=[2, 2], strides=[2, 2])
}
"""


@pytest.mark.parametrize("target, calls", [("bnns", 4), ("dnnl", 5), ("arm_compute_lib", 0)])
def test_a_convolution_goes_where_it_can(target: str, calls: int) -> None:
    rng = np.random.default_rng(0)
    params = {"w": rng.normal(size=(6, 4, 3, 3)).astype("float32"), "b": rng.normal(size=6).astype("float32")}
    ready = prepare(module(CONVNET), target, params)
    done = keeps_meaning(lambda m: partition(m, target), ready)
    rows = explain(ready, done, target)
    assert sum(r.region is not None for r in rows) >= min(calls, 4)
    if target == "arm_compute_lib":
        reasons = {r.name: r.reason for r in rows}
        assert reasons["nn.conv2d"] == "data_layout is 'NCHW'; it takes 'NHWC'"


def test_the_report_names_the_nearest_row_and_what_refused() -> None:
    text = """
    def @main(%x: Tensor[(1, 8, 8, 4), int8]) {
      %0 = nn.max_pool2d(%x, pool_size=[2, 2], strides=[2, 2], padding=[0, 0, 0, 0], layout="NHWC");
      %1 = cast(%0, dtype="int32");
      %2 = nn.avg_pool2d(%1, pool_size=[2, 2], strides=[2, 2], padding=[0, 0, 0, 0], layout="NHWC");
      %3 = tanh(qnn.dequantize(cast(%2, dtype="uint8"), 0.5f, 0, out_dtype="float32"));
      qnn.quantize(%3, 0.1f, 0, out_dtype="int8")
    }"""
    ready = prepare(module(text), "cmsis-nn")
    done = partition_for_cmsisnn(ready)
    rows = {r.name: r for r in explain(ready, done, "cmsis-nn")}
    assert rows["nn.max_pool2d"].region == "tvmgen_default_cmsis_nn_main_0"
    assert rows["nn.avg_pool2d"].reason == "int8 becomes uint8; it takes int8 to int8 and int16 to int16"
    assert rows["tanh"].reason.startswith("no row of the table has tanh")
    assert "nn.softmax is wanted as data of qnn.quantize, and it is a call of tanh" in rows["qnn.quantize"].reason
    shown = table_text(list(rows.values()), "cmsis-nn")
    assert "goes to" in shown and "calls go to cmsis-nn" in shown


BATCH_NORM = """
def @main(%x: Tensor[(1, 4, 8, 8), float32], %g: Tensor[(4), float32]) {
  %0 = nn.batch_norm(%x, %g, %g, %g, %g);
  %1 = erf(%0.0);
  nn.relu(nn.global_avg_pool2d(%1))
}
"""


def test_calls_of_one_place_are_told_apart() -> None:
    """batch_norm becomes two calls, which have no place of their own; all that goes is counted."""
    mod = module(BATCH_NORM)
    ready = prepare(mod, "dnnl", {"g": np.ones(4, "float32")})
    done = partition(ready, "dnnl", prune=False)
    pruned = partition(ready, "dnnl")
    assert len(regions(done)) == 2 and len(regions(pruned)) == 1
    rows = explain(ready, pruned, "dnnl")
    assert [(r.name, r.place.line if r.place else 0, r.region is not None) for r in rows] == [
        ("multiply", 4, False),
        ("add", 4, False),
        ("erf", 4, False),
        ("nn.global_avg_pool2d", 5, True),
        ("nn.relu", 5, True),
    ]
    assert rows[0].reason == "it could go, but its region has no product in it and is not worth the way"


def test_a_row_that_ends_in_another_call_says_what_should_follow() -> None:
    ready = prepare(module('def @main(%x: Tensor[(1, 8), int8]) { nn.softmax(cast(%x, dtype="float32")) }'), "cmsis-nn")
    (row,) = [r for r in explain(ready, partition(ready, "cmsis-nn"), "cmsis-nn") if r.name == "nn.softmax"]
    assert row.reason == "a call of qnn.quantize is wanted behind it, and it is the result"


@pytest.mark.parametrize(
    "target, text, hint",
    [
        ("ethos-u", "nn.relu(%x)", "ethos-u takes quantized programs, and this one has no qnn operators"),
        ("bnns", "nn.conv2d(%x, %w, kernel_size=[1, 1])", "1 call wants constants"),
    ],
)
def test_hints(target: str, text: str, hint: str) -> None:
    params = "%x: Tensor[(1, 4, 8, 8), float32], %w: Tensor[(256, 4, 1, 1), float32]"
    ready = prepare(module(f"def @main({params}) {{ {text} }}"), target)
    shown = table_text(explain(ready, partition(ready, target), target), target)
    assert f"hint: {hint}" in shown


def test_the_hint_about_layouts_helps() -> None:
    """With the passes that it names the convolution goes."""
    rng = np.random.default_rng(0)
    params = {"w": rng.normal(size=(6, 4, 3, 3)).astype("float32"), "b": rng.normal(size=6).astype("float32")}
    mod = module(CONVNET)
    for again in (False, True):
        ready = prepare(mod, "arm_compute_lib", params)
        shown = table_text(explain(ready, partition(ready, "arm_compute_lib"), "arm_compute_lib"), "arm_compute_lib")
        found = re.search(r"hint: relay opt --passes '(.*)' brings", shown)
        assert (found is not None) != again and ("arm_compute_lib.conv2d\n" in shown) == again, shown
        if found is not None:
            with PassContext(opt_level=4):  # as relay opt has it
                mod = Sequential(parse_passes(found[1]))(ready)


def test_common_reasons_are_counted() -> None:
    body = "%x"
    for _ in range(24):
        body = f"atan({body})"
    ready = prepare(main(body), "dnnl")
    shown = table_text(explain(ready, partition(ready, "dnnl"), "dnnl"), "dnnl")
    assert "of those that stay:\n    24  no row of the table has atan (it works on float32)" in shown
