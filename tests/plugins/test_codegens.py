"""Code generators of other people: their code in compiled programs, in files, and in a run."""

from __future__ import annotations

import copy
import json
import pickle
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import relaylang as relay
from relaylang.backends.aot import compile_aot
from relaylang.dataflow_pattern import is_constant, is_op, wildcard
from relaylang.diagnostics import RelayError
from relaylang.runtime.artifact import load, loads, read_sealed, write_sealed
from relaylang.runtime.cpu import CpuArtifact
from relaylang.runtime.external import CODEGENS, Code, Region, codegen
from tests.plugins.packages import install, undone
from tests.shared import ROOT

TARGET = "c -num-threads=1 -cflags=-O1"
X, Y = (np.random.default_rng(n).standard_normal((2, 3)).astype("f4") for n in range(2))
HEAD = '#[version = "0.0.5"]\n'
ONE = (
    HEAD
    + """def @f(%a: Tensor[(2, 3), float32], %b: Tensor[(2, 3), float32], Compiler="cg", Primitive=1) {
  subtract(multiply(%a, %b), meta[relay.Constant][0])
}
def @main(%x: Tensor[(2, 3), float32], %y: Tensor[(2, 3), float32]) {
  nn.relu(@f(nn.relu(%x), %y))
}
"""
)


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    kept = dict(CODEGENS)
    yield
    CODEGENS.clear()
    CODEGENS.update(kept)


def module(text: str = ONE, shift: float = 0.5) -> relay.IRModule:
    return relay.parse(text.replace("meta[relay.Constant][0]", f"{shift}f"))


def build(mod: relay.IRModule, target: str = TARGET, **named: Any) -> CpuArtifact:
    made = relay.backends.compile_module(mod, target, **named)
    assert isinstance(made, CpuArtifact)
    return made


def wanted(mod: relay.IRModule, *args: Any) -> Any:
    return relay.create_executor("debug", mod).evaluate()(*args)


def said(call: Callable[[], Any]) -> tuple[str, str]:
    with pytest.raises(RelayError) as caught:
        call()
    return caught.value.diagnostics[0].code, str(caught.value)


def in_c(region: Region) -> str:
    return (
        f"#include <stdint.h>\nint32_t {region.symbol}(const float* a, const float* b, float* c) {{\n"
        "  for (int i = 0; i < 6; i++) c[i] = a[i] * b[i] - 0.5f;\n  return 0;\n}\n"
    )


def compiled(region: Region, folder: Path) -> bytes:
    (folder / "x.c").write_text(in_c(region))
    subprocess.run(["cc", "-c", "-fPIC", "-O1", "-ffp-contract=off", "x.c", "-o", "x.o"], cwd=folder, check=True)
    return (folder / "x.o").read_bytes()


def in_python(region: Region) -> Callable[..., None]:
    def run(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
        np.multiply(a, b, out=out)
        np.subtract(out, np.float32(0.5), out=out)

    return run


def load_bytes(content: bytes, symbol: str) -> Callable[..., Any]:
    shift = np.float32(json.loads(content[3:])["shift"])
    return lambda a, b, out: a * b - shift


#: Ways to give code, each with its kind.
WAYS: dict[str, Callable[[Region, Path], Any]] = {
    "c": lambda region, folder: in_c(region),
    "object": compiled,
    "data": lambda region, folder: b"cg:" + json.dumps({"shift": 0.5}).encode(),
    "python": lambda region, folder: in_python(region),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("kind", list(WAYS))
def test_each_kind_of_code_runs_and_is_saved(kind: str, tmp_path: Path) -> None:
    if kind == "object" and shutil.which("cc") is None:
        pytest.skip("no compiler called cc")
    codegen("cg", lambda region: WAYS[kind](region, tmp_path), load=load_bytes)
    mod = module()
    made = build(mod)
    right = wanted(mod, X, Y)
    assert made.manifest["externals"][0][:3] == ["cg", "f", kind]
    np.testing.assert_array_equal(made.run(X, Y), right)
    made.save(tmp_path / "net.so")
    made.save(tmp_path / "net.tar")
    for other in (
        load(tmp_path / "net.so"),
        load(tmp_path / "net.tar"),
        copy.copy(made),
        copy.deepcopy(made),
        pickle.loads(pickle.dumps(made)),
    ):
        np.testing.assert_array_equal(other.run(X, Y), right)
    assert len(made.benchmark(X, Y, repeat=2, number=1).results) == 2
    del CODEGENS["cg"]
    if kind in ("c", "object"):
        np.testing.assert_array_equal(load(tmp_path / "net.so").run(X, Y), right)
    else:
        code, text = said(lambda: load(tmp_path / "net.tar"))
        assert code == "R0641" and "the code generator cg" in text and "--load" in text


def test_a_region_has_its_tensors_and_constants() -> None:
    text = (
        HEAD
        + """def @f(%a: (Tensor[(2), float32], Tensor[(), int8]), Compiler="cg", Primitive=1, global_symbol="my.f 1") {
  (add(%a.0, meta[relay.Constant][0]), %a.1, multiply(%a.0, meta[relay.Constant][1]))
}
def @main(%x: Tensor[(2), float32], %y: int8) { @f((%x, %y)) }
"""
    )
    mod = relay.parse(text.replace("meta[relay.Constant][0]", "1f").replace("meta[relay.Constant][1]", "3f"))
    seen: list[Region] = []

    def generate(region: Region) -> Code:
        seen.append(region)
        source = (
            f"#include <stdint.h>\nint32_t {region.symbol}(const float* x, const int8_t* y, const float* three, const float* one,"
            " float* sum, int8_t* same, float* product) {\n"
            "  for (int i = 0; i < 2; i++) { sum[i] = x[i] + *one; product[i] = x[i] * *three; }\n  *same = *y;\n  return 0;\n}\n"
        )
        return Code(source=source, constants=[f"{region.symbol}_const_1", f"{region.symbol}_const_0"])

    codegen("cg", generate)
    made = build(mod)
    (region,) = seen
    assert region.compiler == "cg" and region.symbol == "my_f_1"
    assert list(map(str, region.inputs)) == ["Tensor[(2), float32]", "int8"]
    assert list(map(str, region.outputs)) == ["Tensor[(2), float32]", "int8", "Tensor[(2), float32]"]
    assert [float(v) for v in region.constants.values()] == [1, 3] and set(region.constant_names.values()) == set(region.constants)
    x, y = np.float32([5, 6]), np.int8(-7)
    for a, b in zip(made.run(x, y), wanted(mod, x, y)):
        np.testing.assert_array_equal(a, b)
        assert a.dtype == b.dtype


def test_large_constants_are_passed_without_a_copy() -> None:
    weights = np.random.default_rng(0).standard_normal((64, 64)).astype("f4")
    a = relay.var("a", shape=(1, 64))
    f = relay.Function([a], relay.nn.dense(a, relay.Constant(weights)), attrs={"Compiler": "cg", "Primitive": 1, "global_symbol": "d"})
    x = relay.var("x", shape=(1, 64))
    mod = relay.IRModule({"f": f})
    mod["main"] = relay.Function([x], relay.Call(mod.get_global_var("f"), [x]))
    seen: list[int] = []

    def generate(region: Region) -> Code:
        def run(a: np.ndarray, w: np.ndarray, out: np.ndarray) -> None:
            seen.append(w.ctypes.data)
            assert not w.flags.writeable and not a.flags.writeable and out.flags.writeable
            np.matmul(a, w.T, out=out)

        return Code(call=run, constants=list(region.constants))

    codegen("cg", generate)
    made = build(mod)
    value = np.random.default_rng(1).standard_normal((1, 64)).astype("f4")
    np.testing.assert_allclose(made.run(value), value @ weights.T, rtol=1e-5, atol=1e-5)
    assert seen == [v.ctypes.data for v in made.params.values()]


def test_inputs_and_outputs_are_the_callers_memory() -> None:
    places: list[int] = []
    codegen("cg", lambda region: lambda *tensors: places.extend(t.ctypes.data for t in tensors))
    text = (
        HEAD
        + """def @f(%a: Tensor[(2, 3), float32], Compiler="cg", Primitive=1) { negative(%a) }
def @main(%x: Tensor[(2, 3), float32]) { @f(%x) }
"""
    )
    out = np.zeros((2, 3), "f4")
    build(relay.parse(text)).run(X, out=out)
    assert places == [X.ctypes.data, out.ctypes.data]


def test_values_that_lie_inside_others_are_made_dense() -> None:
    """Slices of a tensor, parts of a concatenation, scalars, results that are used twice, and branches."""
    text = (
        HEAD
        + """def @f(%a: Tensor[(2, 2), float32], %s: float32, Compiler="cg", Primitive=1) { multiply(%a, %s) }
def @main(%x: Tensor[(2, 4), float32], %c: bool) {
  %0 = strided_slice(nn.relu(%x), begin=[0, 1], end=[2, 3], strides=[1, 1]);
  %1 = @f(%0, 2f);
  %2 = @f(%1, 3f);
  %3 = concatenate((%1, %2, exp(%2)), axis=1);
  %4 = if (%c) { @f(%2, 4f) } else { @f(%0, 5f) };
  (%3, %4, split(%3, indices_or_sections=3, axis=1).1)
}
"""
    )
    codegen(
        "cg",
        lambda region: (
            f"int {region.symbol}(const float* a, const float* s, float* r) "
            "{ for (int i = 0; i < 4; i++) r[i] = a[i] * *s; return 0; }"
        ),
    )
    mod = relay.parse(text)
    made = build(mod)
    x = np.random.default_rng(2).standard_normal((2, 4)).astype("f4")
    for flag in (True, False):
        for a, b in zip(made.run(x, np.bool_(flag)), wanted(mod, x, np.bool_(flag))):
            np.testing.assert_allclose(a, b, rtol=1e-6)
    assert len(made.manifest["externals"]) == 1
    names = [node["name"] for node in json.loads(made.graph)["nodes"]]
    assert names.count("f") == 2


def test_bfloat16_and_empty_tensors_arrive_as_they_are() -> None:
    text = (
        HEAD
        + """def @f(%a: Tensor[(3), bfloat16], %b: Tensor[(0, 2), int64], Compiler="cg", Primitive=1) { (negative(%a), %b) }
def @main(%x: Tensor[(3), bfloat16], %b: Tensor[(0, 2), int64]) { @f(abs(%x), %b) }
"""
    )
    seen: list[Any] = []

    def run(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        seen.append([(t.dtype.name, t.shape) for t in (a, b, c, d)])
        return -a, b

    codegen("cg", lambda region: run)
    x = np.array([1, -2, 3], ml_dtypes.bfloat16)
    found = build(relay.parse(text)).run(x, np.zeros((0, 2), np.int64))
    assert found[0].astype("f4").tolist() == [-1, -2, -3] and found[1].shape == (0, 2)
    assert seen == [[("bfloat16", (3,)), ("int64", (0, 2))] * 2]


def test_partitioned_programs() -> None:
    x, w = relay.var("x", shape=(1, 8)), relay.Constant(np.ones((4, 8), "f4"))
    mod = relay.IRModule.from_expr(relay.Function([x], relay.exp(relay.nn.relu(relay.nn.dense(x, w)))))
    pattern = is_op("nn.relu")(is_op("nn.dense")(wildcard(), is_constant()))
    relay.op.contrib.register_pattern_table("cg", lambda: [("cg.dense_relu", pattern)])
    try:
        passes = [
            relay.transform.MergeComposite(relay.op.contrib.get_pattern_table("cg")),
            relay.transform.AnnotateTarget("cg"),
            relay.transform.MergeCompilerRegions(),
            relay.transform.PartitionGraph(),
        ]
        part = relay.transform.Sequential([relay.transform.InferType(), *passes])(mod)
    finally:
        relay.partition.PATTERN_TABLES.pop("cg", None)
    regions: list[Region] = []

    def generate(region: Region) -> Any:
        regions.append(region)
        (weights,) = region.constants.values()
        return lambda x, out: np.maximum(x @ weights.T, 0)

    codegen("cg", generate)
    value = np.random.default_rng(3).standard_normal((1, 8)).astype("f4")
    np.testing.assert_allclose(build(part).run(value), wanted(mod, value), rtol=1e-6)
    assert len(regions) == 1


def test_what_raises_inside_a_run_has_the_program_s_place() -> None:
    def run(a: Any, b: Any, out: Any) -> None:
        if a[0, 0] > 0:
            raise LookupError("no luck today")
        out[:] = 1

    codegen("cg", lambda region: run)
    made = build(module())
    good, bad = -np.ones((2, 3), "f4"), np.ones((2, 3), "f4")
    for _ in range(2):
        code, text = said(lambda: made.run(bad, Y))
        assert code == "R0606" and "LookupError: no luck today" in text and "from_string:6" in text and "nn.relu(@f(" in text
        np.testing.assert_array_equal(made.run(good, Y), np.ones((2, 3)))
    assert said(lambda: made.benchmark(bad, Y, repeat=1, number=1))[0] == "R0606"


def test_c_that_fails_ends_the_run() -> None:
    text = (
        HEAD
        + """def @f(%a: Tensor[(2), float32], Compiler="cg", Primitive=1) { negative(%a) }
def @g(%a: Tensor[(2), float32], Compiler="never", Primitive=1) { negative(%a) }
def @main(%x: Tensor[(2), float32]) { @g(exp(@f(%x))) }
"""
    )
    ran: list[int] = []
    codegen("cg", lambda region: f"int {region.symbol}(const float* a, float* b) {{ b[0] = b[1] = 0; return a[0] > 0 ? 42 : 0; }}")
    codegen("never", lambda region: lambda a, b: ran.append(1))
    made = build(relay.parse(text), "c -cflags=-O1")
    code, message = said(lambda: made.run(np.ones(2, "f4")))
    assert code == "R0606" and "returned 42" in message and ran == []
    made.run(np.zeros(2, "f4"))
    assert ran == [1]


def test_results_that_do_not_fit_are_refused() -> None:
    for returned in (np.zeros((3, 2), "f4"), np.zeros((2, 3)), (X, X), "text"):
        codegen("cg", lambda region, returned=returned: lambda *tensors: returned)
        made = build(module())
        assert said(lambda made=made: made.run(X, Y))[0] == "R0606"


def test_an_interrupt_stays_one() -> None:
    def run(*tensors: Any) -> None:
        raise KeyboardInterrupt

    codegen("cg", lambda region: run)
    made = build(module())
    with pytest.raises(KeyboardInterrupt):
        made.run(X, Y)


def test_threads_have_errors_of_their_own() -> None:
    def run(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
        if a[0, 0] > 0:
            raise ValueError(f"value {a[0, 0]:.0f}")
        out[:] = 0

    codegen("cg", lambda region: run)
    made = build(module())
    wrong: list[str] = []

    def work(number: int) -> None:
        for _ in range(30):
            try:
                made.run(np.full((2, 3), number, "f4"), Y)
                ok = number <= 0
            except RelayError as e:
                ok = number > 0 and f"value {number}" in str(e)
            if not ok:
                wrong.append(f"{number}")

    threads = [threading.Thread(target=work, args=(n,)) for n in (-1, 1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.parametrize(
    ("made", "needle"),
    [
        (None, "nothing (None)"),
        (5, "type int"),
        ("", "0 kinds"),
        (b"bytes", "has no loader"),
        (Code(), "0 kinds"),
        (Code(source="x", data=b""), "2 kinds"),
        (Code(call=print, workspace=8), "a workspace for f"),
        ("int f( {", "refuses the code of cg for f"),
        (Code(source="int f;", constants=["w"]), "constant w"),
        ("int g(void) { return 0; }", "undefined symbol: f"),
    ],
)
def test_generators_that_give_no_code(made: Any, needle: str) -> None:
    codegen("cg", lambda region: made)
    code, text = said(lambda: build(module()))
    assert code == "R0605" and needle in text


def test_a_workspace() -> None:
    def generate(region: Region) -> Code:
        return Code(
            source=f"""#include <stdint.h>
            #include <string.h>
            int32_t {region.symbol}(const float* a, const float* b, float* c, void* workspace) {{
              float* products = workspace;
              memset(workspace, 0x55, 4000);
              for (int i = 0; i < 6; i++) products[i] = a[i] * b[i];
              for (int i = 0; i < 6; i++) c[i] = products[i] - 0.5f;
              return (uintptr_t)workspace % 64 != 0;
            }}""",
            workspace=4000,
        )

    codegen("cg", generate)
    made = build(module())
    np.testing.assert_array_equal(made.run(X, Y), wanted(module(), X, Y))
    assert made.manifest["arena"] >= 4000
    program = compile_aot(module())
    np.testing.assert_array_equal(program.run(X, Y), wanted(module(), X, Y))
    assert program.workspace >= 4000


def test_a_generator_that_raises() -> None:
    def generate(region: Region) -> None:
        raise RuntimeError("no such unit")

    codegen("cg", generate)
    code, text = said(lambda: build(module()))
    assert code == "R0605" and "no such unit" in text and "test_codegens.py" in text


def test_without_a_generator_the_error_names_the_way() -> None:
    codegen("accelerators", in_c)
    code, text = said(lambda: build(module(ONE.replace('"cg"', '"accelerator"'))))
    assert code == "R0632" and "compiler accelerator cannot be compiled" in text and "did you mean accelerators?" in text
    assert "codegen(" in text and "--executor interpreter" in text


def test_files_that_somebody_changed(tmp_path: Path) -> None:
    codegen("cg", lambda region: b"cg:" + b'{"shift": 0.5}', load=load_bytes)
    content = write_sealed(build(module()).packed().parts())
    parts = read_sealed(content, "x")
    assert "external/0.bin" in parts
    for bad in (b"", b"cg:{", b"cg:[]"):
        assert said(lambda bad=bad: loads(write_sealed({**parts, "external/0.bin": bad})))[0] == "R0605"
    assert said(lambda: loads(write_sealed({k: v for k, v in parts.items() if k != "external/0.bin"})))[0] == "R0641"
    flipped = bytearray(content)
    flipped[content.index(b'{"shift"')] ^= 1
    assert said(lambda: loads(bytes(flipped)))[0] == "R0641"
    manifest = json.loads(parts["manifest.json"])

    def refused(changed: Any) -> bool:
        return said(lambda: loads(write_sealed({**parts, "manifest.json": json.dumps(changed).encode()})))[0] == "R0641"

    for place, value in ((2, "c"), (2, "python"), (0, "other"), (3, []), (4, [[[2, 3], "int8"]])):
        changed = json.loads(json.dumps(manifest))
        changed["externals"][0][place] = value
        assert refused(changed)
    for externals in ([], [[]], None, [manifest["externals"][0]] * 2):
        changed = {**manifest, "externals": externals}
        assert refused(changed)


def test_a_saved_function_that_is_generated_again_must_be_the_same(tmp_path: Path) -> None:
    codegen("cg", in_python)
    build(module()).save(tmp_path / "net.so")
    codegen("cg", in_c)
    assert said(lambda: load(tmp_path / "net.so"))[0] == "R0641"
    codegen("cg", in_python)
    np.testing.assert_array_equal(load(tmp_path / "net.so").run(X, Y), wanted(module(), X, Y))


def test_generators_of_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        "def generate(region):\n    return b'cg!'\n\n\n"
        "def load(content, symbol):\n    assert content == b'cg!'\n    return lambda a, b, out: a * b - 0.5\n"
    )
    with undone():
        install(tmp_path, "cg-maker", {"codegens": {"cg": "cg_maker"}}, code)
        monkeypatch.syspath_prepend(str(tmp_path))
        made = build(module())
        np.testing.assert_allclose(made.run(X, Y), wanted(module(), X, Y), rtol=1e-6)
        made.save(tmp_path / "net.so")
        del CODEGENS["cg"]
        np.testing.assert_allclose(load(tmp_path / "net.so").run(X, Y), wanted(module(), X, Y), rtol=1e-6)


def test_a_package_that_has_no_generator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with undone():
        install(tmp_path, "cg-wrong", {"codegens": {"cg": "cg_wrong:thing"}}, "thing = 5\n")
        monkeypatch.syspath_prepend(str(tmp_path))
        assert said(lambda: build(module()))[0] == "R0512"


def test_the_example(tmp_path: Path) -> None:
    from relaylang.plugins.files import load_file

    load_file(str(ROOT / "examples/codegen.py"))
    mod = relay.parse((ROOT / "examples/regions.relay").read_text())
    made = build(mod)
    assert [e[2] for e in made.manifest["externals"]] == ["c", "python"]
    np.testing.assert_allclose(made.run(X, Y), wanted(mod, X, Y), rtol=1e-6)
    made.save(tmp_path / "net.so")
    np.testing.assert_allclose(load(tmp_path / "net.so").run(X, Y), wanted(mod, X, Y), rtol=1e-6)


CCOMPILER = {"add": "+", "subtract": "-", "multiply": "*"}


def ccompiler(region: Region) -> Code:
    """C for chains of sums, differences and products, as TVM's introduction to code generators has it."""
    names: dict[Any, str] = {p: f"in{n}" for n, p in enumerate(region.function.params)}
    constants: list[str] = []
    size = int(np.prod(region.outputs[0].shape))
    lines: list[str] = []
    for node in relay.ir.post_order(region.function.body):
        if isinstance(node, relay.Constant):
            names[node] = f"in{len(region.inputs) + len(constants)}"
            constants.append(region.constant_names[id(node)])
        elif isinstance(node, relay.Call):
            left, right = (names[a] for a in node.args)
            names[node] = "out" if node is region.function.body else f"buffer{len(lines)}"
            declared = "" if node is region.function.body else f"  static __thread float {names[node]}[{size}];\n"
            sign = CCOMPILER[node.op.name]
            lines.append(f"{declared}  for (int i = 0; i < {size}; i++) {names[node]}[i] = {left}[i] {sign} {right}[i];")
    inputs = ", ".join(f"const float* in{n}" for n in range(len(region.inputs) + len(constants)))
    body = "\n".join(lines)
    text = f"#include <stdint.h>\nint32_t {region.symbol}({inputs}, float* out) {{\n{body}\n  return 0;\n}}\n"
    return Code(source=text, constants=constants)


def test_c_for_sums_and_products() -> None:
    codegen("ccompiler", ccompiler)
    x, y, z = (relay.var(name, shape=(10, 10)) for name in "xyz")
    c = relay.Constant(np.random.default_rng(5).standard_normal((10, 10)).astype("f4"))
    annotated = relay.annotation.compiler_end(
        relay.multiply(
            relay.subtract(
                relay.add(relay.annotation.compiler_begin(x, "ccompiler"), relay.annotation.compiler_begin(y, "ccompiler")),
                relay.annotation.compiler_begin(z, "ccompiler"),
            ),
            relay.annotation.compiler_begin(c, "ccompiler"),
        ),
        "ccompiler",
    )
    mod = relay.transform.Sequential([relay.transform.InferType(), relay.transform.PartitionGraph()])(
        relay.IRModule.from_expr(relay.Function([x, y, z], relay.exp(annotated)))
    )
    values = [np.random.default_rng(n).standard_normal((10, 10)).astype("f4") for n in range(3)]
    right = np.exp((values[0] + values[1] - values[2]) * c.data)
    np.testing.assert_allclose(build(mod).run(*values), right, rtol=1e-5)


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from relaylang.cli.command import main

    net, code = str(ROOT / "examples/regions.relay"), str(ROOT / "examples/codegen.py")
    assert main(["compile", net, "--load", code, "-o", str(tmp_path / "net.so")]) == 0
    assert main(["run", net, "--load", code, "--random-params", "0", "--executor", "cpu"]) == 0
    compiled_text = capsys.readouterr().out.splitlines()[-1]
    assert main(["run", net, "--random-params", "0"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == compiled_text
    del CODEGENS["tiny"]
    assert main(["compile", net, "-o", str(tmp_path / "net.so")]) == 1
    assert "--load FILE" in capsys.readouterr().err
