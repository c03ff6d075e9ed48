"""What `relay.build` returns, its executors, its graph and its files."""

from __future__ import annotations

import copy
import json
import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relaylang as relay
from relaylang.backends import compile_module
from relaylang.diagnostics import RelayError
from relaylang.tvm import nd, rpc, runtime
from relaylang.tvm.contrib import cc, graph_executor, utils
from relaylang.tvm.contrib.debugger import debug_executor
from relaylang.tvm.runtime.graph import GraphExecutor

NET = """#[version = "0.0.5"]
def @main(%x: Tensor[(2, 4), float32], %p: (Tensor[(2), float32], Tensor[(2), float32]), %w: Tensor[(3, 4), float32],
          %b: Tensor[(3), float32]) {
  %0 = nn.relu(nn.bias_add(nn.dense(%x, %w), %b));
  (%0, concatenate((%p.1, %p.0, exp(%p.0))), nn.softmax(%0))
}
"""
RNG = np.random.default_rng(1)
X, W, B = (RNG.standard_normal(shape).astype("f4") for shape in ((2, 4), (3, 4), (3,)))
P = (np.float32([1, 2]), np.float32([3, 4]))
TARGET = "llvm -num-threads=1"


def wanted(x: Any = X, w: Any = W, b: Any = B) -> list[np.ndarray]:
    out = relay.create_executor("debug", relay.parse(NET)).evaluate()(x, P, w, b)
    return [np.asarray(v) for v in out]


@pytest.fixture(scope="module")
def lib() -> Any:
    return relay.build(relay.parse(NET), TARGET, params={"w": W, "b": nd.array(B)})


def code(call: Any) -> str:
    with pytest.raises(RelayError) as caught:
        call()
    return caught.value.diagnostics[0].code


def results(module: graph_executor.GraphModule) -> list[np.ndarray]:
    return [module.get_output(n).numpy() for n in range(module.get_num_outputs())]


def same(module: graph_executor.GraphModule, values: list[np.ndarray]) -> None:
    found = results(module)
    assert len(found) == len(values)
    for a, b in zip(found, values):
        np.testing.assert_allclose(a, b, rtol=2e-6, atol=1e-7)


def filled(module: graph_executor.GraphModule, x: Any = X) -> graph_executor.GraphModule:
    module.set_input("x", x)
    module.set_input("p.0", P[0])
    module.set_input(2, P[1])
    return module


def test_the_three_parts_and_the_module_are_the_same_program(lib: Any) -> None:
    graph, module, params = lib
    assert graph == lib.get_graph_json() == lib.get_executor_config() and module is lib.get_lib()
    assert set(params) == {"w", "b"} == set(lib.get_params())
    m = filled(graph_executor.create(graph, module, nd.cpu(0)))
    m.set_input(**params)
    m.run()
    same(m, wanted())
    m = graph_executor.GraphModule(lib["default"](nd.cpu(0)))
    filled(m).run()
    same(m, wanted())
    assert m["get_num_outputs"]() == 3


def test_inputs_and_outputs_by_name_and_number(lib: Any) -> None:
    m = graph_executor.create(lib.get_graph_json(), lib, [nd.cpu()])
    assert m.get_num_inputs() == 5 and m.get_num_outputs() == 3
    assert [m.get_input_index(n) for n in ("x", "p.0", "p.1", "w", "b", "none")] == [0, 1, 2, 3, 4, -1]
    shapes, dtypes = m.get_input_info()
    assert shapes == {"x": (2, 4), "p.0": (2,), "p.1": (2,)} and set(dtypes.values()) == {"float32"}
    m.set_input("x", X.astype("f8"))
    np.testing.assert_array_equal(m.get_input("x").numpy(), X)
    np.testing.assert_array_equal(m.get_input(3).numpy(), W)
    assert m.get_output(0).numpy().tolist() == [[0] * 3] * 2
    out = nd.empty((2, 3))
    m.run(x=X)
    assert m.get_output(0, out) is out
    np.testing.assert_array_equal(out.numpy(), m.get_output(0).numpy())
    m.set_input(x=X, not_there=X)
    assert code(lambda: m.set_input("not_there", X)) == code(lambda: m.set_input("x", X[0])) == "R0640"
    assert code(lambda: m.get_output(3)) == code(lambda: m.get_input(9)) == "R0640"
    assert code(lambda: m.debug_get_output("x", None)) == "R0609"


def test_a_set_value_is_a_copy_and_results_last(lib: Any) -> None:
    m = filled(graph_executor.GraphModule(lib["default"](nd.cpu())))
    x = X.copy()
    m.set_input("x", x)
    x[:] = 0
    m.run()
    first = m.get_output(0)
    kept = first.numpy()
    m.run(x=np.zeros_like(X))
    np.testing.assert_array_equal(first.numpy(), kept)
    same(m, wanted(np.zeros_like(X)))


def test_tensors_read_and_written_in_place(lib: Any) -> None:
    m = filled(graph_executor.GraphModule(lib["default"](nd.cpu())))
    x, out = nd.array(X), nd.empty((2, 3))
    m.set_input_zero_copy("x", x)
    m.set_output_zero_copy(0, out)
    for scale in (1, 2):
        np.asarray(x)[:] = X * scale
        m.run()
        np.testing.assert_allclose(out.numpy(), wanted(X * scale)[0], rtol=2e-6)
        assert m.get_output(0) is out
    assert code(lambda: m.set_input_zero_copy("x", nd.empty((2, 5)))) == code(lambda: m.set_input_zero_copy("w", W)) == "R0640"


def test_weights_of_one_executor_are_its_own(lib: Any) -> None:
    one, two = (filled(graph_executor.GraphModule(lib["default"](nd.cpu()))) for _ in range(2))
    one.set_input("w", 2 * W)
    one.load_params(runtime.save_param_dict({"b": 3 * B, "unknown": B}))
    one.run()
    two.run()
    same(one, wanted(w=2 * W, b=3 * B))
    same(two, wanted())
    two.share_params(one, runtime.save_param_dict({"w": W, "b": B, "x": X}))
    two.run()
    same(two, wanted(w=2 * W, b=3 * B))
    assert two.get_input("x").same_as(one.get_input("x"))
    two.set_input("w", W)
    one.run()
    same(one, wanted(w=2 * W, b=3 * B))


def test_weights_that_are_inputs() -> None:
    lib = relay.build(relay.parse(NET), target=TARGET)
    assert lib.params == {}
    m = filled(graph_executor.GraphModule(lib["default"](nd.cpu())))
    m.load_params(relay.save_param_dict({"w": W, "b": B}))
    m.run()
    same(m, wanted())
    other = filled(graph_executor.GraphModule(lib["default"](nd.cpu())))
    other.share_params(m, relay.save_param_dict({"w": W, "b": B}))
    other.run()
    same(other, wanted())


def test_the_graph_says_what_runs(lib: Any) -> None:
    graph = json.loads(lib.get_graph_json())
    nodes, rows, attrs = graph["nodes"], graph["node_row_ptr"], graph["attrs"]
    assert [nodes[n]["name"] for n in graph["arg_nodes"]] == ["x", "p.0", "p.1", "w", "b"]
    assert all((node["op"] == "null") == (n in graph["arg_nodes"]) for n, node in enumerate(nodes))
    shapes, dtypes, storage = (attrs[key][1] for key in ("shape", "dltype", "storage_id"))
    assert len(shapes) == len(dtypes) == len(storage) == rows[-1] and len(rows) == len(nodes) + 1
    assert [shapes[rows[n] + i] for n, i, _ in graph["heads"]] == [[2, 3], [6], [2, 3]]
    for number, node in enumerate(nodes):
        assert all(source < number and 0 <= index < rows[source + 1] - rows[source] for source, index, _ in node["inputs"])
        if node["op"] == "tvm_op":
            assert int(node["attrs"]["num_inputs"]) == len(node["inputs"])
            assert int(node["attrs"]["num_outputs"]) == rows[number + 1] - rows[number]
    assert any("nn_dense_nn_bias_add_nn_relu" in node["name"] for node in nodes)
    read = {(s, i) for node in nodes for s, i, _ in node["inputs"]} | {(s, i) for s, i, _ in graph["heads"]}
    assert read >= {(n, i) for n, node in enumerate(nodes) for i in range(rows[n + 1] - rows[n])}


def test_no_result_lies_over_a_value_that_is_still_needed() -> None:
    """Tensors of equal `storage_id` follow each other."""
    text = "def @main(%x: Tensor[(1, 3, 16, 16), float32], %w: Tensor[(3, 3, 3, 3), float32]) {\n  %0 = nn.relu(%x);\n"
    for n in range(6):
        text += (
            f"  %{n + 1} = concatenate((nn.conv2d(%{n}, %w, padding=[1, 1, 1, 1]), %{n}), axis=2);\n"
            if n == 2
            else f"  %{n + 1} = nn.conv2d(%{n}, %w, padding=[1, 1, 1, 1]);\n"
        )
    graph = json.loads(relay.build(relay.parse(text + "  (%6, %3)\n}"), TARGET).graph_json)
    rows, storage = graph["node_row_ptr"], graph["attrs"]["storage_id"][1]
    last: dict[int, int] = {}
    for number, node in enumerate(graph["nodes"]):
        last.update({rows[s] + i: number for s, i, _ in node["inputs"]})
    last.update({rows[s] + i: len(graph["nodes"]) for s, i, _ in graph["heads"]})
    nops = [[rows[s] + i for s, i, _ in n["inputs"]] for n in graph["nodes"] if n.get("attrs", {}).get("func_name") == "__nop"]
    assert nops
    for number in range(len(graph["nodes"])):
        for entry in range(rows[number], rows[number + 1]):
            for other in range(entry):
                parts = any(other in joined and entry in joined for joined in nops)
                if storage[other] == storage[entry] and not parts and graph["nodes"][number]["attrs"]["func_name"] != "__nop":
                    inputs = [rows[s] + i for s, i, _ in graph["nodes"][number]["inputs"]]
                    assert last[other] < number or (last[other] == number and other in inputs)


def test_another_program_s_graph_is_refused(lib: Any) -> None:
    other = relay.build(relay.parse("def @main(%x: float32) { negative(%x) }"), TARGET)
    assert code(lambda: graph_executor.create(other.graph_json, lib, nd.cpu())) == "R0640"
    assert code(lambda: graph_executor.create("{", lib, nd.cpu())) == "R0640"
    assert code(lambda: graph_executor.create(lib.graph_json, object(), nd.cpu())) == "R0640"
    assert code(lambda: graph_executor.create(lib.graph_json, lib, "cpu")) == "R0608"
    spaced = json.dumps(json.loads(lib.graph_json), indent=2)
    graph_executor.create(spaced, lib, nd.cpu())


@pytest.mark.parametrize("dev", [nd.cuda(0), nd.cpu(1)])
def test_other_devices_are_refused(lib: Any, dev: nd.Device) -> None:
    m = graph_executor.GraphModule(lib["default"](nd.cpu()))
    assert code(lambda: lib["default"](dev)) == code(lambda: m.benchmark(dev)) == "R0608"
    assert code(lambda: m.module.time_evaluator("run", dev)) == "R0608"
    assert code(lambda: graph_executor.create(lib.graph_json, lib, dev)) == "R0608"


def test_measurements(lib: Any) -> None:
    m = filled(graph_executor.GraphModule(lib["default"](nd.cpu())))
    timer = m.module.time_evaluator("run", nd.cpu(), number=2, repeat=3, min_repeat_ms=0)
    assert len(timer().results) == 3 and timer().mean > 0
    same(m, wanted())
    assert len(m.benchmark(nd.cpu(), repeat=4, number=1, x=X).results) == 4
    assert len(m.benchmark(nd.cpu(), repeat=2, number=1, end_to_end=True, x=X).results) == 2
    assert len(m.benchmark(nd.cpu(), repeat=3, number=1, cooldown_interval_ms=1, repeats_to_cooldown=2).results) == 3
    assert code(lambda: m.benchmark(nd.cpu(), repeat=0)) == "R0640"
    with pytest.raises(AttributeError, match="no function 'fly'"):
        m.module.time_evaluator("fly", nd.cpu())


@pytest.mark.sweep
def test_the_debugger_times_each_kernel(lib: Any, tmp_path: Path, capsys: Any) -> None:
    m = debug_executor.create(lib.get_graph_json(), lib, nd.cpu(), dump_root=str(tmp_path / "dump"))
    filled(m).run(number=2)
    assert "nn.dense > nn.bias_add > nn.relu" in capsys.readouterr().out
    same(m, wanted())
    assert {p.name for p in (tmp_path / "dump").iterdir()} >= {"_tvmdbg_graph_dump.json", "output_tensors.npz"}
    report = m.profile(x=X)
    assert len(report.csv().splitlines()) == 1 + len(report.calls) and json.loads(report.json())["kernels"] == report.calls
    times = m.run_individual(2, 3)
    assert len(times) == len(report.calls) and all(len(row) == 3 for row in times)
    lib.export_library(tmp_path / "net.so")
    loaded = runtime.load_module(tmp_path / "net.so")
    assert code(lambda: loaded["debug_create"]("default", nd.cpu())) == "R0609"


@pytest.mark.sweep
def test_the_debugger_shows_the_values_inside() -> None:
    text = """def @main(%x: Tensor[(1, 4), float32], %w: Tensor[(3, 4), float32]) {
      let %a = nn.relu(nn.dense(%x, %w)); let %b = nn.softmax(%a); (sum(%b, axis=[1]), nn.softmax(add(%b, %a)))
    }"""
    x, w = np.float32([[1, -2, 3, 4]]), np.arange(12, dtype="float32").reshape(3, 4) / 10
    lib = relay.build(relay.parse(text), TARGET, params={"w": w})
    m = debug_executor.create(lib.get_graph_json(), lib, nd.cpu())
    m.set_input("x", x)
    hidden = np.maximum(x @ w.T, 0)
    soft = np.exp(hidden - hidden.max()) / np.exp(hidden - hidden.max()).sum()
    found = m.debug_datum.get_output_tensors()
    for value in (x, w, hidden, soft):
        assert any(t.shape == value.shape and np.allclose(t.numpy(), value, rtol=1e-6) for t in found.values()), value
    nodes = m.debug_datum.get_graph_nodes()
    assert list(found) == [f"{node['name']}____topo-index:{n}____output-num:0" for n, node in enumerate(nodes)]
    m.run(number=1)
    names = [node["name"] for node in nodes]
    for number, name in ((n, name) for n, name in enumerate(names) if names.count(name) == 1):
        out = nd.empty(found[f"{name}____topo-index:{number}____output-num:0"].shape)
        assert m.debug_get_output(name, out) is out
        np.testing.assert_array_equal(out.numpy(), m.debug_get_output(number).numpy())
        np.testing.assert_array_equal(out.numpy(), m.module["get_output_by_layer"](number, 0).numpy())
    assert "all" in m.get_debug_result() and m.debug_datum.get_graph_node_dtypes()[0] == "float32"
    m.set_input("x", -x)
    m.set_input("w", 2 * w)
    np.testing.assert_array_equal(m.debug_get_output("x").numpy(), -x)
    np.testing.assert_array_equal(m.debug_get_output("w").numpy(), 2 * w)
    assert code(lambda: m.debug_get_output("y")) == code(lambda: m.debug_get_output(99)) == "R0640"
    assert code(lambda: m.module.get_output_by_layer(0, 1)) == "R0640"


@pytest.mark.parametrize("name", ["net.so", "net.tar", "net.o", "net.any"])
def test_exported_programs_run_again(lib: Any, name: str, tmp_path: Path) -> None:
    lib.export_library(str(tmp_path / name))
    loaded = runtime.load_module(str(tmp_path / name))
    m = filled(graph_executor.GraphModule(loaded["default"](nd.cpu())))
    m.run()
    same(m, wanted())
    assert loaded["get_graph_json"]() == lib.graph_json and set(loaded["get_graph_params"]()) == {"w", "b"}
    assert loaded.type_key == "GraphExecutorFactory" and loaded.get_source() == lib.get_lib().get_source()
    assert list(tmp_path.iterdir()) == [tmp_path / name]


@pytest.mark.skipif(shutil.which("cc") is None, reason="no compiler called cc")
def test_other_linkers(lib: Any, tmp_path: Path) -> None:
    seen: list[Any] = []

    def own(output: str, objects: list[str], **options: Any) -> str:
        seen.append((objects, options))
        cc.create_shared(output, objects, options.get("options"))
        return "done"

    for n, options in enumerate(
        (
            {"cc": "cc"},
            {"options": ["-g"]},
            {"fcompile": cc.create_shared},
            {"fcompile": cc.cross_compiler("cc")},
            {"fcompile": own, "options": ["-g"]},
        )
    ):
        path = tmp_path / f"net{n}.so"
        returned = lib.export_library(path, **options)
        m = filled(graph_executor.GraphModule(runtime.load_module(path)["default"](nd.cpu())))
        m.run()
        same(m, wanted())
    assert returned == "done" and seen[0][1] == {"options": ["-g"]} and seen[0][0][0].endswith("lib0.o")
    assert code(lambda: lib.export_library(tmp_path / "x.so", cc="no-such-compiler")) == "R0630"
    assert code(lambda: lib.export_library(tmp_path / "x.so", options=["--no-such-flag"])) == "R0631"
    assert code(lambda: lib.export_library(tmp_path / "x.so", fcompile=lambda *a: 1 / 0)) == "R0631"
    assert code(lambda: lib.export_library(tmp_path / "x.so", fcompile=lambda *a: None)) == "R0631"
    assert not (tmp_path / "x.so").exists()


def test_sources(lib: Any, tmp_path: Path) -> None:
    assert "relay_run" in lib.lib.get_source() and ".text" in lib.get_lib().get_source("asm")
    lib.lib.save(str(tmp_path / "net.c"))
    assert (tmp_path / "net.c").read_text() == lib.lib.get_source("c")
    assert code(lambda: lib.lib.get_source("ll")) == code(lambda: lib.lib.save(str(tmp_path / "net.ll"))) == "R0609"


def test_a_program_is_still_an_artifact(lib: Any, tmp_path: Path) -> None:
    assert lib.input_names == ["x", "p"]
    for other in (lib, copy.deepcopy(lib.artifact), pickle.loads(pickle.dumps(lib))):
        for a, b in zip(other.run(X, P), wanted()):
            np.testing.assert_allclose(a, b, rtol=2e-6, atol=1e-7)
    lib.save(tmp_path / "net.tar")
    assert runtime.load_module(tmp_path / "net.tar").artifact.input_names == ["x", "p"]


def test_targets_as_scripts_write_them() -> None:
    mod = relay.parse("def @main(%x: Tensor[(2), float32]) { negative(%x) }")
    for target in (None, "llvm", {"cpu": "llvm"}, ["c"], relay.backends.Target("c")):
        assert relay.build(mod, target, mod_name="own")["own"](nd.cpu()).get_num_outputs() == 1
    made = relay.build(relay.Function([x := relay.var("x", shape=(2,))], relay.Call(relay.ops.get("exp"), [x])))
    assert made.run(np.zeros(2, "f4")).tolist() == [1, 1]


def test_sessions(lib: Any, tmp_path: Path) -> None:
    lib.export_library(tmp_path / "net.so")
    remote = rpc.LocalSession()
    remote.upload(str(tmp_path / "net.so"))
    m = filled(graph_executor.GraphModule(remote.load_module("net.so")["default"](remote.cpu())))
    m.run()
    same(m, wanted())
    assert remote.listdir() == "net.so" and remote.download("net.so") == (tmp_path / "net.so").read_bytes()
    for refused in (lambda: rpc.connect("0.0.0.0", 9090), lambda: rpc.connect("other", 9091), lambda: rpc.connect_tracker("a", 1)):
        assert code(refused) == "R0609"
    assert code(runtime.system_lib) == "R0609"
    assert runtime.enabled("llvm") and not runtime.enabled("cuda") and runtime.num_threads() >= 1


def test_temporary_folders() -> None:
    folder = utils.tempdir()
    Path(folder.relpath("a")).write_text("x")
    assert folder.listdir() == ["a"] and (folder / "a").read_text() == "x"
    folder.remove()
    assert not folder.path.exists()


def test_programs_for_other_machines(tmp_path: Path) -> None:
    pytest.importorskip("ziglang")
    mod = relay.parse("def @main(%x: Tensor[(2), float32]) { negative(%x) }")
    lib = relay.build(mod, "llvm -mtriple=aarch64-linux-gnu -cc=zig -mcpu=generic")
    assert code(lambda: lib["default"](nd.cpu())) == "R0641"
    lib.export_library(tmp_path / "net.so")
    lib.export_library(tmp_path / "net.o")
    assert (tmp_path / "net.o").read_bytes()[:4] == b"\x7fELF"
    assert code(lambda: runtime.load_module(tmp_path / "net.o")) == "R0641"


def _dense() -> Any:
    module = relay.parse("def @main(%x: Tensor[(2, 3), float32], %w: Tensor[(4, 3), float32]) { nn.dense(%x, %w) }")
    return graph_executor.GraphModule(relay.build(module, TARGET, params={"w": np.ones((4, 3), "f4")})["default"](runtime.cpu()))


@pytest.mark.parametrize(
    ("key", "value", "title"),
    [
        ("x", np.ones((3, 2), "f4"), "the input x is Tensor[(2, 3), float32], not Tensor[(3, 2), float32]"),
        ("x", np.ones((2, 3, 1), "i8"), "the input x is Tensor[(2, 3), float32], not Tensor[(2, 3, 1), int64]"),
        ("x", [[1, 2], [3, 4]], "the input x is Tensor[(2, 3), float32]: an array of shape (2, 2) does not fit the shape (2, 3)"),
        ("x", "text", "the input x is Tensor[(2, 3), float32]: a value of type str is no tensor"),
        (0, np.ones(6, "f4"), "the input x is Tensor[(2, 3), float32], not Tensor[(6), float32]"),
        ("w", np.ones((5, 3), "f4"), "the weight w is Tensor[(4, 3), float32], not Tensor[(5, 3), float32]"),
        ("data", np.ones((2, 3), "f4"), "the program has no input data"),
        (7, np.ones((2, 3), "f4"), "the program has no input 7"),
        (-1, np.ones((2, 3), "f4"), "the program has no input -1"),
    ],
)
def test_messages_about_inputs_name_the_input_and_both_types(key: Any, value: Any, title: str) -> None:
    with pytest.raises(RelayError) as caught:
        _dense().set_input(key, value)
    (said,) = caught.value.diagnostics
    assert (said.code, said.title) == ("R0640", title)
    if title.startswith("the program"):
        assert "its inputs: x: Tensor[(2, 3), float32]" in said.notes


def test_lists_and_whole_numbers_are_converted() -> None:
    module = _dense()
    for value in ([[1, 2, 3], [4, 5, 6]], np.arange(1, 7, dtype="i8").reshape(2, 3), np.arange(1.0, 7.0).reshape(3, 2).reshape(2, 3)):
        module.set_input("x", value)
        module.run()
        assert module.get_output(0).numpy().tolist() == [[6.0] * 4, [15.0] * 4]


_WITHOUT_VALUE = "def @main(%p: Tensor[(2, 2), float32]) { add(%p, meta[relay.Constant][0] /* ty=Tensor[(2, 2), float32] */) }"


def test_a_constant_without_a_value_is_named_and_never_runs_as_zeros() -> None:
    module = relay.parse('#[version = "0.0.5"]\n' + _WITHOUT_VALUE)
    with pytest.raises(RelayError) as caught:
        relay.build(module, TARGET)
    (said,) = caught.value.diagnostics
    assert said.title == "the constant meta[relay.Constant][0] has no value" and said.span is not None
    assert any("init_meta_table" in note for note in said.notes) and any("params=" in note for note in said.notes)
    for executor in ("debug", "graph", "vm"):
        with pytest.raises(RelayError, match=r"meta\[relay\.Constant\]\[0\]"):
            relay.create_executor(executor, module, runtime.cpu(), TARGET).evaluate()(np.ones((2, 2), "f4"))


def test_a_constant_without_a_value_takes_one() -> None:
    value = np.full((2, 2), 3, "f4")
    module = relay.parse(_WITHOUT_VALUE)
    built = relay.build(module, TARGET, params={"meta[relay.Constant][0]": value})
    told = relay.build(relay.parse(_WITHOUT_VALUE, init_meta_table={"relay.Constant": [relay.const(value)]}), TARGET)
    for library in (built, told):
        runner = graph_executor.GraphModule(library["default"](runtime.cpu()))
        runner.set_input("p", np.ones((2, 2), "f4"))
        runner.run()
        assert runner.get_output(0).numpy().tolist() == [[4.0, 4.0], [4.0, 4.0]]


def test_a_library_that_lacks_a_constant_asks_for_it() -> None:
    runner = graph_executor.GraphModule(GraphExecutor(compile_module(relay.parse(_WITHOUT_VALUE), "c")))
    runner.set_input("p", np.ones((2, 2), "f4"))
    with pytest.raises(RelayError, match="has no value"):
        runner.run()
    runner.set_input("meta[relay.Constant][0]", np.ones((2, 2), "f4"))
    runner.run()
    assert runner.get_output(0).numpy().tolist() == [[2.0, 2.0], [2.0, 2.0]]
