"""Code generators of other people in programs with control flow: in `.vm` files, and in C source."""

from __future__ import annotations

import pickle
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relaylang as relay
from relaylang.backends.aot import compile_aot
from relaylang.backends.vm import compile_vm
from relaylang.cli import main
from relaylang.runtime.aot import AotProgram
from relaylang.runtime.artifact import load, loads, read_sealed, write_sealed
from relaylang.runtime.external import CODEGENS, Code, Region, codegen
from relaylang.runtime.vm.executable import VMExecutable
from relaylang.tvm.registry import get_global_func, register_func, remove_global_func
from tests.plugins.test_codegens import WAYS, load_bytes, module, restored, said, wanted

__all__ = ["restored"]

T = "Tensor[(2, 3), float32]"
TARGET = "c -num-threads=1 -cflags=-O1"
X, Y = (np.random.default_rng(n).standard_normal((2, 3)).astype("f4") for n in range(2))
LOOP = f"""#[version = "0.0.5"]
def @f(%a: {T}, %b: {T}, Compiler="cg", Primitive=1) {{ subtract(multiply(%a, %b), 0.5f) }}
def @loop(%n: int32, %a: {T}, %b: {T}) -> {T} {{
  if (less(%n, 1)) {{ @f(%a, %b) }} else {{ @loop(subtract(%n, 1), nn.relu(@f(tanh(%a), %b)), %b) }}
}}
def @main(%n: int32, %x: {T}, %y: {T}) {{ (@loop(%n, %x, %y), @f(%y, @f(%x, %y))) }}
"""


def vm(mod: relay.IRModule, **named: Any) -> VMExecutable:
    return compile_vm(mod, TARGET, entries=["main"], **named)


def same(found: Any, right: Any) -> None:
    for a, b in zip(found, right, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.sweep
@pytest.mark.sample(2)
@pytest.mark.parametrize("kind", list(WAYS))
def test_each_kind_of_code_runs_in_the_vm_and_is_saved(kind: str, tmp_path: Path) -> None:
    regions: list[Region] = []

    def generate(region: Region) -> Any:
        regions.append(region)
        return WAYS[kind](region, tmp_path)

    codegen("cg", generate, load=load_bytes)
    mod = module(LOOP)
    made = vm(mod)
    assert [region.symbol for region in regions] == ["f"] and made.program.externals[0][:3] == ("cg", "f", kind)
    right = wanted(mod, np.int32(3), X, Y)
    made.save(tmp_path / "net.vm")
    for program in (made, load(tmp_path / "net.vm"), pickle.loads(pickle.dumps(made))):
        for _ in range(2):
            same(program.run(np.int32(3), X, Y), right)
    del CODEGENS["cg"]
    other = load(tmp_path / "net.vm")
    if kind in ("c", "object"):
        same(other.run(np.int32(3), X, Y), right)
    else:
        code, text = said(lambda: other.run(np.int32(3), X, Y))
        assert code == "R0641" and "the code generator cg" in text and "--load" in text
        assert "InvokePacked" in other.listing()


def test_without_a_generator_the_vm_computes_the_function() -> None:
    mod = module(LOOP)
    made = vm(mod)
    assert made.program.externals == ()
    same(made.run(np.int32(2), X, Y), wanted(mod, np.int32(2), X, Y))


def test_functions_without_names_and_constants() -> None:
    """Partitions inside a function, one of them bound by a let; constants behind the inputs."""
    a, b, n = relay.var("a", shape=(2, 3)), relay.var("b", shape=(2, 3)), relay.var("n", shape=(), dtype="int32")
    x, f, r = relay.var("x", shape=(2, 3)), relay.var("f"), relay.var("r")
    attrs = {"Compiler": "cg", "Primitive": 1}
    first = relay.Function([a], relay.multiply(a, relay.const(np.float32(3))), attrs=attrs)
    second = relay.Function([b], relay.add(b, relay.const(np.float32(4))), attrs=attrs)
    more = relay.add(relay.Call(f, [r]), relay.Call(second, [x]))
    branch = relay.If(relay.less(n, relay.const(1)), relay.Call(f, [x]), relay.Let(r, relay.nn.relu(x), more))
    mod = relay.IRModule.from_expr(relay.Function([n, x], relay.Let(f, first, branch)))
    relay.transform.InferType()(mod)

    def generate(region: Region) -> Code:
        (name,) = region.constants
        sign = "*" if "multiply" in str(region.function) else "+"
        text = f"int {region.symbol}(const float* x, const float* c, float* y) {{ for (int i = 0; i < 6; i++) y[i] = x[i] {sign} *c; "
        return Code(source=text + "return 0; }", constants=[name])

    codegen("cg", generate)
    for number in (0, 5):
        right = wanted(mod, np.int32(number), X)
        np.testing.assert_allclose(vm(mod).run(np.int32(number), X), right, rtol=1e-6)
        np.testing.assert_allclose(compile_aot(mod).run(np.int32(number), X), right, rtol=1e-6)


def test_tensors_are_the_machine_s_own_memory() -> None:
    """A callable gets inputs and outputs in place; what one writes the next reads."""
    places: list[tuple[int, ...]] = []

    def run(a: np.ndarray, out: np.ndarray) -> None:
        places.append((a.ctypes.data, out.ctypes.data))
        np.add(a, 1, out=out)

    codegen("cg", lambda region: run)
    mod = module(f"""#[version = "0.0.5"]
def @f(%a: {T}, Compiler="cg", Primitive=1) {{ add(%a, 1f) }}
def @main(%n: int32, %x: {T}) -> {T} {{ if (less(%n, 1)) {{ %x }} else {{ @main(subtract(%n, 1), @f(%x)) }} }}
""")
    made = vm(mod)
    np.testing.assert_allclose(made.run(np.int32(3), X), X + 3, rtol=1e-6)
    assert len(places) == 3 and places[0][0] == X.ctypes.data
    assert places[1][0] == places[0][1] and places[2][0] == places[1][1]


def test_failures_have_the_program_s_place_and_leave_nothing() -> None:
    def run(a: Any, b: Any, out: Any) -> None:
        if a[0, 0] > 0:
            raise LookupError("no luck today")
        out[:] = 1

    codegen("cg", lambda region: run)
    mod = module(LOOP)
    made = vm(mod)
    good, bad = -np.ones((2, 3), "f4"), np.ones((2, 3), "f4")
    for _ in range(3):
        code, text = said(lambda: made.run(np.int32(2), bad, Y))
        assert code == "R0606" and "LookupError: no luck today" in text and "@f(" in text
    codegen(
        "cg", lambda region: f"int {region.symbol}(const float* a, const float* b, float* c) {{ c[0] = 0; return a[0] > 0 ? -7 : 0; }}"
    )
    made = vm(mod)
    code, text = said(lambda: made.run(np.int32(2), bad, Y))
    assert code == "R0606" and "returned -7" in text
    made.run(np.int32(0), good, good)
    code, text = said(lambda: compile_aot(mod).run(np.int32(2), bad, Y))
    assert code == "R0606" and "f (cg)" in text


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    codegen("cg", lambda region: WAYS["c"](region, tmp_path))
    files = read_sealed(vm(module(LOOP)).content(), "net.vm")
    text = files["manifest.json"].decode()
    for old, new in (
        ('"cg", "f", "c"', '"cg", "f", "d"'),
        ('"cg", "f", "c"', '"cg", "f", "object"'),
        ('"externals": [', '"externals": [1, '),
        ('"fails": ', '"fails": 9'),
    ):
        assert old in text
        damaged = write_sealed({**files, "manifest.json": text.replace(old, new, 1).encode()})
        assert said(lambda content=damaged: loads(content))[0] == "R0641"


@pytest.mark.sample(2)
@pytest.mark.parametrize("kind", list(WAYS))
def test_each_kind_of_code_in_c_source(kind: str, tmp_path: Path) -> None:
    codegen("cg", lambda region: WAYS[kind](region, tmp_path), load=load_bytes)
    for text, args in ((LOOP, (np.int32(3), X, Y)), (LOOP.replace("@loop(%n, %x, %y)", "%x"), (np.int32(3), X, Y))):
        mod = module(text)
        if kind in ("data", "python"):
            code, message = said(lambda mod=mod: compile_aot(mod))
            assert code == "R0636" and "the code of cg for f" in message and "--runtime vm" in message
            continue
        made = compile_aot(mod, static_memory=True)
        assert isinstance(made, AotProgram)
        same(made.run(*args), wanted(mod, *args))
        made.save(tmp_path / "net.c")
        other = "net_external0.c" if kind == "c" else "net_external0.o"
        (tmp_path / "use.c").write_text("""#include "net.h"
        int main(void) {
          const int32_t n = 1;
          const float x[6] = {1, 2, 3, 4, 5, 6};
          float y[6], z[6];
          const net_inputs in = {&n, x, x};
          const net_outputs out = {y, z};
          return net_run(&in, &out, 0) || z[1] != 2 * (2 * 2 - 0.5f) - 0.5f;
        }""")
        call = ["cc", "-Wall", "-Wextra", "-Werror", "use.c", "net.c", other, "-lm", "-o", "use"]
        subprocess.run(call, cwd=tmp_path, check=True)
        subprocess.run(["./use"], cwd=tmp_path, check=True)


def test_the_verb_with_a_file_of_generators(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "net.relay").write_text(LOOP)
    (tmp_path / "cg.py").write_text(
        "from relaylang.runtime.external import codegen\n\n\n@codegen('cg')\ndef generate(region):\n"
        "    return f'int {region.symbol}(const float* a, const float* b, float* c) '"
        "'{ for (int i = 0; i < 6; i++) c[i] = a[i] * b[i] - 0.5f; return 0; }'\n"
    )
    call = ["compile", str(tmp_path / "net.relay"), "--load", str(tmp_path / "cg.py"), "--runtime"]
    assert main([*call, "vm", "-o", str(tmp_path / "net.vm")]) == 0
    assert main([*call, "aot", "-o", f"{tmp_path}/c/"]) == 0
    assert sorted(path.name for path in (tmp_path / "c").iterdir()) == ["c.c", "c.h", "c_external0.c"]
    capsys.readouterr()
    np.savez(tmp_path / "in.npz", n=np.int32(2), x=X, y=Y)
    assert main(["run", str(tmp_path / "net.vm"), "--params", str(tmp_path / "in.npz"), "-o", str(tmp_path / "out.npz")]) == 0
    with np.load(tmp_path / "out.npz") as found:
        same([found["output_0"], found["output_1"]], wanted(module(LOOP), np.int32(2), X, Y))


def test_a_generator_in_tvm_s_way() -> None:
    """One that writes C for sums, differences and products, as TVM's example does, in the VM and in C source."""

    def ccompiler(func: relay.Function) -> Any:
        symbol, signs = func.attrs["global_symbol"], {"add": "+", "subtract": "-", "multiply": "*"}
        names = {p: f"in{n}[i]" for n, p in enumerate(func.params)}
        lines: list[str] = []

        def value(node: relay.Expr) -> str:
            if node not in names:
                left, right = map(value, node.args)
                names[node] = f"t{len(lines)}"
                lines.append(f"const float t{len(lines)} = {left} {signs[node.op.name]} {right};")
            return names[node]

        last = value(func.body)
        params = ", ".join(f"const float* in{n}" for n in range(len(func.params)))
        loop = f"for (int i = 0; i < 6; i++) {{ {' '.join(lines)} out[i] = {last}; }}"
        code = f"int {symbol}({params}, float* out) {{ {loop} return 0; }}"
        return get_global_func("runtime.CSourceModuleCreate")(code, "c", [symbol], [])

    register_func("relay.ext.cg", ccompiler)
    try:
        mod = module(f"""#[version = "0.0.5"]
def @cg_0(%a: {T}, %b: {T}, Compiler="cg", Primitive=1, global_symbol="cg_0") -> {T} {{
  %0 = add(%a, %b); subtract(multiply(%0, %0), %b) }}
def @main(%n: int32, %x: {T}, %y: {T}) -> {T} {{
  if (less(%n, 1)) {{ %x }} else {{ @main(subtract(%n, 1), @cg_0(%y, tanh(%x)), %x) }} }}
""")
        right = wanted(mod, np.int32(3), X, Y)
        made = relay.vm.compile(mod, "llvm -num-threads=1")
        np.testing.assert_allclose(relay.vm.VirtualMachine(made).invoke("main", np.int32(3), X, Y).numpy(), right, rtol=1e-5)
        np.testing.assert_allclose(compile_aot(mod).run(np.int32(3), X, Y), right, rtol=1e-5)
    finally:
        remove_global_func("relay.ext.cg")


def test_beside_a_call_without_compiled_code(tmp_path: Path) -> None:
    """The region is divided, and the function stays the one whose code is made."""
    regions: list[Region] = []

    def generate(region: Region) -> Any:
        regions.append(region)
        return WAYS["c"](region, tmp_path)

    codegen("cg", generate)
    mod = module(f"""#[version = "0.0.5"]
def @f(%a: {T}, %b: {T}, Compiler="cg", Primitive=1) {{ subtract(multiply(%a, %b), 0.5f) }}
def @main(%x: {T}, %y: {T}) {{ einsum((@f(tanh(%x), %y), @f(%x, %y)), equation="...ij,...ij->...ij") }}
""")
    made = vm(mod)
    assert [region.symbol for region in regions] == ["f"] and [p.region >= 0 for p in made.program.packed].count(False) == 1
    same([made.run(X, Y)], [wanted(mod, X, Y)])
