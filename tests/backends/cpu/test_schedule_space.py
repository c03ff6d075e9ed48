"""The search space of schedules: every choice computes the same, choices find their kernels, wrong ones are errors."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relaylang.backends import compile_module
from relaylang.backends.cpu import emit
from relaylang.backends.cpu.schedule_space import PROGRAM, Space, read
from relaylang.diagnostics import RelayError
from relaylang.ir import IRModule
from relaylang.runtime.artifact import Artifact
from relaylang.syntax import parse
from relaylang.tune import extract_tasks, space_of
from tests.cli.command import relay

Caps = pytest.CaptureFixture[str]
TEXT = """def @main(%x: Tensor[(3, 20, 35), float32], %y: Tensor[(5000), float32], %z: Tensor[(30, 42), float32]) {
  %0 = transpose(%x, axes=[2, 0, 1]);
  (multiply(%0, 2f), sum(%x, axis=[0]), exp(%y), transpose(%z, axes=None))
}
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAYLANG_CACHE", str(tmp_path / "cache"))


def module(text: str = TEXT) -> IRModule:
    mod = parse(text).module
    assert mod is not None
    return mod


def rows(text: str = TEXT, **options: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(emit(module(text), "space", options=options))["kernels"]
    return found


def write(file: Path, kernels: list[dict[str, Any]]) -> str:
    file.write_text(json.dumps({"version": 1, "kernels": kernels}))
    return str(file)


@pytest.mark.sweep
def test_every_choice_computes_the_same(tmp_path: Path) -> None:
    """One knob of each kernel at a time takes each of its values; all kernels step at once."""
    rng = np.random.default_rng(0)
    given = [rng.standard_normal(shape).astype(np.float32) for shape in ((3, 20, 35), (5000,), (30, 42))]
    plain = compile_module(module(), "c").run(*given)
    kernels = rows()
    assert {knob.partition(".")[2] for row in kernels for knob in row["knobs"]} == {"", "order", "tile", "turn", "unit"}
    steps = max(sum(len(v) for v in row["knobs"].values()) for row in kernels)
    texts = set()
    for step in range(steps):
        tried = []
        for row in kernels:
            points = [(name, value) for name, values in row["knobs"].items() for value in values]
            name, value = points[step % len(points)]
            tried.append({"key": row["key"], "choice": {name: value}})
        file = write(tmp_path / "schedule.json", tried)
        made = compile_module(module(), f"c -num-threads=2 -cflags=-O1 -schedule={file}")
        texts.add(emit(module(), "loops", options={"schedule": file}))
        for ours, theirs in zip(made.run(*given), plain):
            np.testing.assert_array_equal(ours, theirs)
    assert len(texts) > steps // 2


LAST = 'data_layout="NHWC", kernel_layout="HW{}", padding=[1, 1, 1, 1], kernel_size=[3, 3]'
#: Kernels with knobs of their own: the program, and the names of those knobs.
KERNELS = {
    "depthwise": (
        "def @main(%x: Tensor[(1, 9, 30, 40), float32], %w: Tensor[(3, 3, 40, 1), float32]) "
        f"{{ nn.conv2d(%x, %w, {LAST.format('OI')}, groups=40, channels=40) }}",
        {"tile", "channels"},
    ),
    "pool": (
        "def @main(%x: Tensor[(1, 9, 30, 40), float32]) "
        '{ nn.max_pool2d(%x, pool_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1], layout="NHWC") }',
        {"tile", "channels"},
    ),
    "winograd": (
        "def @main(%x: Tensor[(1, 11, 19, 32), float32], %w: Tensor[(3, 3, 32, 48), float32]) "
        f"{{ nn.conv2d(%x, %w, {LAST.format('IO')}, channels=48) }}",
        {"winograd", "tiles", "vectors", "rows"},
    ),
    "a row": (
        "def @main(%x: Tensor[(1, 70), float32], %w: Tensor[(150, 70), float32]) { nn.dense(%x, %w, units=150) }",
        {"unit", "columns"},
    ),
    "few rows": (
        "def @main(%x: Tensor[(3, 70), float32], %w: Tensor[(150, 70), float32]) { nn.dense(%x, %w, units=150) }",
        {"unit", "columns"},
    ),
    "few rows of a turned matrix": (
        "def @main(%x: Tensor[(2, 70), float32], %w: Tensor[(70, 150), float32]) { nn.matmul(%x, %w, units=150) }",
        {"sums"},
    ),
    "product": (
        "def @main(%x: Tensor[(21, 600), float32], %w: Tensor[(150, 600), float32]) { nn.dense(%x, %w, units=150) }",
        {"vectors", "rows", "part", "ahead", "order"},
    ),
    "softmax": ("def @main(%x: Tensor[(5, 150), float32]) { nn.softmax(%x) }", {"vectors"}),
    "logarithm": ("def @main(%x: Tensor[(5, 150), float32]) { nn.log_softmax(%x) }", {"vectors"}),
    "softmax across": ("def @main(%x: Tensor[(2, 21, 25, 11), float32]) { nn.softmax(%x, axis=1) }", {"width"}),
    "logarithm across": ("def @main(%x: Tensor[(3, 150, 70), float32]) { exp(nn.log_softmax(%x, axis=1)) }", {"width"}),
    "sum": ("def @main(%x: Tensor[(3, 219), float32]) { sum(%x, axis=[1]) }", {"groups"}),
    "extreme": ("def @main(%x: Tensor[(3, 219), float64]) { min(%x, axis=[1], keepdims=True) }", {"groups"}),
    "maxima of pixels": (
        "def @main(%x: Tensor[(1, 9, 30, 40), int8]) { nn.max_pool2d(%x, pool_size=[3, 3], strides=[2, 2], padding=[1, 1, 0, 1]) }",
        {"window"},
    ),
    "means of pixels": (
        "def @main(%x: Tensor[(1, 5, 9, 13, 14), float32]) "
        "{ nn.avg_pool3d(%x, pool_size=[3, 1, 2], strides=[1, 2, 1], dilation=[2, 1, 3], padding=[1, 0, 1, 1, 1, 2]) }",
        {"window"},
    ),
}


@pytest.mark.sweep
@pytest.mark.parametrize("name", KERNELS)
def test_every_knob_of_a_kernel_computes_the_same(name: str) -> None:
    """One knob at a time takes each of its values; of many values, the ends and the middle."""
    text, names = KERNELS[name]
    (task,) = (t for t in extract_tasks(module(text), "c -num-threads=1 -march=x86-64-v3 -cflags=-O1", ["w"]) if t.tunable)
    space, inputs = space_of(task), task.inputs()
    assert set(space.default.knobs) == names

    def results(artifact: Artifact) -> list[np.ndarray]:
        return [np.array(v, "float64") for v in np.atleast_2d(artifact.run(**inputs))]

    wanted, texts = results(task.compile()), set()
    for knob, values in space.default.knobs.items():
        for value in {values[0], values[len(values) // 2], values[-1]}:
            choice = {knob: value}
            texts.add(str(task.lower(choice).stages[-1].body) + str(task.lower(choice).functions))
            for ours, theirs in zip(results(task.compile(choice)), wanted):
                np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5 * float(np.abs(theirs).max()), err_msg=str(choice))
    assert len(texts) > len(names)


def test_a_written_schedule_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "schedule.json"
    file.write_text(emit(module(), "space"))
    for step in ("space", "c"):
        assert emit(module(), step, options={"schedule": str(file)}) == emit(module(), step)


@pytest.mark.sweep
def test_keys_are_the_same_in_every_run_and_place() -> None:
    moved = "\n\n" + TEXT.replace("%x", "%other")
    assert [row["key"] for row in rows(moved)] == [row["key"] for row in rows()]
    code = (
        "import json, sys\nfrom relaylang.backends.cpu import emit\nfrom relaylang.syntax import parse\n"
        "print(emit(parse(sys.argv[1]).module, 'space'))"
    )
    done = subprocess.run([sys.executable, "-c", code, TEXT], capture_output=True, text=True, check=True)
    assert [row["key"] for row in json.loads(done.stdout)["kernels"]] == [row["key"] for row in rows()]


def test_other_shapes_have_other_keys() -> None:
    other = {row["key"] for row in rows(TEXT.replace("5000", "5001"))}
    assert len({row["key"] for row in rows()} - other) == 1


def test_loops_show_the_choices(tmp_path: Path) -> None:
    row = next(row for row in rows() if "loops0.tile" in row["knobs"])
    file = write(tmp_path / "s.json", [{"key": row["key"], "choice": {"loops0.tile": 16}}])
    text = emit(module(), "loops", options={"schedule": file})
    assert f"  # schedule {row['key']}: " in text and "loops0.tile = 16" in text


def test_the_program_has_knobs_of_its_own(tmp_path: Path) -> None:
    text = "def @main(%x: Tensor[(4), float32]) { tanh(exp(sqrt(%x))) }"
    file = write(tmp_path / "s.json", [{"key": PROGRAM, "choice": {"fuse-depth": 1}}])
    assert emit(module(text), "loops").count("\nkernel ") == 1
    assert emit(module(text), "loops", options={"schedule": file}).count("\nkernel ") == 3


def test_the_default_is_a_choice() -> None:
    space = Space()
    assert space.pick("unit", (1, 2), 3) == 3 and space.knobs == {"unit": (1, 2, 3)} and space.choice == {"unit": 3}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is no JSON"),
        ("[" * 100_000, "is no JSON"),
        ("[]", "is no schedule"),
        ('{"version": 2, "kernels": []}', "is no schedule"),
        ('{"version": 1, "kernels": [1]}', "is no schedule"),
        ('{"version": 1, "kernels": [{"choice": {}}]}', "a kernel has no key, or its choice is no object"),
        ('{"version": 1, "kernels": [{"key": "program", "choice": []}]}', "a kernel has no key, or its choice is no object"),
    ],
)
def test_files_that_are_no_schedules(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "s.json"
    file.write_text(text)
    with pytest.raises(RelayError) as caught:
        read(str(file))
    assert caught.value.diagnostics[0].code == "R0643" and message in str(caught.value)


@pytest.mark.parametrize(
    ("choice", "message", "note"),
    [
        ({"fuse-depth": 3}, "the schedule gives program: fuse-depth the value 3", "its choices: 1, 4, 16, 96"),
        ({"fuse-depth": "4"}, 'the schedule gives program: fuse-depth the value "4"', "its choices: 1, 4, 16, 96"),
        ({"fuse-depth": True}, "the schedule gives program: fuse-depth the value true", "its choices: 1, 4, 16, 96"),
        ({"fusedepth": 4}, "the schedule names a knob that there is not: program: fusedepth", "did you mean fuse-depth?"),
    ],
)
def test_choices_that_do_not_fit(tmp_path: Path, choice: dict[str, Any], message: str, note: str) -> None:
    file = write(tmp_path / "s.json", [{"key": PROGRAM, "choice": choice}])
    with pytest.raises(RelayError) as caught:
        emit(module(), "c", options={"schedule": file})
    problem = caught.value.diagnostics[0]
    assert (problem.code, problem.title) == ("R0643", message) and note in str(caught.value)


def test_the_command(capsys: Caps, tmp_path: Path) -> None:
    net, file = tmp_path / "net.relay", tmp_path / "schedule.json"
    net.write_text(TEXT)
    assert relay(capsys, "compile", net, "--emit", "space", "-o", file).status == 0
    made = json.loads(file.read_text())
    made["kernels"][0]["choice"]["fuse-depth"] = 1
    file.write_text(json.dumps(made))
    one, two = (relay(capsys, "compile", net, *more, "--emit", "loops").out for more in ((), ("--schedule", file)))
    assert one != two
    ran = relay(capsys, "compile", net, "--schedule", tmp_path / "none.json", "-o", tmp_path / "net.so")
    assert ran.status == 1 and "error[R0643]: cannot read the schedule" in ran.err
