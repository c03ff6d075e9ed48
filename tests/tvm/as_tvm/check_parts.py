"""Smaller parts of TVM that programs use beside `tvm.relay`. `tests/tvm/test_as_tvm.py` runs this file."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import tvm
from tvm import relay
from tvm._ffi.base import decorate, numeric_types, register_error, string_types
from tvm._ffi.libinfo import find_include_path, find_lib_path
from tvm._ffi.registry import register_extension
from tvm._ffi.runtime_ctypes import Device, TVMArrayHandle, TVMByteArray
from tvm.contrib import cc, cutlass, utils
from tvm.contrib.graph_runtime.graph_executor import GraphModule
from tvm.relay.backend.graph_executor_codegen import GraphExecutorCodegen
from tvm.relay.build_module import GraphExecutor
from tvm.runtime.object_generic import ObjectBase, ObjectGeneric


def test_ranges_are_half_open() -> None:
    n = tvm.te.var("n")
    assert str(tvm.ir.Range(4)) == "I.Range(0, 4)" and str(tvm.ir.expr.Range(1, 4)) == "I.Range(1, 4)"
    assert tvm.ir.Range.from_min_extent(2, 5) == tvm.ir.Range(2, 7) != tvm.ir.Range(7)
    assert (tvm.ir.Range(1, 4).min.value, tvm.ir.Range(1, 4).extent.value) == (1, 3)
    assert str(tvm.ir.Range.from_min_extent(n, 3)) == "I.Range(n, n + 3)" and tvm.ir.CallingConv.DEVICE_KERNEL_LAUNCH == 2


def test_decorators_of_the_ffi() -> None:
    def double(x: int) -> int:
        """Twice."""
        return 2 * x

    call = decorate(double, lambda f, *args: f(*args) + 1)
    assert (call(3), call.__name__, call.__doc__) == (7, "double", "Twice.")

    @register_error
    class Own(ValueError):
        pass

    assert register_error("Own", Own) is Own and issubclass(Own, ValueError) and register_extension(Own) is Own
    assert isinstance("a", string_types) and isinstance(np.float32(1), numeric_types) and Device is tvm.runtime.Device


def test_files_of_libraries(tmp_path: Path) -> None:
    (tmp_path / "libown.so").write_bytes(b"")
    (tmp_path / "include").mkdir()
    assert find_lib_path("libown.so", str(tmp_path)) == [str(tmp_path / "libown.so")]
    assert find_include_path(search_path=[str(tmp_path)]) == [str(tmp_path / "include")]
    assert find_lib_path("libother.so", str(tmp_path), optional=True) is None
    with pytest.raises(RuntimeError, match="cannot find libother"):
        find_lib_path(["libother.so"], str(tmp_path))
    assert Path(tvm.__file__).parent.is_dir()


def test_tensors_are_filled_from_memory() -> None:
    tensor = tvm.nd.empty((2, 3), "int32")
    values = np.arange(6, dtype="int32")
    tvm.nd.check_call(tvm.nd._LIB.TVMArrayCopyFromBytes(tensor.handle, values.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(24)))
    assert tensor.numpy().tolist() == [[0, 1, 2], [3, 4, 5]]
    back = (ctypes.c_int32 * 6)()
    tvm.nd.check_call(tvm.nd._LIB.TVMArrayCopyToBytes(tensor.handle, back, 24))
    assert list(back) == list(range(6)) and isinstance(tensor.handle, TVMArrayHandle)
    inner = tensor.handle.contents
    assert (inner.ndim, inner.shape[1], inner.dtype.bits, inner.device.device_type) == (2, 3, 32, 1)
    assert TVMByteArray(size=3).size == 3
    with pytest.raises(ValueError, match="the tensor has 24 bytes, not 20"):
        tvm.nd._LIB.TVMArrayCopyFromBytes(tensor.handle, back, 20)
    with pytest.raises(RuntimeError, match="returned -1"):
        tvm.nd.check_call(-1)


def test_compilers_are_called_by_suffix(tmp_path: Path) -> None:
    source = tmp_path / "f.c"
    source.write_text("int f(void) { return 7; }\n")
    compiler = (cc.get_cc() or "cc").split()[0]
    cc._linux_compile(str(tmp_path / "f.so"), [str(source)], None, compiler)
    assert ctypes.CDLL(str(tmp_path / "f.so")).f() == 7
    cc._linux_compile(str(tmp_path / "f.obj"), str(source), [], compiler)
    assert (tmp_path / "f.obj").stat().st_size > 0 and isinstance(cc._is_linux_like(), bool)


def test_temporary_folders_that_stay() -> None:
    with utils.TempDirectory.set_keep_for_debug():
        folders = [utils.tempdir() for _ in range(2)]
        gone = utils.tempdir(keep_for_debug=False)
    paths = [folder.path for folder in folders]
    parent = utils.TempDirectory._DEBUG_PARENT_DIR
    for folder in (*folders, gone):
        folder.remove()
    assert all(path.is_dir() and str(path.parent) == parent for path in paths) and not gone.path.exists()
    later = utils.tempdir()
    later.remove()
    assert not later.path.exists()
    for path in paths:
        path.rmdir()
    os.rmdir(parent)
    utils.TempDirectory._DEBUG_PARENT_DIR = None


def test_objects() -> None:
    x = relay.var("x", shape=(2,))
    function = relay.Function([x], x)
    for value in (x, x.type_annotation, function, tvm.IRModule.from_expr(function), tvm.nd.empty((2,)), relay.nn.relu):
        assert isinstance(value, tvm.runtime.Object) == (value is not relay.nn.relu)
    assert ObjectBase is tvm.Object is tvm.runtime.object.Object and not isinstance(3, ObjectBase)
    with pytest.raises(TypeError, match="ObjectGeneric has no method asobject"):
        ObjectGeneric().asobject()


def test_generic_functions_differ_by_target() -> None:
    @tvm.target.generic_func
    def name(x: int) -> str:
        return f"any {x}"

    @name.register("cuda")
    def of_cuda(x: int) -> str:
        return f"cuda {x}"

    assert name(1) == "any 1" and name.fdefault(2) == "any 2"
    with tvm.target.cuda():
        assert name(1) == "cuda 1" == name.get_packed_func()(1)
    with tvm.target.vta():
        assert name(1) == "any 1"
    with pytest.raises(ValueError, match="has a form for cuda already"):
        name.register(["cuda"])(of_cuda)
    assert str(tvm.target.vta("pynq")) == "ext_dev -keys=vta,cpu -device=vta -model=pynq"


def test_executors_by_class() -> None:
    x = relay.var("x", shape=(2,))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.exp(x)))
    values = np.array([0, 1], "float32")
    executors = (GraphExecutor, relay.backend.interpreter.Interpreter, relay.backend.vm.VMExecutor, relay.build_module.AotExecutor)
    for executor in executors:
        np.testing.assert_allclose(executor(mod, tvm.cpu(), "llvm").evaluate()(values).numpy(), np.exp(values), rtol=1e-6)
    with pytest.raises(tvm.TVMError, match="cuda"):
        GraphExecutor(mod, tvm.cuda(), "llvm")


def test_the_compiler_of_the_graph_executor(tmp_path: Path) -> None:
    x = relay.var("x", shape=(2,))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.exp(x)))
    graph, lowered, params = GraphExecutorCodegen(None, "llvm").codegen(mod, mod["main"])
    (lib,) = lowered.values()
    executor = tvm.contrib.graph_executor.create(graph, lib, tvm.cpu())
    executor.run(x=np.zeros(2, "float32"))
    assert executor.get_output(0).numpy().tolist() == [1, 1] and params == {}

    assert not cutlass.has_cutlass() and cutlass.num_cutlass_partitions(mod) == 0
    again = cutlass.finalize_modules(relay.build(mod, "llvm"), "net.so", str(tmp_path))
    module = GraphModule(again["default"](tvm.cpu()))
    module.run(x=np.zeros(2, "float32"))
    assert module.get_output(0).numpy().tolist() == [1, 1]
    executable = cutlass.finalize_modules_vm(relay.vm.compile(mod, "llvm") if hasattr(relay, "vm") else None, tmp_dir=str(tmp_path))
    machine = tvm.runtime.vm.VirtualMachine(executable, tvm.cpu())
    assert machine.invoke("main", np.zeros(2, "float32")).numpy().tolist() == [1, 1]


def test_calls_for_memory() -> None:
    from tvm.relay.op import memory, vm

    storage = memory.alloc_storage(relay.const(24, "int64"), relay.const([2, 3], "int64"), relay.const(64, "int64"), None)
    tensor = memory.alloc_tensor(storage, relay.const(0, "int64"), relay.const([2, 3], "int64"))
    mod = tvm.IRModule.from_expr(relay.Function([], vm.reshape_tensor(tensor, relay.const([6], "int64"), [6])))
    mod.update(relay.parse("type Storage {}"))
    assert str(relay.transform.InferType()(mod)["main"].checked_type.ret_type) == "Tensor[(6), float32]"
    dynamic = memory.alloc_tensor(storage, relay.const(0, "int64"), relay.var("s", shape=(2,), dtype="int64"), assert_shape=[4, 5])
    assert dynamic.attrs.assert_shape == (4, 5)

    leaf = relay.TensorType((2,))
    ty = relay.TupleType([leaf, relay.TupleType([leaf, leaf])])
    v = relay.Var("v", ty)
    fields = memory.from_tuple_type(ty, v)
    assert memory.flatten_tuple_type(ty) == [leaf] * 3 and [f.index for f in fields] == [0, 0, 1]
    assert fields[0].tuple_value is v and fields[2].tuple_value.tuple_value is v and fields[2].tuple_value.index == 1
    again = memory.to_tuple_type(ty, fields)
    assert again.fields[0] is fields[0] and again.fields[1].fields[1] is fields[2]
    with pytest.raises(ValueError, match="3 fields, not 1"):
        memory.to_tuple_type(ty, fields[:1])


def test_attributes_by_their_classes() -> None:
    from tvm.relay.op.op_attrs import AdaptivePool2DAttrs

    x = relay.var("x", shape=(1, 2, 4, 4))
    assert isinstance(relay.nn.adaptive_avg_pool2d(x, (1, 1)).attrs, AdaptivePool2DAttrs)
    assert not isinstance(relay.nn.softmax(x).attrs, relay.op.op_attrs.AdaptivePool2DAttrs)
    with pytest.raises(AttributeError):
        relay.op.op_attrs.NoSuchAttrs  # noqa: B018


def failed(call: Callable[[], object]) -> str:
    with pytest.raises((tvm.TVMError, TypeError)) as caught:
        call()
    return str(caught.value).partition("\n")[0]


def test_messages_name_the_thing() -> None:
    x = relay.var("x", shape=(2, 3))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.nn.relu(x)))
    said = "an extent of a shape is a whole number, `?` or a name, not the number 2.5"
    assert failed(lambda: relay.var("y", shape=(2.5, 3))) == said
    assert "not the number 3.0" in failed(lambda: relay.TensorType((np.int64(2), np.float32(3))))
    for make in (relay.TensorType, tvm.nd.empty):
        assert failed(partial(make, {"a": 1})) == "a shape is a list of extents such as (1, 3), not a dict"
    with pytest.raises(tvm.TVMError, match="not a str"):
        tvm.ir.TensorType("xx", "xx")
        assert "not a tensor of 2 axes" in failed(partial(make, np.zeros((2, 3))))
    assert failed(lambda: relay.build(mod, "llvm", params={"x": "abc"})) == "error[R0640]: params: x is a str, which is no tensor"
    assert failed(lambda: relay.build(mod, "llvm", params=[1])) == "error[R0640]: params are tensors by name, not a list"
    assert failed(lambda: relay.vm.compile(mod, "llvm", params={"x": {}})) == "error[R0640]: params: x is a dict, which is no tensor"
    assert failed(lambda: tvm.nd.array({"a": 1})) == "error[R0640]: a value of type dict is no tensor"
    assert "different lengths" in failed(lambda: tvm.nd.array([[1], [1, 2]]))
    assert tvm.nd.array([[1, 2]]).shape == (1, 2) and tvm.nd.empty((2, relay.const(1).data.ndim + 1)).shape == (2, 1)
    assert failed(lambda: relay.frontend.from_onnx(None)) == (
        "error[R0804]: None is no ONNX model; the importer takes an onnx.ModelProto, a file's bytes, or its path"
    )


def test_boxes_of_yolo(capsys: pytest.CaptureFixture[str]) -> None:
    from tvm.relay.testing import yolo_detection

    yolo = np.zeros((1, 7, 2, 2), "float32")
    yolo[0, :, 1, 0] = 0.5, 0.5, 0, 0, 0.9, 1, 0.1
    yolo[0, :, 0, 1] = 0.5, 0.5, 0, 0, 0.8, 0.2, 1
    region = np.zeros((1, 7, 2, 2), "float32")
    region[0, :, 1, 0] = 0.5, 0.5, 0, 0, 0.7, 1, 0
    layers = [
        {"type": "Yolo", "output": yolo, "biases": [9, 9, 40, 20], "mask": [1], "classes": 2},
        {"type": "Region", "output": region, "biases": [0.8, 0.4], "classes": 2, "coords": 4, "background": 0},
    ]
    dets = yolo_detection.fill_network_boxes((80, 80), (100, 50), 0.5, 1, layers)
    boxes = [[round(float(v), 4) for v in d["bbox"]] for d in dets if d["objectness"]]
    # the image fills the middle half of the network's height
    assert boxes == [[0.75, 0.0, 0.5, 0.5], [0.25, 1.0, 0.5, 0.5], [0.25, 1.0, 0.4, 0.4]]
    yolo_detection.do_nms_sort(dets, 2, 0.5)
    kept = [(round(float(d["objectness"]), 4), [round(float(p), 4) for p in d["prob"]]) for d in dets if d["objectness"]]
    assert kept == [(0.8, [0, 0.8]), (0.9, [0.9, 0]), (0.7, [0, 0])]
    im = np.zeros((3, 500, 1000))
    yolo_detection.show_detections(im, dets, 0.5, ["cat", "dog"], 2)
    assert capsys.readouterr().out.splitlines() == [
        "class:['dog 0.8'] left:500 top:0 right:999 bottom:125",
        "class:['cat 0.9'] left:0 top:375 right:500 bottom:499",
    ]
    yolo_detection.draw_detections("", im, dets[1:2], 0.5, ["cat", "dog"], 2)
    assert im[:, 376, 250].any() and not im[:, 440, 250].any() and im[:, 440, 1].any() and not im[:, 100, 600].any()


def test_another_element_type() -> None:
    x = relay.var("x", shape=(1, 4))
    w = relay.const(np.ones((3, 4), "float32"))
    kept = relay.var("i", shape=(3,), dtype="int32")
    body = relay.cast(relay.nn.dense(x, w, out_dtype="float32"), "float32") + relay.cast(kept, "float32")
    mod = relay.frontend.ChangeDatatype("float32", "float16")(tvm.IRModule.from_expr(relay.Function([x, kept], body)))
    assert str(relay.transform.InferType()(mod)["main"].checked_type) == (
        "fn (Tensor[(1, 4), float16], Tensor[(3), int32]) -> Tensor[(1, 3), float16]"
    )


def test_graphs_of_onnx() -> None:
    onnx = pytest.importorskip("onnx")
    from tvm.relay.frontend.onnx import get_info

    info = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT16, ["batch", 3])
    name, shape, dtype, names = get_info(info)
    assert (name, str(shape[0]), shape[1], dtype, names) == ("x", "?", 3, "float16", ["batch", "3"])


def test_graphs_of_torchscript() -> None:
    torch = pytest.importorskip("torch")
    from tvm.relay.frontend import pytorch

    @torch.jit.script
    def f(x, y: bool):  # type: ignore[no-untyped-def]
        if y:
            x = torch.relu(x)
        return torch.split(x, 1)[0]

    graph = f.graph
    pytorch._run_jit_passes(graph)
    assert {"aten::relu", "prim::If", "aten::split"} <= pytorch.get_all_op_names(graph)
    assert pytorch._get_input_names(graph) == ["x.1", "y.1"]
    assert [node.kind() for _, node in pytorch._get_operator_nodes(graph.nodes())][-1] == "aten::__getitem__"
    found = pytorch._get_relay_input_vars(graph, [("a", (2, 3)), ("b", ((), "bool"))], None, is_module=False)
    assert [(k, v.name_hint, str(v.type_annotation)) for k, v in found.items()] == [
        ("x.1", "a", "Tensor[(2, 3), float32]"),
        ("y.1", "b", "bool"),
    ]
    assert pytorch._analysis.free_vars is relay.analysis.free_vars and pytorch.Prelude
    with pytest.raises(tvm.TVMError, match="has 1 inputs, and the graph takes 2"):
        pytorch._get_relay_input_vars(graph, [("a", (2, 3))], None, is_module=False)
