"""Around the code: large programs, compilers that fail, the cache, damaged files, wrong calls, threads, memory."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relaylang.backends import compile_module
from relaylang.backends.cpu import cache, emit_c, toolchain
from relaylang.backends.cpu.cc import Compiler, Unit
from relaylang.backends.cpu.lower import GAPS, gap, lowered
from relaylang.diagnostics import RelayError
from relaylang.interpreter import KERNELS, evaluate
from relaylang.ir import Call, Constant, Expr, Function, If, IRModule, Let, TensorType, Tuple, Var
from relaylang.ops import OPS, get, make_attrs
from relaylang.runtime import cpu, features
from relaylang.runtime.artifact import load
from relaylang.syntax import parse
from tests.backends.cpu.cases import Case
from tests.backends.cpu.test_ops import expression
from tests.growth import assert_linear

NETWORK = """#[version = "0.0.5"]
def @main(%x: Tensor[(1, 3, 12, 12), float32], %w: Tensor[(20, 3, 3, 3), float32], %v: Tensor[(10, 20), float32]) {
  %0 = nn.relu(nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=20, kernel_size=[3, 3]));
  nn.softmax(nn.dense(nn.batch_flatten(nn.global_avg_pool2d(%0)), %v, units=10))
}
"""
QUICK = "c -num-threads=1 -cflags=-O1"


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RELAYLANG_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def network() -> IRModule:
    mod = parse(NETWORK).module
    assert mod is not None
    return mod


def values() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = {"x": (1, 3, 12, 12), "w": (20, 3, 3, 3), "v": (10, 20)}
    return {name: rng.standard_normal(shape).astype("float32") for name, shape in shapes.items()}


def op(name: str, *args: Expr, **attrs: Any) -> Call:
    record = get(name)
    return Call(record, list(args), make_attrs(record.attrs, attrs) if record.attrs is not None else None)


def vector(name: str = "x", extent: int = 4, dtype: str = "float32") -> Var:
    return Var(name, TensorType((extent,), dtype))


def code_of(call: Callable[[], Any]) -> str:
    """The one diagnostic that a call ends with."""
    with pytest.raises(RelayError) as caught:
        call()
    assert len(caught.value.diagnostics) == 1
    return caught.value.diagnostics[0].code


# Large programs


@pytest.mark.sweep
def test_a_long_chain_compiles_in_linear_time() -> None:
    def chain(count: int) -> Callable[[], object]:
        x, y = vector("x"), vector("y")
        body: Expr = x
        for _ in range(count):
            body = op("add", body, y)

        def compiled() -> None:
            artifact = compile_module(Function([x, y], body), QUICK)
            # Equal parts of the chain are one kernel.
            assert len(artifact.source) < 200 * count**0.5 + 20_000
            np.testing.assert_array_equal(artifact.run(np.zeros(4, "f4"), np.ones(4, "f4")), np.full(4, count, "f4"))

        return compiled

    assert_linear(chain, small=4_000)


@pytest.mark.sweep
def test_long_lets_branches_and_tuples_compile() -> None:
    x, flag = vector("x"), Var("flag", TensorType((), "bool"))
    names = [Var(f"v{n}") for n in range(3_000)]
    body: Expr = names[-1]
    for n in reversed(range(len(names))):
        body = Let(names[n], op("negative", names[n - 1] if n else x), body)
    artifact = compile_module(Function([x], body), QUICK)
    np.testing.assert_array_equal(artifact.run(np.arange(4, dtype="f4")), np.arange(4, dtype="f4"))
    deep: Expr = x
    for _ in range(300):
        deep = If(flag, op("negative", deep), deep)
    artifact = compile_module(Function([flag, x], deep), QUICK)
    for given in (True, False):
        np.testing.assert_array_equal(artifact.run(np.asarray(given), np.ones(4, "f4")), np.ones(4, "f4"))
    wide = [op("add", x, Constant(np.float32(n))) for n in range(400)]
    joined = op("concatenate", Tuple(wide), axis=0)
    artifact = compile_module(Function([x], Tuple([joined, *wide[:5]])), QUICK)
    found = artifact.run(np.zeros(4, "f4"))
    np.testing.assert_array_equal(found[0], np.repeat(np.arange(400, dtype="f4"), 4))
    # What differs in a constant alone is one function, once there are many.
    assert artifact.source.count("R_LOCAL void kernel") < 300


@pytest.mark.sweep
def test_the_one_file_is_what_the_units_are() -> None:
    given = values()
    for threads in (1, 3):
        options = {"num-threads": threads, "cflags": "-O1"}
        whole = emit_c(network(), ["w", "v"], options=options)
        artifact = compile_module(network(), "c", {"w": given["w"], "v": given["v"]}, options)
        assert artifact.source == whole
        library = Compiler(options).compile([Unit(whole)], whole)
        alone = cpu.CpuArtifact(library, artifact.manifest, artifact.params, whole, threads)
        np.testing.assert_array_equal(alone.run(given["x"]), artifact.run(given["x"]))


# The compiler


def test_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    assert code_of(lambda: compile_module(network(), "c -cc=/no/such/cc")) == "R0630"
    monkeypatch.setenv("CC", "no-such-compiler")
    assert code_of(lambda: compile_module(network(), "c")) == "R0630"
    monkeypatch.delenv("CC")
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(toolchain, "_zig", list)
    assert code_of(lambda: compile_module(network(), "c")) == "R0630"


@pytest.mark.parametrize("ending", ["echo 'disk full' >&2; exit 1", "exit 0", "kill -9 $$"])
def test_a_compiler_that_fails(tmp_path: Path, ending: str) -> None:
    script = tmp_path / "cc"
    script.write_text(f'#!/bin/sh\ncase "$*" in *-E*|*--version*) exec cc "$@";; esac\n{ending}\n')
    script.chmod(0o755)
    with pytest.raises(RelayError) as caught:
        compile_module(network(), f"c -cc={script}")
    assert [d.code for d in caught.value.diagnostics] == ["R0631"]
    if "echo" in ending:
        assert "disk full" in str(caught.value)


def test_flags_that_the_compiler_does_not_know() -> None:
    assert code_of(lambda: compile_module(network(), "c -cflags=--no-such-flag")) == "R0631"


@pytest.mark.sweep
def test_code_for_an_older_machine() -> None:
    given = values()
    wanted = evaluate(network(), *given.values())
    older = ("x86-64-v2", "x86-64-v3") if features.this_machine().startswith("x86_64") else ()
    for march in ("generic", *older):
        artifact = compile_module(network(), f"{QUICK} -march={march}")
        np.testing.assert_allclose(artifact.run(**given), wanted, rtol=1e-5)


# The cache


def counting(tmp_path: Path) -> tuple[str, Path]:
    """A compiler that notes its calls."""
    script, log = tmp_path / "counting-cc", tmp_path / "calls"
    script.write_text(f'#!/bin/sh\ncase "$*" in *-shared*|*-c*) echo . >> {log};; esac\nexec cc "$@"\n')
    script.chmod(0o755)
    return f"{QUICK} -cc={script}", log


@pytest.mark.sweep
def test_a_program_is_compiled_once(tmp_path: Path, own_cache: Path) -> None:
    target, log = counting(tmp_path)
    given = values()
    first = compile_module(network(), target).run(**given)
    calls = log.read_text().count(".")
    assert calls > 0
    np.testing.assert_array_equal(compile_module(network(), target).run(**given), first)
    assert log.read_text().count(".") == calls
    compile_module(network(), f"{target} -march=generic")
    assert log.read_text().count(".") > calls
    for entry in (own_cache / "objects").iterdir():
        entry.write_bytes(entry.read_bytes()[:-5] + b"wrong")
    np.testing.assert_array_equal(compile_module(network(), target).run(**given), first)


def test_a_cache_that_cannot_be_used_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("RELAYLANG_CACHE", str(tmp_path / "file" / "cache"))
    assert compile_module(network(), QUICK).run(**values()).shape == (1, 10)


def test_the_cache_stays_small(tmp_path: Path) -> None:
    for n in range(10):
        (tmp_path / str(n)).write_bytes(b"x" * 100)
        os.utime(tmp_path / str(n), (n, n))
    cache.sweep(tmp_path, limit=1000)
    assert len(list(tmp_path.glob("[0-9]"))) == 10
    cache.sweep(tmp_path, limit=900)
    assert sorted(p.name for p in tmp_path.glob("[0-9]")) == ["6", "7", "8", "9"]


# Files and calls


@pytest.mark.parametrize("name", ["net.so", "net.tar"])
def test_saved_programs_and_damaged_ones(tmp_path: Path, name: str) -> None:
    given = values()
    artifact = compile_module(network(), QUICK, {"w": given["w"]})
    path = tmp_path / name
    artifact.save(path)
    again = load(path)
    assert again.input_names == ["x", "v"]
    np.testing.assert_array_equal(again.run(x=given["x"], v=given["v"]), artifact.run(given["x"], given["v"]))
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    for cut in (0, 1, 4, 100, len(content) // 4, len(content) // 2):
        (tmp_path / "cut").write_bytes(content[:cut])
        assert code_of(lambda: load(tmp_path / "cut")) == "R0641"
    (tmp_path / "noise").write_bytes(b"\x7fELF" + rng.bytes(5000))
    assert code_of(lambda: load(tmp_path / "noise")) == "R0641"
    assert code_of(lambda: load(tmp_path / "absent")) == "R0001"
    assert code_of(lambda: artifact.save(tmp_path / "no" / "folder.so")) == "R0001"


@pytest.mark.sweep
def test_a_program_for_a_machine_with_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "net.tar"
    compile_module(network(), f"{QUICK} -march=generic").save(path)
    assert load(path).run(**values()).shape == (1, 10)
    artifact = compile_module(network(), QUICK)
    assert artifact.manifest["machine"] == features.this_machine()
    monkeypatch.setattr(features, "_CPUINFO", tmp_path / "cpuinfo")
    features.lacking.cache_clear()
    word = {"x86_64": "flags", "aarch64": "Features"}.get(features.this_machine().partition("-")[0])
    needs = artifact.manifest["features"]
    if word and needs:
        (tmp_path / "cpuinfo").write_text(f"model name : a\n{word}\t: fpu\n")
        with pytest.raises(RelayError, match=f"a processor with .*{needs[0]}.*, which this machine lacks"):
            cpu.CpuArtifact(artifact.library, artifact.manifest, {}, "")
    # A system that does not say what its processor has refuses nothing.
    features.lacking.cache_clear()
    (tmp_path / "cpuinfo").unlink(missing_ok=True)
    cpu.CpuArtifact(artifact.library, artifact.manifest, {}, "")
    features.lacking.cache_clear()
    other = "aarch64-linux" if features.this_machine() != "aarch64-linux" else "x86_64-linux"
    with pytest.raises(RelayError, match=f"compiled for {other}, and this machine is {features.this_machine()}"):
        cpu.CpuArtifact(b"", {**artifact.manifest, "machine": other}, {}, "")


def test_wrong_calls() -> None:
    given = values()
    x, w, v = given.values()
    artifact = compile_module(network(), QUICK, {"w": w})
    wrong: list[Callable[[], Any]] = [
        artifact.run,
        lambda: artifact.run(x),
        lambda: artifact.run(x, v, v),
        lambda: artifact.run(x, v, y=v),
        lambda: artifact.run(x, v, x=x),
        lambda: artifact.run(x, w),
        lambda: artifact.run(x[:, :, :11], v),
        lambda: artifact.run(x.astype("float64"), v),
        lambda: artifact.run(x, v.astype("int32")),
        lambda: artifact.run("text", v),
        lambda: artifact.run(None, v),
        lambda: artifact.run([[1, 2], [3]], v),
        lambda: artifact.set_params({"w": v}),
        lambda: compile_module(network(), QUICK, {"w": v}),
        lambda: compile_module(network(), QUICK, {"w": w.astype("float16")}),
    ]
    for call in wrong:
        assert code_of(call) == "R0640"
    assert code_of(lambda: compile_module(network(), QUICK, entry="other")) == "R0603"
    np.testing.assert_allclose(artifact.run(x, v), evaluate(network(), x, w, v), rtol=1e-5)


def test_an_input_that_is_a_tuple() -> None:
    mod = parse("fn (%p: (Tensor[(2), float32], (int32, Tensor[(3), int8]))) { (%p.1.1, add(%p.0, 1f), %p.1.0) }")
    assert mod.expr is not None
    artifact = compile_module(mod.expr, QUICK)
    given = (np.float32([1, 2]), (np.int32(5), np.int8([1, 2, 3])))
    found = artifact.run(given)
    assert [v.tolist() for v in found] == [[1, 2, 3], [2, 3], 5]
    for wrong in (given[0], (given[0],), (given[0], (given[1][0],)), (given[0], given[1][::-1])):
        assert code_of(lambda wrong=wrong: artifact.run(wrong)) == "R0640"


def test_arrays_are_read_where_they_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    plain = cpu._address
    x = vector(extent=6)
    artifact = compile_module(Function([x], op("negative", x)), QUICK)
    monkeypatch.setattr(cpu, "_address", lambda array: seen.append(array) or plain(array))
    data = np.arange(6, dtype="f4")
    frozen = data.copy()
    frozen.flags.writeable = False
    for given in (data, frozen):
        out = artifact.run(given)
        assert seen[-2] is given
        assert seen[-1] is out
    raw = np.zeros(40, np.uint8)
    shifted = raw[1:25].view("f4")
    shifted[:] = data
    for given in (shifted, data.astype(">f4"), np.repeat(data, 2)[::2], data[::-1][::-1], np.flip(data[::-1])):
        np.testing.assert_array_equal(artifact.run(given), -data)
    assert artifact.run(data) is not artifact.run(data)
    np.testing.assert_array_equal(data, np.arange(6, dtype="f4"))


def test_results_that_are_inputs_constants_or_one_another() -> None:
    x = vector()
    y = op("add", x, x)
    body = Tuple([x, y, y, Constant(np.float32([7, 8])), x, Tuple([]), op("reshape", y, newshape=[2, 2])])
    found = compile_module(Function([x], body), QUICK).run(np.float32([1, 2, 3, 4]))
    assert [np.asarray(v).tolist() for v in found] == [
        [1, 2, 3, 4],
        [2, 4, 6, 8],
        [2, 4, 6, 8],
        [7, 8],
        [1, 2, 3, 4],
        [],
        [[2, 4], [6, 8]],
    ]
    assert len({v.ctypes.data for v in found if isinstance(v, np.ndarray)}) == 6


@pytest.mark.sweep
def test_one_program_on_many_threads() -> None:
    given = values()
    artifact = compile_module(network(), "c -cflags=-O1", {"w": given["w"], "v": given["v"]})
    artifact.threads = 3  # type: ignore[attr-defined]
    inputs = [np.random.default_rng(n).standard_normal((1, 3, 12, 12)).astype("f4") for n in range(4)]
    wanted = [evaluate(network(), x, given["w"], given["v"]) for x in inputs]
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(50):
            if not np.allclose(artifact.run(inputs[number]), wanted[number], rtol=1e-5):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# What cannot be compiled


def test_every_gap_is_named_with_its_reason() -> None:
    for name in GAPS:
        assert any(o == name or (name.endswith(".") and o.startswith(name)) for o in OPS), name
        assert name not in lowered()
    assert gap("add") is None
    assert gap("dyn.reshape") == GAPS["dyn."]
    for name in KERNELS:
        assert gap(name) != "no code yet", name


UNCOMPILED: list[Case] = [
    ("argwhere", {}, [np.ones(4, "bool")], set()),
    ("dyn.zeros", {"dtype": "float32"}, [np.int64([2, 3])], set()),
    ("dyn.tile", {}, [np.ones(4, "f4"), np.int64([2])], set()),
]


@pytest.mark.parametrize("case", UNCOMPILED, ids=[c[0] for c in UNCOMPILED])
def test_what_cannot_be_compiled_is_said_in_one_diagnostic(case: Case) -> None:
    name = case[0]
    call, _ = expression(case, 0)
    params = [a for arg in call.args for a in (arg.fields if isinstance(arg, Tuple) else (arg,)) if isinstance(a, Var)]
    with pytest.raises(RelayError) as caught:
        compile_module(Function(params, call), QUICK)
    assert len(caught.value.diagnostics) == 1
    assert name in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "fn (%x: Tensor[(?, 3), float32]) { nn.relu(%x) }",
        "fn (%x: Tensor[(2, 3), float8_e4m3fn]) { nn.relu(%x) }",
        "fn (%x: float32) { let %r = ref(%x); ref_read(%r) }",
        "fn (%f: fn (int32) -> int32) { %f(1) }",
        "fn (%x: int32) { fn (%y: int32) { add(%x, %y) } }",
        "fn (%x: Tensor[(2, 3), bool]) { argwhere(%x) }",
    ],
)
def test_programs_that_cannot_be_compiled(text: str) -> None:
    found = parse(text)
    assert found.expr is not None
    assert code_of(lambda: compile_module(found.expr, QUICK)) in ("R0632", "R0633", "R0634", "R0635")
