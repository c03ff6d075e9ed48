"""Executors, runtimes and devices as scripts for TVM ask for them. `tests/tvm/test_as_tvm.py` runs this file."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from tvm import relay
from tvm.relay.backend import Executor, Runtime
from tvm.relay.qnn.op.legalizations import hardswish_func
from tvm.topi.nn.qnn import SQNN_CODE_TO_DTYPE, SQNN_DTYPE_TO_CODE


def test_executors_and_runtimes_know_their_settings() -> None:
    assert not Executor("graph")["link-params"] and Executor("aot", {"interface-api": "c"})["interface-api"] == "c"
    assert Executor.list_registered_options("aot")["interface-api"] == "runtime.String"
    assert Runtime.list_registered_options(Runtime("crt")) == {"system-lib": "IntImm"} and "cpp" in Runtime.list_registered()
    with pytest.raises(tvm.TVMError, match=r'"system-lib" should have type "IntImm" but instead found "runtime\.String"'):
        Runtime("crt", {"system-lib": "x"})
    with pytest.raises(tvm.TVMError, match=r'"interface-api" should have type "runtime\.String" but instead found "IntImm"'):
        Executor("aot", {"interface-api": True})


def test_devices_of_calls() -> None:
    x = relay.var("x", shape=(2,))
    call = relay.annotation.on_device(x, "cuda", constrain_result=True)
    assert call.attrs.virtual_device.device_type_int == 2 and call.attrs.constrain_body
    free = relay.annotation.on_device(x, tvm.cpu(), constrain_body=False)
    assert free.attrs.virtual_device.device_type_int == -1 and free.attrs.virtual_device.target is None
    copy = relay.op.device_copy(x, tvm.device("cuda"), "cpu")
    assert (copy.attrs.src_virtual_device.device_type_int, copy.attrs.dst_virtual_device.device_type_int) == (2, 1)
    assert relay.transform.InferType()(tvm.IRModule.from_expr(copy))["main"].ret_type == x.type_annotation
    with pytest.raises(ValueError, match="there is no device bogus"):
        relay.annotation.on_device(x, "bogus")


def test_other_names() -> None:
    assert SQNN_CODE_TO_DTYPE[SQNN_DTYPE_TO_CODE["int8"]] == "int8"
    assert hardswish_func(np.array([-4.0, 3.0])).tolist() == [0.0, 3.0]
    with relay.build_config(opt_level=1):
        assert tvm.transform.PassContext.current().opt_level == 1


def test_operators_are_registered_step_by_step() -> None:
    op = relay.op.op
    op.register("tests.double", "Twice as much.")
    op.get("tests.double").set_num_inputs(1)
    op.get("tests.double").add_argument("data", "Tensor", "")
    op.get("tests.double").add_type_rel("Identity")
    op.get("tests.double").set_support_level(3)
    op.register_pattern("tests.double", op.OpPattern.ELEMWISE)
    op.register_stateful("tests.double", False)
    op.register_injective_schedule("tests.double")  # kernels have the backend's schedules, whatever TVM's would be
    made = op.get("tests.double")
    assert (made.num_inputs, made.support_level, made.description) == (1, 3, "Twice as much.")
    assert made.get_attr("TOpPattern") == op.OpPattern.ELEMWISE and not made.get_attr("TOpIsStateful")
    x = relay.var("x", shape=(2, 3))
    assert relay.testing.run_infer_type(relay.Call(made, [x])).checked_type == x.type_annotation
    made.add_type_rel("tests.rows", lambda types, attrs: relay.TensorType(types[0].shape[:1], "int8"))
    assert relay.testing.run_infer_type(relay.Call(op.get("tests.double"), [x])).checked_type == relay.TensorType((2,), "int8")
    for wrong in (lambda: op.register("tests.double"), lambda: op.get("add").add_argument("z", "Tensor", "")):
        with pytest.raises(tvm.TVMError):
            wrong()
    with pytest.raises(ValueError, match="no type relation Nobody"):
        made.add_type_rel("Nobody")


def test_attributes_for_a_while() -> None:
    tvm.ir.register_op_attr("sqrt", "tests.key", 1)
    with tvm.relay.testing.temp_op_attr.TempOpAttr("sqrt", "tests.key", 2):
        assert relay.op.get("sqrt").get_attr("tests.key") == 2
    assert relay.op.get("sqrt").get_attr("tests.key") == 1
    with tvm.relay.testing.temp_op_attr.TempOpAttr("exp", "tests.key", 3):
        assert relay.op.get("exp").get_attr("tests.key") == 3
    assert relay.op.get("exp").get_attr("tests.key") is None


def test_shapes_with_names_keep_them() -> None:
    n, m, k = (tvm.te.size_var(name) for name in "nmk")
    x, y = relay.var("x", shape=(n, m, k)), relay.var("y", shape=(n, 4, k))
    assert relay.testing.run_infer_type(relay.nn.batch_matmul(x, y)).checked_type == relay.TensorType((n, m, 4))
    image = relay.var("image", shape=(n, 3, 8, 8))
    up = relay.testing.run_infer_type(relay.nn.upsampling(image, 2, 2, "NCHW", "bilinear"))
    assert up.checked_type == relay.TensorType((n, 3, 16, 16))


def test_other_types_and_bytes() -> None:
    assert relay.const(1, relay.scalar_type("int8")).data.dtype == "int8"
    assert isinstance(tvm.runtime.save_param_dict({"x": np.zeros(2)}), bytearray)


@pytest.mark.parametrize(
    ("runtime", "unpacked", "interface", "word"),
    [
        ("crt", False, "c", "unpacked-api"),
        ("cpp", True, "packed", "C runtime"),
        ("cpp", False, "c", "C runtime"),
        ("crt", True, "c", ""),
        ("crt", False, "packed", ""),
        ("crt", True, "packed", ""),
        ("cpp", False, "packed", ""),
    ],
)
def test_interfaces_that_contradict_other_options_are_refused(runtime: str, unpacked: bool, interface: str, word: str) -> None:
    mod = tvm.IRModule.from_expr(relay.nn.relu(relay.var("x", shape=(2,))))
    executor = Executor("aot", {"unpacked-api": unpacked, "interface-api": interface})
    if word:
        with pytest.raises(tvm.TVMError, match=word):
            relay.build(mod, "c", executor=executor, runtime=Runtime(runtime))
    else:
        assert relay.build(mod, "c", executor=executor, runtime=Runtime(runtime)).artifact is not None
