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
