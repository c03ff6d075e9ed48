"""Programs as C: what they compute, how compilers take them, and what they refuse."""

from __future__ import annotations

import copy
import pickle
import random
import shutil
import subprocess
import tarfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relaylang as relay
from relaylang.backends import compile_module
from relaylang.backends.aot import compile_aot
from relaylang.backends.cpu.toolchain import find_toolchain
from relaylang.cli import main
from relaylang.diagnostics import RelayError
from relaylang.interpreter.evaluate import Evaluator
from relaylang.ir import IRModule
from relaylang.runtime.aot import AotProgram
from relaylang.runtime.random import random_params
from relaylang.syntax import parse
from relaylang.testing.generators.functional import Functional
from relaylang.tvm.relay.loops import while_loop
from relaylang.tvm.relay.testing import mobilenet
from relaylang.typing import check
from tests.backends.aot.agree import assert_c_agrees
from tests.backends.aot.programs import PROGRAMS, REFUSED, X
from tests.backends.cpu.machines import needed
from tests.backends.vm import programs as vm
from tests.backends.vm.agree import assert_same
from tests.shared import ROOT, few

STRICT = ("-Wall", "-Wextra", "-Werror", "-O1")
LOOP = "several ways round a loop"
LOOP_TEXT = "def @loop(%n: int32) -> int32 { if (less(%n, 1)) { %n } else { @loop(subtract(%n, 1)) } }\n"


def module(text: str) -> IRModule:
    found = parse(text, "test.relay").module
    assert found is not None
    check(found)
    return found


def called(*command: Any, **named: Any) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **named)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def saved(folder: Path, name: str = LOOP, **named: Any) -> AotProgram:
    program = compile_aot(module(PROGRAMS[name][0]), **named)
    program.save(folder / "net.c")
    return program


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", few(PROGRAMS, *list(PROGRAMS)[::3]))
def test_programs(name: str) -> None:
    text, *args = PROGRAMS[name]
    assert_c_agrees(module(text), *args)


@pytest.mark.parametrize("name", REFUSED)
def test_what_needs_a_runtime_is_refused_at_its_place(name: str) -> None:
    with pytest.raises(RelayError, match=REFUSED[name]) as caught:
        compile_aot(module(vm.PROGRAMS[name][0]))
    (found,) = caught.value.diagnostics
    assert found.code == "R0636" and found.labels and any("--runtime vm" in note for note in found.notes)


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("def @main(%x: Tensor[(?), float32]) { add(%x, 1f) }", "R0636", "%x is no tensor of a known shape"),
        (
            "def @f(%x: Tensor[(?), float32]) -> Tensor[(?), float32] { @f(%x) }\ndef @main(%x: Tensor[(?), float32]) { @f(%x) }",
            "R0636",
            "%x is no tensor of a known shape",
        ),
        ("def @f(%n: int32) -> int32 { @f(add(%n, 1)) }\ndef @main(%n: int32) { @f(%n) }", "R0636", "@f never returns"),
        (
            "def @main(%n: int32) -> int32 { if (less(%n, 1)) { 1 } else { multiply(%n, @main(subtract(%n, 1))) } }",
            "R0636",
            "the recursion of @main is no loop",
        ),
        (
            "def @f(%n: int32) -> int32 { if (less(%n, 1)) { 1 } else { @g(%n) } }\n"
            "def @g(%n: int32) -> int32 { let %a = @f(subtract(%n, 1)); @f(%a) }\ndef @main(%n: int32) { @f(%n) }",
            "R0636",
            "is no loop",
        ),
        (
            "def @main(%n: int32) { let %f = if (less(%n, 1)) { fn (%x: int32) { %x } } else { fn (%x: int32) { negative(%x) } };\n"
            "  %f(%n) }",
            "R0636",
            "known only in a run",
        ),
        (
            "def @f(%n: int32, %g: fn (int32) -> int32) -> int32 { if (less(%n, 1)) { %g(%n) } else {\n"
            "  @f(subtract(%n, 1), fn (%x: int32) -> int32 { %g(add(%x, %n)) }) } }\n"
            "def @main(%n: int32) { @f(%n, fn (%x: int32) { %x }) }",
            "R0636",
            "values that grow in each turn",
        ),
    ],
)
def test_refusals(text: str, code: str, said: str) -> None:
    with pytest.raises(RelayError, match=said) as caught:
        compile_aot(module(text))
    assert caught.value.diagnostics[0].code == code


@pytest.mark.sample(6)
@pytest.mark.parametrize("seed", few(range(200), *range(5)))
def test_random_programs_of_loops(seed: int) -> None:
    rng = np.random.default_rng(seed)
    args = [(rng.integers(-8, 9, (2, 3)) / 4).astype("float32") for _ in range(2)]
    assert_c_agrees(module(Functional(seed, loops=True).text(random.Random(seed).randint(2, 14))), *args)


@pytest.mark.sweep
def test_branches_nest_deeper_than_compilers_allow_blocks() -> None:
    depth = 400
    body = "".join(f"if (equal(%n, {n})) {{ let %a{n} = add(%n, {n}); %a{n} }} else {{ " for n in range(depth))
    text = f"{LOOP_TEXT}def @main(%n: int32) {{ let %k = @loop(%n); let %r = {body} %k {'}' * depth}; add(%r, 1) }}"
    mod = module(text)
    for n in (7, 399, 500):
        assert_c_agrees(mod, n)


@pytest.mark.sweep
def test_long_programs() -> None:
    lets = "".join(f"  let %v{n + 1} = @step(%v{n});\n" for n in range(3000))
    text = f"""
def @step(%n: int32) -> int32 {{ if (less(%n, 100)) {{ add(%n, 1) }} else {{ @step(subtract(%n, 7)) }} }}
def @main(%v0: int32) {{\n{lets}  %v3000 }}"""
    assert_c_agrees(module(text), 5, target="c -cflags=-O0")


@pytest.mark.sample(3)
@pytest.mark.parametrize("standard", ["c99", "c11"])
@pytest.mark.parametrize("compiler", ["gcc", "clang"])
@pytest.mark.parametrize(
    "name", few([LOOP, "weights", "small elements", "loops that call each other", "nothing goes in"], LOOP, "weights")
)
def test_compilers_have_nothing_to_say(name: str, compiler: str, standard: str, tmp_path: Path) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler} here")
    saved(tmp_path, name, main=True, static_memory=standard == "c99", external_weights=compiler == "gcc")
    called(compiler, f"-std={standard}", *STRICT, "-c", "net.c", cwd=tmp_path)


def test_cpp_includes_the_header(tmp_path: Path) -> None:
    if shutil.which("g++") is None:
        pytest.skip("no g++ here")
    saved(tmp_path, "names")
    text = """#include "net.h"
int main() {
  const int32_t n = 2; const float a = 1, b = 2; const uint16_t x = 0;
  float c; uint16_t d; uint8_t e;
  const net_inputs in = {&n, &a, &b, &x};
  const net_outputs out = {&c, &d, &e};
  return net_run(&in, &out, nullptr) != NET_OK || c != 16;
}
"""
    (tmp_path / "use.cpp").write_text(text)
    called("gcc", "-c", "net.c", cwd=tmp_path)
    called("g++", *STRICT, "use.cpp", "net.o", "-lm", "-o", "use", cwd=tmp_path)
    called(tmp_path / "use")
    header = (tmp_path / "net.h").read_text()
    assert "const int32_t* class_2;" in header and "const float* int_1;" in header


def test_static_memory_calls_no_malloc(tmp_path: Path) -> None:
    for static in (False, True):
        saved(tmp_path, "weights", main=True, static_memory=static)
        called("cc", "-c", "net.c", cwd=tmp_path)
        symbols = called("nm", "--undefined-only", "net.o", cwd=tmp_path).stdout
        assert ("malloc" in symbols) == (not static) and not {"calloc", "realloc"} & set(symbols.split())


def test_callers_give_the_memory_and_the_weights(tmp_path: Path) -> None:
    program = saved(tmp_path, "weights", external_weights=True)
    assert len(program.weights) > 64 * 4
    text = """#include "net.h"
#include <stdio.h>
static char memory[NET_WORKSPACE_SIZE + 1] __attribute__((aligned(64))), weights[NET_WEIGHTS_SIZE] __attribute__((aligned(64)));
int main(void) {
  FILE* f = fopen("net.bin", "rb");
  if (fread(weights, 1, sizeof weights, f) != sizeof weights || fgetc(f) != EOF) return 9;
  const int32_t n = 3;
  float x[8] = {1}, y[8];
  const net_inputs in = {&n, x};
  const net_outputs out = {y};
  if (net_run(&in, &out, weights, memory)) return 1;
  if (net_run(&in, &out, weights, memory + 1) != NET_ERROR_ALIGNMENT) return 2;
  if (net_run(&in, &out, 0, memory) != NET_ERROR_WEIGHTS) return 3;
  weights[5] ^= 1;
  return net_run(&in, &out, weights, memory) == NET_ERROR_WEIGHTS ? 0 : 4;
}
"""
    (tmp_path / "use.c").write_text(text)
    called("cc", *STRICT, "use.c", "net.c", "-lm", "-o", "use", cwd=tmp_path)
    called(tmp_path / "use", cwd=tmp_path)


def printed(text: str) -> list[tuple[str, list[float]]]:
    out: list[tuple[str, list[float]]] = []
    for line in text.splitlines():
        if ":" in line:
            out.append((line, []))
        else:
            out[-1][1].append(float(line))
    return out


def test_the_command_line(tmp_path: Path) -> None:
    saved(tmp_path, main=True)
    called("cc", *STRICT, "net.c", "-lm", "-o", "net", cwd=tmp_path)
    np.save(tmp_path / "n.npy", np.int32(9))
    np.save(tmp_path / "x.npy", X)
    (tmp_path / "x.bin").write_bytes(X.tobytes())
    wanted = Evaluator(module(PROGRAMS[LOOP][0])).call("main", (9, X))
    found = printed(called("./net", "n.npy", "x.bin", cwd=tmp_path).stdout)
    assert [head for head, _ in found] == ["output0: float32[2, 3]", "output1: int32", "output2: float32[2, 3]"]
    for (_, values), array in zip(found, wanted):
        np.testing.assert_allclose(values, np.ravel(array), rtol=1e-6)
    with open(tmp_path / "x.bin", "rb") as stdin:
        called("./net", "n.npy", "-", "-o", "a.npy", "b.bin", "c.npy", cwd=tmp_path, stdin=stdin)
    np.testing.assert_allclose(np.load(tmp_path / "a.npy"), wanted[0], rtol=1e-6)
    assert (tmp_path / "b.bin").read_bytes() == np.int32(9).tobytes()
    np.testing.assert_allclose(np.load(tmp_path / "c.npy"), wanted[2], rtol=1e-6)


WRONG: dict[str, tuple[Any, str]] = {
    "elements.npy": (X.astype("f8"), "has other elements"),
    "shape.npy": (X.reshape(3, 2), "has another shape"),
    "order.npy": (np.asfortranarray(X), "Fortran order"),
    "short.bin": (b"\0" * 23, "too short"),
    "long.bin": (b"\0" * 25, "too long"),
    "header.npy": (b"\x93NUMPY\1\0\xff\xff", "no header of numpy's"),
    "end.npy": (b"\x93NUMPY", "no header of numpy's"),
    "other.npy": (b"x" * 200, "no header of numpy's"),
    "missing": (None, "cannot be read"),
}


@pytest.fixture(scope="module")
def command(tmp_path_factory: Any) -> Path:
    folder: Path = tmp_path_factory.mktemp("command")
    saved(folder, main=True, static_memory=True)
    called("cc", *STRICT, "net.c", "-lm", "-o", "net", cwd=folder)
    (folder / "n").write_bytes(np.int32(9).tobytes())
    return folder


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_files_of_the_command_line(command: Path, wrong: str) -> None:
    content, said = WRONG[wrong]
    if isinstance(content, bytes):
        (command / wrong).write_bytes(content)
    elif content is not None:
        with open(command / wrong, "wb") as file:
            np.save(file, content)
    done = subprocess.run(["./net", "n", wrong], cwd=command, capture_output=True, text=True)
    assert done.returncode == 2 and said in done.stderr and wrong in done.stderr


@pytest.mark.parametrize("words", [(), ("n",), ("n", "n", "n"), ("n", "x", "-o", "a", "b", "c", "d")])
def test_wrong_calls_of_the_command_line(command: Path, words: Sequence[str]) -> None:
    done = subprocess.run(["./net", *words], cwd=command, capture_output=True, text=True)
    assert done.returncode == 2 and "usage: ./net n x [-o FILE...]" in done.stderr


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", ["aarch64", "armv7", "riscv64"])
def test_other_machines(name: str, tmp_path: Path) -> None:
    machine = needed(name)
    text, *args = PROGRAMS[LOOP]
    saved(tmp_path, main=True, static_memory=True)
    called(machine.compiler, "-std=c99", *STRICT, "net.c", "-lm", "-o", "net", cwd=tmp_path)
    for n, value in enumerate(args):
        np.save(tmp_path / f"{n}.npy", np.asarray(value, "f4" if n else "i4"))
    done = called(*machine.emulator, "-L", machine.folder(), "./net", "0.npy", "1.npy", cwd=tmp_path)
    for (_, values), wanted in zip(printed(done.stdout), Evaluator(module(text)).call("main", tuple(args))):
        np.testing.assert_allclose(values, np.ravel(wanted), rtol=1e-5)


QUANTISED = """#[version = "0.0.5"]
def @main(%x: Tensor[(1, 20, 9, 9), uint8], %w: Tensor[(24, 20, 3, 3), int8]) {
  qnn.conv2d(%x, %w, 5, 0, 0.5f, 0.25f, kernel_size=[3, 3], channels=24, padding=[1, 1, 1, 1], out_dtype="int32") }"""


@pytest.mark.sweep
@pytest.mark.parametrize("name", few(["aarch64-dotprod", "aarch64-i8mm", "armv7"], "aarch64-dotprod"))
def test_weights_are_laid_out_for_other_machines(name: str, tmp_path: Path) -> None:
    """What this machine computes beforehand fits the other's instructions."""
    machine, mod = needed(name), module(QUANTISED)
    rng = np.random.default_rng(2)
    x, w = rng.integers(0, 256, (1, 20, 9, 9)).astype("uint8"), rng.integers(-128, 128, (24, 20, 3, 3)).astype("int8")
    program = compile_aot(mod, machine.target, {"w": w}, main=True)
    assert program.report().startswith("workspace: ")
    program.save(tmp_path / "net.c")
    (tmp_path / "x").write_bytes(x.tobytes())
    flags = find_toolchain(machine.options).flags
    called(machine.compiler, *flags, "-O2", "-Wall", "-Wextra", "-Werror", "net.c", "-lm", "-o", "net", cwd=tmp_path)
    called(*machine.emulator, "-L", machine.folder(), "./net", "x", "-o", "y.npy", cwd=tmp_path)
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), Evaluator(mod).call("main", (x, w)))
    assert all(flag in program.source.split("\n")[1] for flag in flags)
    done = subprocess.run([machine.compiler, "-c", "net.c"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 if name == "armv7" else '"this C is for a processor that the flags above name"' in done.stderr


@pytest.mark.sweep
@pytest.mark.parametrize("options", few(["", "-num-threads=2", "-mcpu=native"], "-num-threads=2"))
def test_a_network_equals_the_library(options: str) -> None:
    mod = parse((ROOT / "examples" / "convnet.relay").read_text(), "convnet.relay").module
    assert mod is not None
    check(mod)
    x, *weights = mod["main"].params
    params = {p.name_hint: value for p, value in zip(weights, random_params(0, weights).values())}
    data = np.random.default_rng(0).standard_normal([int(d) for d in x.checked_type.shape]).astype("f4")  # type: ignore[union-attr]
    library = compile_module(mod, f"c {options if 'mcpu' in options else '-march=x86-64'}", params)
    made = compile_aot(mod, f"c {options}", params)
    np.testing.assert_array_equal(made.run(data), library.run(data))


@pytest.mark.sweep
def test_threads_end_before_their_code_goes() -> None:
    mod = parse((ROOT / "examples" / "convnet.relay").read_text(), "convnet.relay").module
    assert mod is not None
    values = random_params(0, mod["main"].params)
    for _ in range(20):
        made = compile_aot(mod, "c -num-threads=4", {name: value for name, value in values.items() if name != "data"})
        made.run(**{"data": values["data"]})
        del made


@pytest.mark.sweep
def test_mobilenet_equals_the_library() -> None:
    mod, params = mobilenet.get_workload(batch_size=1)
    values = {name: np.asarray(value) for name, value in params.items()}
    data = np.random.default_rng(0).standard_normal((1, 3, 224, 224)).astype("f4")
    made = compile_aot(mod, "c -mcpu=native", values, external_weights=True)
    np.testing.assert_array_equal(made.run(data=data), compile_module(mod, "c", values).run(data=data))


def test_the_verb_writes_c(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "loop.relay").write_text(PROGRAMS[LOOP][0])
    call = ["compile", str(tmp_path / "loop.relay"), "--runtime", "aot"]
    assert main([*call, "--static-memory", "--main", "-o", str(tmp_path / "one.c")]) == 0
    assert "inputs: %n, %x" in capsys.readouterr().out
    assert "one_run" in (tmp_path / "one.h").read_text() and "int main" in (tmp_path / "one.c").read_text()
    assert main([*call, "--external-weights", "-o", str(tmp_path / "two.tar")]) == 0
    with tarfile.open(tmp_path / "two.tar") as tar:
        assert tar.getnames() == ["two.c", "two.h", "two.bin"]
    for _ in range(2):
        assert main([*call, "-o", f"{tmp_path}/three/"]) == 0
    assert sorted(path.name for path in (tmp_path / "three").iterdir()) == ["three.c", "three.h"]
    capsys.readouterr()
    assert main([*call, "-o", str(tmp_path / "x.so")]) == 2 and "FILE.c, FILE.tar or FOLDER/" in capsys.readouterr().err
    assert main([*call, "-o", str(tmp_path / "no" / "x.c")]) == 2 and "there is no directory" in capsys.readouterr().err
    assert main([*call[:2], "--main", "-o", str(tmp_path / "x.so")]) == 2 and "goes with --runtime aot" in capsys.readouterr().err
    assert main([*call, "--emit", "c"]) == 2


def test_wrong_targets_and_inputs() -> None:
    mod = module(PROGRAMS[LOOP][0])
    with pytest.raises(RelayError, match="for the target c"):
        compile_aot(mod, "ethos-u")
    program = compile_aot(mod)
    with pytest.raises(RelayError, match="-profile is for libraries"):
        compile_aot(mod, "c -profile")
    pair = compile_aot(module("def @main(%p: (int32, float32)) { (%p.1, %p.0) }"))
    for wrong in (3, (3,)):
        with pytest.raises(RelayError, match="the input p must be a tuple"):
            pair.run(wrong)
    for args in ((3,), (3, X.T), (3, X, X)):
        with pytest.raises(RelayError) as caught:
            program.run(*args)
        assert caught.value.diagnostics[0].code == "R0640"


def test_programs_are_copied_pickled_and_run_by_threads() -> None:
    text, *args = PROGRAMS[LOOP]
    mod = module(text)
    program = compile_aot(mod, external_weights=True)
    wanted = Evaluator(mod).call("main", tuple(args))
    for other in (program, pickle.loads(pickle.dumps(program)), copy.deepcopy(program)):
        assert_same(other.run(*args), wanted)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: program.run(*args), range(200)):
            assert_same(found, wanted)
    assert len(program.benchmark(*args, repeat=2, number=1).results) == 2 and "workspace: " in program.report()
    assert compile_aot(mod, external_weights=True).files == program.files


def test_while_loops_of_scripts() -> None:
    """`relay.loops.while_loop` gives a closure that calls itself."""
    i, n = relay.var("i", shape=(), dtype="int32"), relay.var("n", shape=(), dtype="int32")
    s = relay.var("s", shape=(2, 3))

    def body(i: relay.Expr, s: relay.Expr) -> list[relay.Expr]:
        return [relay.add(i, relay.const(1)), relay.add(s, relay.multiply(s, relay.cast(i, "float32")))]

    loop = while_loop(lambda i, s: relay.less(i, n), [i, s], body)
    x = relay.var("x", shape=(2, 3))
    mod = relay.IRModule.from_expr(relay.Function([n, x], loop(relay.const(0), x)))
    relay.transform.InferType()(mod)
    program = assert_c_agrees(mod, np.int32(5), X)
    assert "for (;;)" in program.source


@pytest.mark.parametrize("loop", ["", LOOP_TEXT])
def test_constants_without_values_are_refused(loop: str) -> None:
    body = "add(%x, meta[relay.Constant][0])"
    mod = relay.parse(f'#[version = "0.0.5"]\n{loop}def @main(%x: int32) {{ {"@loop(" * bool(loop)}{body}{")" * bool(loop)} }}')
    with pytest.raises(RelayError) as caught:
        compile_aot(mod)
    assert caught.value.diagnostics[0].code == "R0304"
