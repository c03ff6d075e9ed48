"""The verbs on good input."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from relaylang.cli import VERBS
from tests.cli.command import relay, relay_process
from tests.shared import FRAGMENTS, ROOT, golden, needs_shared

EXAMPLES = sorted((ROOT / "examples").glob("*.relay"))
MLP = ROOT / "examples" / "mlp.relay"
NUMBERS = ROOT / "examples" / "numbers.relay"
LOOP = ROOT / "examples" / "loop.relay"
Caps = pytest.CaptureFixture[str]


def test_version_and_help(capsys: Caps) -> None:
    assert relay(capsys, "--version").out.startswith("relaylang 0.")
    assert "check" in relay(capsys).out
    assert relay(capsys, "--help").status == 0


@pytest.mark.parametrize("verb", list(VERBS))
def test_every_verb_shows_an_example(capsys: Caps, verb: str) -> None:
    ran = relay(capsys, verb, "--help")
    assert ran.status == 0
    assert "examples:" in ran.out and f"relay {verb} " in ran.out.split("examples:")[1]


def test_print_without_the_header(capsys: Caps, tmp_path: Path) -> None:
    """The same text but for its first line, which reads back as the same."""
    for style in ("lossless", "tvm"):
        whole = relay(capsys, "print", EXAMPLES[0], "--style", style).out
        bare = relay(capsys, "print", EXAMPLES[0], "--style", style, "--no-header")
        assert bare.status == 0 and whole == '#[version = "0.0.5"]\n' + bare.out
        (tmp_path / "bare.relay").write_text(bare.out)
        assert relay(capsys, "print", tmp_path / "bare.relay", "--style", style).out == whole


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda p: p.stem)
def test_examples_check_and_print_and_read_back(capsys: Caps, file: Path, tmp_path: Path) -> None:
    ran = relay(capsys, "check", file)
    assert (ran.status, ran.out) == (0, ran.out) and ran.out.startswith(f"{file}: ok (")
    once = relay(capsys, "print", file)
    assert once.status == 0
    (tmp_path / "again.relay").write_text(once.out)
    assert relay(capsys, "print", tmp_path / "again.relay").out == once.out
    anf = relay(capsys, "print", file, "--anf", "--no-types")
    assert anf.status == 0 and "let %" in anf.out and "ty=" not in anf.out


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda p: p.stem)
def test_examples_run(capsys: Caps, file: Path) -> None:
    ran = relay(capsys, "run", file, "--random-params", "0")
    assert ran.status == 0, ran.err
    assert " : " in ran.out


def test_check_counts_and_is_quiet_on_request(capsys: Caps) -> None:
    assert relay(capsys, "check", NUMBERS, MLP).out.splitlines() == [
        f"{NUMBERS}: ok (2 functions, 1 type definition, 7 calls)",
        f"{MLP}: ok (1 function, 10 calls)",
    ]
    assert relay(capsys, "check", "-q", MLP).out == ""


def test_check_goes_on_behind_a_wrong_file(capsys: Caps, tmp_path: Path) -> None:
    (tmp_path / "wrong.relay").write_text("add(1, ]")
    ran = relay(capsys, "check", tmp_path / "wrong.relay", MLP)
    assert ran.status == 1 and f"{MLP}: ok" in ran.out and "wrong.relay:1:" in ran.err


@needs_shared
@pytest.mark.parametrize("file", golden("typed"), ids=lambda p: p.stem)
def test_the_tvm_style_gives_the_same_bytes(file: Path, tmp_path: Path, capsys: Caps) -> None:
    assert relay(capsys, "print", file, "--style", "tvm", "-o", tmp_path / "out").status == 0
    assert (tmp_path / "out").read_bytes() == file.read_bytes()


@pytest.mark.sweep
def test_stdin(capsys: Caps) -> None:
    assert relay_process("run", "-", stdin="1 + 2").out == "3 : int32\n"
    assert relay_process("check", "-", stdin="1 + 2").out.startswith("<stdin>: ok (expression of type int32")
    assert "add(1, 2)" in relay_process("print", "-", "--no-types", stdin="1 + 2").out


def test_expressions_in_a_module(capsys: Caps) -> None:
    assert relay(capsys, "run", NUMBERS, "-e", "@total(Two(5, 6))").out == "11 : int32\n"
    assert relay(capsys, "run", NUMBERS, "-e", "(One(3), 1f)").out == "(One(3), 1.0) : (Bag[], float32)\n"
    assert relay(capsys, "run", LOOP, "-e", "@power(%b, 2)", "-i", "b=1.5").out == "2.25 : float32\n"


@needs_shared
def test_the_fragment_with_numbers(capsys: Caps) -> None:
    file = FRAGMENTS / "numbers.relay"
    assert relay(capsys, "run", file, "-e", "@sum(Pair(5, 6))").out == "11 : int32\n"


@needs_shared
@pytest.mark.parametrize("name", ["qnn_conv_from_pytorch", "qnn_conv_from_tflite", "closure"])
def test_fragments_check_with_notes_only(capsys: Caps, name: str) -> None:
    ran = relay(capsys, "check", FRAGMENTS / f"{name}.relay")
    assert ran.status == 0 and ": ok (" in ran.out and "error" not in ran.err
    assert relay(capsys, "print", FRAGMENTS / f"{name}.relay").status == 0


@needs_shared
def test_missing_constants_take_their_types_from_comments(capsys: Caps) -> None:
    ran = relay(capsys, "check", FRAGMENTS / "qnn_conv_from_tflite.relay")
    assert "note[R0151]" in ran.err
    ran = relay(capsys, "run", FRAGMENTS / "qnn_conv_from_tflite.relay", "--random-params", "0")
    assert ran.status == 0, ran.err
    assert ran.out.endswith(": Tensor[(1, 32, 112, 112), uint8]\n")


@needs_shared
def test_a_fragment_whose_input_has_its_type_from_the_call(capsys: Caps, tmp_path: Path) -> None:
    file, stated = FRAGMENTS / "qnn_conv_from_pytorch.relay", "input=Tensor[(1, 3, 224, 224), float32]"
    ran = relay(capsys, "run", file, "--random-params", "0")
    assert ran.status == 2 and "error[R0706]" in ran.err and "--input 'input=Tensor[" in ran.err
    values = []
    for executor in ("interpreter", "cpu"):
        out = tmp_path / f"{executor}.npz"
        ran = relay(capsys, "run", file, "--random-params", "0", "-i", stated, "--executor", executor, "-o", out)
        assert ran.status == 0, ran.err
        values.append(np.load(out)["output"])
    assert values[0].dtype == np.uint8 and values[0].shape == (1, 32, 112, 112)
    np.testing.assert_array_equal(*values)
    ran = relay(capsys, "compile", file, "--random-params", "0", "-i", stated, "-o", tmp_path / "net.so")
    assert ran.status == 0 and "inputs: %input," in ran.out, ran.err


def test_a_type_for_what_has_one(capsys: Caps) -> None:
    ran = relay(capsys, "run", MLP, "--random-params", "0", "-i", "data=float32")
    assert ran.status == 2 and "gives a type where a value is wanted" in ran.err
    ran = relay(capsys, "compile", MLP, "--random-params", "0", "-i", "data=3", "-o", "never.so")
    assert ran.status == 2 and "gets its inputs when it runs" in ran.err and not Path("never.so").exists()


def test_inputs_of_every_kind(capsys: Caps, tmp_path: Path) -> None:
    text = "def @main(%a: Tensor[(2, 2), float32], %b: float32, %c: (int32, bool)) { (%a + %b, %c.0, %c.1) }"
    (tmp_path / "f.relay").write_text(text)
    np.save(tmp_path / "a.npy", np.array([[1, 2], [3, 4]], np.float32))
    ran = relay(capsys, "run", tmp_path / "f.relay", "-i", f"a={tmp_path}/a.npy", "-i", "b=1", "-i", "%c=(7, True)")
    assert ran.status == 0, ran.err
    assert "[[2. 3.]" in ran.out and "7 : int32" in ran.out and "True : bool" in ran.out


@pytest.mark.parametrize("executor", ["interpreter", "cpu"])
def test_output_files(capsys: Caps, tmp_path: Path, executor: str) -> None:
    out = tmp_path / "out.npz"
    ran = relay(capsys, "run", MLP, "--random-params", "3", "--executor", executor, "-o", out)
    assert (ran.status, ran.out) == (0, "")
    value = np.load(out)["output"]
    assert value.shape == (1, 10) and value.dtype == np.float32
    np.testing.assert_allclose(value.sum(), 1, rtol=1e-5)


def test_interpreter_and_cpu_agree(capsys: Caps, tmp_path: Path) -> None:
    values = []
    for executor in ("interpreter", "cpu"):
        relay(
            capsys, "run", ROOT / "examples/convnet.relay", "--random-params", "1", "--executor", executor, "-o", tmp_path / executor
        )
        values.append(np.load(tmp_path / executor)["output"])
    np.testing.assert_allclose(values[0], values[1], rtol=1e-4)


@pytest.mark.parametrize("name", ["p.npz", "p.safetensors"])
def test_parameter_files(capsys: Caps, tmp_path: Path, name: str) -> None:
    (tmp_path / "f.relay").write_text("def @main(%x: int32, %layer.0_weight: Tensor[(2), float32]) { %layer.0_weight }")
    weights = np.array([1.5, 2.5], np.float32)
    if name.endswith("npz"):
        np.savez(tmp_path / name, **{"layer.0_weight": weights})
    else:
        pytest.importorskip("safetensors.numpy").save_file({"layer.0_weight": weights}, tmp_path / name)
    ran = relay(capsys, "run", tmp_path / "f.relay", "--params", tmp_path / name, "-i", "x=1")
    assert ran.out == "[1.5 2.5] : Tensor[(2), float32]\n"


def test_large_values_are_summarised(capsys: Caps, tmp_path: Path) -> None:
    (tmp_path / "f.relay").write_text('def @main() { zeros(shape=[1000, 1000], dtype="float32") }')
    ran = relay(capsys, "run", tmp_path / "f.relay")
    assert ran.status == 0 and "..." in ran.out and len(ran.out) < 2000


def test_compile_shows_c(capsys: Caps, tmp_path: Path) -> None:
    ran = relay(capsys, "compile", MLP, "--emit", "c")
    assert ran.status == 0 and "#include" in ran.out
    assert relay(capsys, "compile", MLP, "--emit", "c", "-o", tmp_path / "mlp.c").status == 0
    assert (tmp_path / "mlp.c").read_text() == ran.out


@pytest.mark.parametrize("name", ["mlp.so", "mlp.tar"])
def test_compile_writes_an_artifact(capsys: Caps, tmp_path: Path, name: str) -> None:
    ran = relay(capsys, "compile", MLP, "--target", "c", "--random-params", "0", "-o", tmp_path / name)
    assert ran.status == 0, ran.err
    assert (tmp_path / name).stat().st_size > 1000
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_color_only_on_terminals() -> None:
    assert "\x1b" not in relay_process("check", "-", stdin="add(1, ]").err


#: What a call does not import: it takes as long as the work itself.
NOT_NEEDED = {
    "check": ("interpreter", "backends.", "repl", "passes.", "patterns"),
    "run --random-params 0": ("backends.cpu", "backends.ethosu", "backends.vta", "kernels"),
    "compile -o FOLDER/mlp.so": ("backends.ethosu", "backends.vta", "backends.aot", "frontends.tflite"),
    "repl": ("backends.cpu", "kernels", "frontends.common"),
}


@pytest.mark.parametrize("call", NOT_NEEDED)
def test_a_call_imports_what_it_needs(call: str, tmp_path: Path) -> None:
    words = [word.replace("FOLDER", str(tmp_path)) for word in call.split()] + ([] if call == "repl" else [str(MLP)])
    code = f"import sys, relaylang.cli; relaylang.cli.main({words}); print(sorted(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd="/", stdin=subprocess.DEVNULL)
    assert run.returncode == 0, run.stderr
    imported = ast.literal_eval(run.stdout.splitlines()[-1])
    assert [name for name in imported if name.startswith(tuple(f"relaylang.{part}" for part in NOT_NEEDED[call]))] == []


def test_the_command_starts_without_numpy() -> None:
    code = "import sys, relaylang.cli; relaylang.cli.main(['--version']); print('numpy' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd="/")
    assert run.stdout.splitlines()[-1] == "False"
