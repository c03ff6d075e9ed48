"""The builder functions against TVM's: signatures, and the text of the calls that they make."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relaylang as relay
from relaylang._names import NAMES
from relaylang.ir.visit import free_vars
from relaylang.op.namespace import builder, signatures
from relaylang.ops import OPS
from tests.shared import check_each
from tests.tvm.op.calls import CALLS, VARIABLES

TVM: dict[str, Any] = json.loads((Path(__file__).parent / "tvm.json").read_text())

#: Functions of TVM's modules that are not here, and why.
ABSENT = {
    "copy_shape_func": "of TVM's shape functions",
    "get_pad_tuple": "a helper",
    "op.vm.invoke_tvm_op": "writes into memory that a compiler planned",
    "op.vm.reshape_tensor": "made by a compiler's passes",
    "op.vm.shape_func": "of TVM's shape functions",
    "annotation.function_on_device": "attributes of TVM's devices",
    "qnn.op.current_requantize_config": "no operator; relaylang.qnn.config has it",
    "qnn.op.requantize_config": "no operator; relaylang.qnn.config has it",
}
#: Functions that only the wheel has which the table was recorded with, or that it has otherwise than TVM 0.16.
WHEEL = {
    "nn.lrn": "a parameter norm_region",
    "nn.contrib_conv2d_gemm_weight_transform": "a parameter kernel_layout",
    "qnn.op.leaky_relu": "other names",
}


def of(path: str) -> list[list[Any]]:
    found = []
    for p in inspect.signature(builder(path)).parameters.values():
        default = list(p.default) if isinstance(p.default, tuple) else p.default
        found.append([p.name] if p.default is p.empty else [p.name, default])
    return found


def signature_is_tvms(path: str) -> None:
    assert (of(path) == TVM["signatures"][path]) != (path in WHEEL)


def test_signature_is_tvms() -> None:
    check_each(signature_is_tvms, sorted(set(TVM["signatures"]) & set(signatures())))


def test_what_is_absent_has_a_reason() -> None:
    missing = {p for p in TVM["signatures"] if p not in signatures()}
    names = {p.replace("qnn.op.", "qnn.").removeprefix("op.") for p in missing}
    assert not names & {op.name for op in OPS.values() if op.python is not None}
    own = {p for p in missing if p not in ABSENT}  # operators of the wheel's own
    assert missing - own <= set(ABSENT), missing - own - set(ABSENT)


def test_every_call_was_recorded() -> None:
    assert list(TVM["texts"]) == sorted(CALLS)


def call_is_tvms(call: str) -> None:
    names: dict[str, Any] = {"relay": relay}
    exec(VARIABLES, names)
    made = eval(call, names)
    text = relay.astext(relay.Function(free_vars(made), made), style="tvm")
    theirs = TVM["texts"][call]
    assert theirs is not None
    assert text.split("#[metadata]")[0].strip() == theirs.split("#[metadata]")[0].strip()


def test_call_is_tvms() -> None:
    check_each(call_is_tvms, CALLS)


def test_names_at_the_top() -> None:
    at_the_top = [path for path in signatures() if "." not in path]
    assert set(at_the_top) <= set(dir(relay)) and not set(at_the_top) & set(NAMES)
    assert all(getattr(relay, name) is getattr(relay.op, name) for name in at_the_top)
    with pytest.raises(AttributeError, match="has no attribute 'multiply_twice'"):
        relay.multiply_twice  # noqa: B018


def test_wrong_arguments_are_named() -> None:
    x = relay.var("x", shape=(1, 2, 3, 4))
    with pytest.raises(ValueError, match=r"nn.softmax: axis must be a whole number, not 'a'"):
        relay.nn.softmax(x, axis="a")
    with pytest.raises(TypeError, match=r"nn.conv2d: missing a required argument: 'weight'"):
        relay.nn.conv2d(x)
    with pytest.raises(TypeError, match="an argument must be an expression"):
        relay.add(x, "one")
    with pytest.raises(AttributeError, match="has no attribute 'conv4d'"):
        relay.nn.conv4d  # noqa: B018


def test_docstrings_tell_attributes_and_the_source() -> None:
    said = relay.nn.conv2d.__doc__
    assert "kernel_size: whole numbers or None, default None" in said and "relaylang/ops/nn_conv.py" in said and "ValueError" in said
    assert all(builder(path).__doc__ for path in signatures())


def test_docstrings_tell_shapes_and_element_types() -> None:
    assert "data (n, c, h, w) in data_layout" in relay.nn.conv2d.__doc__
    assert "strides: whole numbers or None, default None" in relay.strided_slice.__doc__
    for op in OPS.values():
        said = op.rel.__doc__ or ""
        assert re.search(r"result|values have|`reshape`", said) and len(said) > 25, op.name


def test_results_of_a_call() -> None:
    x = relay.var("x", shape=(2, 6))
    parts = relay.split(x, 3, axis=1)
    assert len(parts) == 3 and [p.index for p in parts] == [0, 1, 2]
    with pytest.raises(IndexError):
        parts[3]
    value = relay.evaluate(
        relay.Function([x], relay.concatenate(list(parts)[::-1], axis=1)),
        np.arange(12.0).reshape(2, 6).astype("float32"),
    )
    assert value[0].tolist() == [4, 5, 2, 3, 0, 1]


@pytest.mark.parametrize("rows", [None, 4])
def test_segment_sum_adds_the_rows_of_each_number(rows: int | None) -> None:
    x, ids = relay.var("x", shape=(4, 2)), relay.var("ids", shape=(relay.Any(),) if rows else (3,), dtype="int32")
    made = relay.Function([x, ids], relay.segment_sum(x, ids, rows))
    value = relay.evaluate(made, np.arange(8.0).reshape(4, 2).astype("float32"), np.int32([2, 0, 2]))
    assert value.tolist() == [[2, 3], [0, 0], [4, 6], [0, 0]][: rows or 3]


def test_numbers_beside_expressions() -> None:
    x = relay.var("x", shape=(3,))
    made = relay.Function([x], (2.0 - x) / np.asarray([1, 2, 4], "float32") * 3.0 + 1.0)
    assert relay.evaluate(made, np.asarray([0, 1, 2], "float32")).tolist() == [7.0, 2.5, 1.0]


def test_a_threshold_of_nothing_is_a_threshold() -> None:
    boxes = relay.var("boxes", shape=(1, 2, 6))
    made = relay.vision.get_valid_counts(boxes, 0.0)
    assert len(made.astuple().args) == 2
    value = np.asarray([[[0, 0.5, 1, 1, 2, 2], [1, -0.5, 1, 1, 2, 2]]], "float32")
    assert relay.evaluate(relay.Function([boxes], made[0]), value).tolist() == [1]


def test_importing_loads_none_of_it() -> None:
    code = "import relaylang, sys; sys.exit(any(m.startswith('relaylang.op') for m in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_nothing_is_no_value() -> None:
    a = relay.var("a", shape=(2, 3))
    for wrong in (
        lambda: relay.concatenate([a, a], None),
        lambda: relay.one_hot(a, a, a, None, -1, "int8"),
        lambda: relay.tile(a, None),
    ):
        with pytest.raises(ValueError, match="not None"):
            wrong()
    with pytest.raises(ValueError, match="axis must be a whole number"):
        relay.nn.softmax(a, axis=relay.const(1))


def test_no_module_hides_a_name() -> None:
    """The import of a module sets the package's name for it: `relaylang.std` is the operator."""
    folder = Path(relay.__file__).parent
    names = [*NAMES, *(path for path in signatures() if "." not in path)]
    hiding = [n for n in names if (folder / n / "__init__.py").exists() or (folder / f"{n}.py").exists()]
    assert hiding == []
