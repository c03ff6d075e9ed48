"""Modules and names of TVM, and what their absence says. `tests/tvm/test_as_tvm.py` runs this file."""

from __future__ import annotations

import importlib
import sys

import pytest
import tvm
import tvm.relay.testing
from tvm import relay
from tvm.relay import op, transform
from tvm.relay.dataflow_pattern import *  # noqa: F403
from tvm.relay.expr import Call, TupleWrapper
from tvm.relay.op.contrib import register_pattern_table
from tvm.relay.op.contrib.register import get_pattern_table
from tvm.relay.op.tensor import exp

import relaylang
from relaylang._names import ALIASES
from relaylang.tvm.names import HOMES, homes
from relaylang.tvm.notes import NOTES, absent


def test_a_face_has_the_objects_themselves() -> None:
    assert relay.Function is relaylang.Function is tvm.ir.Function and tvm.IRModule is relaylang.IRModule
    assert Call is relaylang.Call and TupleWrapper is relaylang.TupleWrapper and exp is relaylang.exp is op.exp
    assert transform.FoldConstant is relaylang.transform.FoldConstant
    assert tvm.transform.PassContext is relaylang.transform.PassContext is tvm.ir.transform.PassContext
    assert get_pattern_table is relaylang.op.contrib.get_pattern_table and register_pattern_table
    assert is_op is relaylang.dataflow_pattern.is_op  # noqa: F405
    assert relay.Any() is relaylang.ANY and relay.qnn.op.quantize and relay.nn.conv2d


@pytest.mark.parametrize("name", sorted(HOMES))
def test_every_row_has_a_home(name: str) -> None:
    if name == "tvm.container" or homes(name):
        assert dir(importlib.import_module(name))


def test_every_module_of_the_public_face_is_a_module_of_tvm() -> None:
    public = {name for name in ALIASES if not name.startswith("relaylang.tvm.")}
    assert {name for name in public if not homes(name.replace("relaylang", "tvm.relay"))} == set()


def test_a_missing_name_says_what_to_use() -> None:
    with pytest.raises(AttributeError, match=r"relaylang has no tvm.te.create_schedule: of `tvm.te` there are"):
        tvm.te.create_schedule  # noqa: B018
    with pytest.raises(ImportError, match=r"relaylang has no tvm.build: `relay.build"):
        from tvm import build  # noqa: F401
    with pytest.raises(ImportError, match=r"relaylang has no tvm.autotvm.feature: the search has tasks"):
        importlib.import_module("tvm.autotvm.feature")
    with pytest.raises(ImportError, match=r"relaylang has no tvm.relay.conv2d; docs/tvm.md"):
        from tvm.relay import conv2d  # noqa: F401
    for name, instead in [
        ("tvm.relay.frontend.oneflow", "export the network as ONNX"),
        ("tvm.relay.op.OpStrategy", "a kernel of your own is a text"),
        ("tvm.relay.qnn.strategy", "relay tune"),
        ("tvm.target._ffi_api", "C\\+\\+ functions"),
        ("tvm.relay.op.contrib.vitis_ai", "pyxir"),
        ("tvm.autotvm.measure.request_remote", "rpc.LocalSession"),
    ]:
        with pytest.raises(ImportError, match=f"relaylang has no {name}: .*{instead}"):
            importlib.import_module(name)
    assert not hasattr(relay, "no_such_name") and not hasattr(relay, "__file__")


def test_notes_are_about_names_that_are_missing() -> None:
    wrong = []
    for name in NOTES:
        module, _, last = name.rpartition(".")
        if homes(name) or absent(name):
            continue  # a note for the names below a module that is there
        if homes(module) and hasattr(importlib.import_module(module), last):
            wrong.append(name)
    assert wrong == []


def test_names_are_listed() -> None:
    assert {"conv2d", "relu"} <= set(dir(relay.nn)) and "IRModule" in dir(tvm) and "Any" in dir(tvm.tir)
    assert "quantize" in dir(relay.quantize) and "backends" not in dir(relay)
    assert "relaylang.tvm" not in dir(tvm) and sys.modules["tvm"] is tvm


def test_functions_under_names() -> None:
    @tvm.register_func("check.double")
    def double(x: int) -> int:
        return 2 * x

    @tvm.register_func
    def check_triple(x: int) -> int:
        return 3 * x

    assert tvm.get_global_func("check.double")(3) == 6 and tvm._ffi.get_global_func("check_triple") is check_triple
    assert tvm.get_global_func("check.none", allow_missing=True) is None
    with pytest.raises(ValueError, match=r"no global function check.doubel; did you mean check.double\?"):
        tvm.get_global_func("check.doubel")
    with pytest.raises(ValueError, match="registered already"):
        tvm.register_func("check.double", double)
    tvm.register_func("check.double", lambda x: x, override=True)
    assert tvm.get_global_func("check.double")(3) == 3


def test_names_for_c() -> None:
    from tvm.relay.backend import name_transforms as names
    from tvm.relay.backend.utils import mangle_module_name
    from tvm.runtime.name_transforms import sanitize_name

    assert names.to_c_function_style(names.prefix_generated_name(["model", "Run_2"])) == "TVMGenModelRun"
    assert names.to_c_variable_style(names.prefix_name("My_name")) == "tvm_my_name"
    assert names.to_c_constant_style("TVM_a_b") == "TVM_A_B" and sanitize_name("a:1+") == "a_1_"
    assert (mangle_module_name("net_1"), mangle_module_name("")) == ("tvmgen_net_1", "tvmgen")
    for wrong, name in ((names.prefix_name, [""]), (names.to_c_function_style, "cake"), (sanitize_name, "")):
        with pytest.raises(tvm.TVMError):
            wrong(name)
    with pytest.raises(ValueError, match="invalid characters"):
        mangle_module_name("a b")


def test_supplies_of_names() -> None:
    from tvm.ir.supply import GlobalVarSupply, NameSupply

    names = NameSupply("net")
    assert [names.fresh_name("a.b") for _ in range(3)] == ["net_a_b", "net_a_b_1", "net_a_b_2"]
    assert names.contains_name("a_b") and not names.contains_name("a_b", False)
    x = relay.var("x", shape=(2,))
    mod = tvm.IRModule.from_expr(relay.Function([x], x))
    supply = GlobalVarSupply(mod)
    assert supply.unique_global_for("main", False) is mod.get_global_var("main")
    assert supply.fresh_global("main", False).name_hint == "main_1" and supply.fresh_global("f").name_hint == "tvmgen_default_f"
    with pytest.raises(ValueError, match="@main is in this supply already"):
        supply.reserve_global(relay.GlobalVar("main"))


def test_makers_of_calls() -> None:
    x = relay.var("x", shape=(2, 3))
    assert tvm.ir.structural_equal(op._make.concatenate((x, x), 1), relay.concatenate((x, x), 1))
