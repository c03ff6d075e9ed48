"""Whole networks: what the compiled program computes is what the interpreter computes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relaylang.backends import compile_module
from relaylang.interpreter import evaluate
from relaylang.ir import Function, IRModule
from relaylang.runtime.random import random_params
from relaylang.syntax import parse
from relaylang.typing import check
from tests.backends.ethosu import networks as quantised
from tests.cli.command import relay
from tests.shared import FRAGMENTS, ROOT, golden, needs_shared, networks

Capture = pytest.CaptureFixture[str]
#: Less work for the C compiler; the results are those of a better optimised program.
QUICK = "c -cflags=-O1"
#: The greatest difference to the interpreter, relative to the greatest value of a result.
CLOSE = 1e-4


def module(path: Path) -> IRModule:
    found = parse(path.read_text(), path.name).module
    assert found is not None
    check(found)
    return found


def tensors(value: Any) -> list[np.ndarray]:
    return [part for v in value for part in tensors(v)] if isinstance(value, tuple) else [value]


def compare(ours: Any, wanted: Any) -> None:
    assert len(tensors(ours)) == len(tensors(wanted)) > 0
    for a, b in zip(tensors(ours), tensors(wanted)):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        if b.dtype.kind == "f":
            np.testing.assert_allclose(a, b, rtol=0, atol=CLOSE * np.nanmax(np.abs(b), initial=0.0))
        else:
            np.testing.assert_array_equal(a, b)


@pytest.mark.sample(2)
@needs_shared
@pytest.mark.parametrize("path", networks(), ids=lambda p: p.name.split(".")[0])
def test_a_network_computes_what_the_interpreter_computes(path: Path) -> None:
    mod = module(path)
    values = random_params(7, mod["main"].params)
    name, *weights = values
    wanted = evaluate(mod, *values.values())
    assert all(np.isfinite(part).all() for part in tensors(wanted))
    bound = compile_module(mod, QUICK, params={w: values[w] for w in weights})
    assert bound.input_names == [name]
    first = bound.run(values[name])
    compare(first, wanted)
    # The program leaves nothing behind in its memory: another input between two equal ones changes nothing.
    bound.run(-values[name])
    for a, b in zip(tensors(bound.run(values[name])), tensors(first)):
        np.testing.assert_array_equal(a, b)


@pytest.mark.sweep
@needs_shared
@pytest.mark.parametrize("kind", ["anf", "simplified", "fused"])
@pytest.mark.parametrize("name", ["mlp", "lstm", "dqn", "synthetic"])
def test_every_form_of_a_program_compiles_with_open_weights(name: str, kind: str) -> None:
    path = next(p for p in golden(kind) if p.name.startswith(f"{name}."))
    mod = module(path)
    values = random_params(3, mod["main"].params)
    compare(compile_module(mod, QUICK).run(**values), evaluate(mod, *values.values()))


@pytest.mark.sample(2)
@needs_shared
@pytest.mark.parametrize("path", sorted(FRAGMENTS.glob("qnn*.relay")), ids=lambda p: p.stem)
def test_a_quantised_fragment_gives_the_same_integers(path: Path, tmp_path: Path, capsys: Capture) -> None:
    found = []
    shape = {"qnn_conv_from_pytorch": "1, 3, 64, 64"}.get(path.stem)
    text = path.read_text()
    if shape:
        # The fragment leaves the shapes of its free variables open.
        head = f"fn (%input: Tensor[({shape}), float32], %features.0.0_weight: Tensor[(32, 3, 3, 3), float32], "
        text = f"{head}%features.0.0_bias: Tensor[(32), float32]) {{\n{text}\n  %8\n}}\n"
    source = tmp_path / path.name
    source.write_text(text)
    for executor in ("interpreter", "cpu"):
        result = tmp_path / f"{executor}.npz"
        done = relay(capsys, "run", source, "--random-params", "5", "--executor", executor, "-o", result)
        assert done.status == 0, done.err
        with np.load(result) as stored:
            found.append([stored[name] for name in stored.files])
    compare(tuple(found[1]), tuple(found[0]))


@pytest.mark.sample(2)
@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.relay")), ids=lambda p: p.stem)
def test_an_example_computes_the_same_or_says_why_it_cannot(path: Path, tmp_path: Path, capsys: Capture) -> None:
    done = relay(capsys, "run", path, "--random-params", "1", "--executor", "cpu", "-o", tmp_path / "ours.npz")
    if done.status:
        assert done.err.count("error[") == 1 and "Traceback" not in done.err, done.err
        return
    theirs = relay(capsys, "run", path, "--random-params", "1", "-o", tmp_path / "theirs.npz")
    assert theirs.status == 0, theirs.err
    with np.load(tmp_path / "ours.npz") as a, np.load(tmp_path / "theirs.npz") as b:
        assert a.files == b.files
        compare(tuple(a[n] for n in a.files), tuple(b[n] for n in b.files))


def random_network(seed: int) -> quantised.Builder:
    made = quantised.Builder(seed)
    layers = ["conv", "depthwise", "max_pool", "average", "add", "concatenate", "requantize", "pad"]
    for _ in range(made.number(2, 4)):
        if min(made.extent("H"), made.extent("W")) < 2:
            break
        getattr(made, made.pick(*layers))()
    return made


@pytest.mark.sweep
def test_random_quantised_networks_give_the_same_integers() -> None:
    """All as one program with one result each, so that the C compiler runs once."""
    networks = [random_network(seed) for seed in range(24)]
    inputs, wanted, values = [], [], {}
    for number, made in enumerate(networks):
        dtype = np.dtype(made.x.checked_type.dtype)  # type: ignore[union-attr]
        low, high = quantised.RANGE[dtype.name]
        rng = np.random.default_rng(number)
        data = rng.integers(low, high + 1, made.x.checked_type.shape).astype(dtype)  # type: ignore[union-attr]
        inputs.append(made.x)
        wanted.append(evaluate(Function([made.x], made.value), data))
        values[number] = data
    program = Function(inputs, quantised.Tuple([made.value for made in networks]))
    found = compile_module(program, QUICK).run(*values.values())
    for number, (ours, theirs) in enumerate(zip(found, wanted)):
        np.testing.assert_array_equal(ours, theirs, err_msg=f"network {number}")


def test_parameters_of_one_name_are_told_apart() -> None:
    x, y, z = (quantised.var("x", shape=[2], dtype="float32") for _ in range(3))
    x2 = quantised.var("x_2", shape=[2], dtype="float32")
    artifact = compile_module(Function([x, y, x2, z], quantised.Tuple([z, x2, y, x])), QUICK)
    assert artifact.input_names == ["x", "x_3", "x_2", "x_4"]
    parts = [np.full(2, n, np.float32) for n in range(4)]
    assert [int(v[0]) for v in artifact.run(*parts)] == [3, 2, 1, 0]
