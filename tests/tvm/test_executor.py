"""Executors: what `create_executor` returns, interpreted and compiled."""

from __future__ import annotations

import numpy as np
import pytest

import relaylang as relay
from relaylang.ir import Call, Function, TensorType, Var, const
from relaylang.ops import get
from relaylang.syntax import parse
from relaylang.tvm.relay.testing import run_as_python
from relaylang.tvm.runtime.ndarray import NDArray, cpu, empty
from relaylang.tvm.runtime.vm import VirtualMachine
from tests.tvm.test_api import TEXT


@pytest.mark.parametrize("kind", ["debug", "graph", "vm"])
def test_executors_agree(kind: str) -> None:
    x = np.array([[-1, 0, 1], [2, 3, 4]], np.float32)
    run = relay.create_executor(kind, relay.parse(TEXT), params={"b": np.float32(-1)}).evaluate()
    np.testing.assert_array_equal(run(x), [[0, 0, 0], [1, 2, 3]])
    np.testing.assert_array_equal(run(x=x, b=np.float32(0)), np.maximum(x, 0))


def test_branches_and_loops_ahead_of_time() -> None:
    mod = relay.parse("""
def @loop(%n: int32, %x: int32) -> int32 { if (less(%n, 1)) { %x } else { @loop(subtract(%n, 1), multiply(%x, 2)) } }
def @main(%n: int32) -> int32 { @loop(%n, 3) }
""")
    assert relay.create_executor("aot", mod).evaluate()(10) == 3072
    assert relay.create_executor("aot", relay.parse(TEXT)).evaluate()(b=1, x=np.ones((2, 3))).tolist() == [[2] * 3] * 2


@pytest.mark.sample(3)
@pytest.mark.parametrize("kind", ["graph", "vm", "aot"])
@pytest.mark.parametrize("target", ["llvm", {"cpu": "llvm"}, ["llvm -mcpu=generic"]])
def test_targets_as_scripts_write_them(kind: str, target: object) -> None:
    mod = relay.parse("def @main(%x: int32) { add(%x, 1) }")
    assert relay.create_executor(kind, mod, target=target).evaluate()(4) == 5
    assert VirtualMachine(relay.vm.compile(mod, target), cpu()).invoke("main", np.int32(4)).numpy() == 5


def test_wrong_calls_of_an_executor() -> None:
    run = relay.create_executor("graph", relay.parse(TEXT)).evaluate()
    x = np.zeros((2, 3), np.float32)
    for args, named in (((x,), {}), ((x, x, x), {}), ((x,), {"c": 1})):
        with pytest.raises(relay.RelayError):
            run(*args, **named)
    with pytest.raises(relay.RelayError, match="unknown executor"):
        relay.create_executor("quantum")


@pytest.mark.parametrize("kind", ["debug", "graph"])
def test_parameters_of_one_name(kind: str) -> None:
    x, other, w = relay.var("x", shape=(2,)), relay.var("x", shape=(2,)), relay.var("w", shape=(2,))
    a, b = np.array([1, 2], "float32"), np.array([5, 5], "float32")
    run = relay.create_executor(kind).evaluate(relay.Function([x, other], x - other))
    assert run(a, b).numpy().tolist() == run(x=a, x_2=b).tolist() == run(a, x_2=b).tolist() == [-4, -3]
    assert run(x=a).tolist() == [0, 0]  # one name for both, as in TVM
    with pytest.raises(relay.RelayError, match="%x"):
        run(x_2=a)
    assert relay.create_executor(kind).evaluate(x - other, {x: a, other: b}).tolist() == [-4, -3]
    # Parameters that have values are not among those in order, whatever their place.
    mod = relay.IRModule.from_expr(relay.Function([w, x], w - x))
    assert relay.create_executor(kind, mod=mod, params={"w": a}).evaluate()(b).tolist() == [-4, -3]


def test_executors_as_in_tvm() -> None:
    m = relay.parse("def @main(%x: int32, %y: int32) { subtract(%x, %y) }")
    for kind in ("debug", "graph", "vm"):
        assert relay.create_executor(kind, m).evaluate()(5, 3) == 2
    assert relay.create_executor("debug", m).evaluate(parse("fn (%x: int32) { add(%x, 1) }").expr)(1) == 2
    assert relay.create_executor("debug", mod=m, params={"y": 1}).evaluate()(5) == 4


def test_executors_take_what_scripts_for_tvm_give() -> None:
    m = relay.parse("def @main(%w: Tensor[(2), int32], %x: Tensor[(2), int32]) { (subtract(%x, %w), (%x,)) }")
    x, w = np.asarray([5, 6], np.int32), np.asarray([1, 2], np.int32)
    run_it = relay.create_executor("debug", mod=m, params={"w": w}).evaluate()
    difference, (same,) = run_it(x)
    assert difference.numpy().tolist() == [4, 4] and same.asnumpy().tolist() == [5, 6]
    assert type(difference.numpy()) is np.ndarray
    assert run_it(const(x))[0].tolist() == [4, 4]
    assert run_it(x=x, w=x)[0].tolist() == [0, 0]
    assert relay.create_executor("debug", m).evaluate(m.get_global_var("main"))(w, x=x)[0].tolist() == [4, 4]


@pytest.mark.parametrize("kind", ["debug", "graph", "vm"])
def test_names_of_other_values_are_left_out(kind: str) -> None:
    m = relay.parse("def @main(%w: int32, %x: int32) { subtract(%x, %w) }")
    assert relay.create_executor(kind, m).evaluate()(w=1, x=5, unused=7) == 4
    assert relay.create_executor(kind, m, params={"w": 1}).evaluate()(5, unused=7) == 4
    with pytest.raises(relay.RelayError, match="unused"):
        relay.create_executor(kind, m).evaluate()(x=5, unused=7)


def test_binds_give_free_variables_values() -> None:
    x = Var("x", TensorType((), "int32"))
    run_it = relay.create_executor("debug")
    assert run_it.evaluate(Call(get("add"), (x, x)), binds={x: 4}).numpy() == 8
    assert run_it.evaluate(Function((), Call(get("add"), (x, x))), binds={x: const(4)})() == 8
    assert run_it.evaluate(Call(get("add"), (const(1), const(2)))) == 3


def test_a_closure_of_an_executor_keeps_its_interface() -> None:
    assert relay.create_executor("debug", relay.parse("def @main(%x: int32) { add(%x, 1) }")).evaluate()(4).numpy() == 5


def test_there_is_one_executor() -> None:
    from relaylang import interpreter

    made = relay.create_executor("debug", relay.parse(TEXT))
    assert type(made) is type(relay.create_executor("graph", relay.parse(TEXT))) is relay.tvm.executor.Executor
    assert not hasattr(interpreter, "create_executor") and not hasattr(interpreter, "Executor")


def test_tensors_inside_results_have_tvms_names() -> None:
    m = relay.parse("""
type Box[A] { Box(A) }
def @main(%x: int32) { (Box((%x, ref(%x))), fn (%y: int32) { add(%x, %y) }) }
""")
    box, _ = relay.create_executor("debug", m).evaluate()(3)
    number, cell = box.fields[0]
    assert number.numpy() == cell.value.asnumpy() == 3 and isinstance(number, NDArray) and not isinstance(3, NDArray)
    target = empty((), "int32")
    assert target.copyfrom(number).numpy() == 3 and NDArray(np.int32(4)[None]).copyto(number.reshape(1)).numpy() == [4]


def test_a_function_as_a_result_is_a_python_function() -> None:
    m = relay.parse("def @twice(%x: int32) { multiply(%x, 2) }")
    assert run_as_python(m.get_global_var("twice"), m)(4).numpy() == 8
    assert run_as_python(relay.Tuple([const(1), parse("fn (%x: int32) { add(%x, 1) }").expr])[1])(2) == 3
    assert [part.tolist() for part in run_as_python(relay.split(const([1, 2]), 2))] == [[1], [2]]


def test_graphs_convert_inputs() -> None:
    m = relay.parse("def @main(%x: Tensor[(2), uint8], %y: float16) { (add(%x, 1u8), %y) }")
    total, same = relay.create_executor("graph", m).evaluate()(np.asarray([255, 258]), np.float64(0.1))
    assert total.tolist() == [0, 3] and same == np.float16(0.1)
    with pytest.raises(relay.RelayError, match="is Tensor"):
        relay.create_executor("graph", m).evaluate()(np.asarray([1, 2, 3]), 0.5)


def test_a_list_may_be_a_tuple() -> None:
    m = relay.parse("def @main(%x: ((int32, int32), int32)) { add(%x.0.1, %x.1) }")
    for kind in ("debug", "vm"):
        assert relay.create_executor(kind, m).evaluate()([[1, 2], 3]) == 5
