"""Extents that functions name: computed by operators, unified where functions are called, and written in texts."""

from __future__ import annotations

import pytest

from relaylang.diagnostics import RelayError
from relaylang.ir import FuncType, IRModule, structural_equal, structural_hash, type_text, types_equal
from relaylang.syntax import astext, parse
from relaylang.syntax.format import format_text
from relaylang.typing import infer

HEADER = '#[version = "0.0.5"]\n'


def module(text: str) -> IRModule:
    made = parse(HEADER + text).module
    assert made is not None
    return made


def result_of(body: str, params: str = "%x: Tensor[(b, t, 64), float32]") -> str:
    mod = module(f"def @main[b, t]({params}) {{ {body} }}")
    assert [d.title for d in infer(mod) if d.severity == "error"] == []
    ty = mod["main"].checked_type
    assert isinstance(ty, FuncType)
    return type_text(ty.ret_type).removeprefix("Tensor[(").removesuffix("), float32]")


@pytest.mark.parametrize(
    ("body", "shape"),
    [
        ("reshape(%x, newshape=[-1, 64])", "b * t, 64"),
        ("reshape(%x, newshape=[0, -1, 4, 32])", "b, t / 2, 4, 32"),
        ("reshape(%x, newshape=[-3, 0])", "b * t, 64"),
        ("reshape(reshape(%x, newshape=[0, 0, 4, 16]), newshape=[0, 0, -1])", "b, t, 64"),
        ("reshape(%x, newshape=[-1])", "64 * b * t"),
        ("concatenate((%x, %x), axis=1)", "b, 2 * t, 64"),
        ("repeat(%x, repeats=3, axis=1)", "b, 3 * t, 64"),
        ("nn.pad(%x, 0f, pad_width=[[0, 0], [1, 2], [0, 0]])", "b, t + 3, 64"),
        ("transpose(%x, axes=[1, 0, 2])", "t, b, 64"),
        ("nn.batch_matmul(%x, %x, transpose_b=True)", "b, t, t"),
        ('nn.dense(%x, ones(shape=[8, 64], dtype="float32"), units=8)', "b, t, 8"),
        ('add(%x, ones(shape=[1, 64], dtype="float32"))', "b, t, 64"),
        (
            'nn.conv1d(%x, ones(shape=[4, 3, 3], dtype="float32"), strides=[2], padding=[1, 1], channels=4, kernel_size=[3])',
            "b, 4, (t + 1) / 2",
        ),
    ],
)
def test_operators_compute_extents(body: str, shape: str) -> None:
    params = "%x: Tensor[(b, 3, t), float32]" if "conv" in body else "%x: Tensor[(b, t, 64), float32]"
    assert result_of(body, params) == shape


FUNCTIONS = """
def @twice[n](%x: Tensor[(n, 4), float32]) -> Tensor[(2 * n, 4), float32] { concatenate((%x, %x)) }
def @join[n, m](%z: Tensor[(n + m, 4), float32], %x: Tensor[(n, 4), float32], %y: Tensor[(m, 4), float32])
  -> Tensor[(m + n, 4), float32] {
  add(%z, concatenate((%y, %x)))
}
def @half[n](%x: Tensor[(2 * n, 4), float32]) -> Tensor[(n, 4), float32] { max(reshape(%x, newshape=[2, -1, 4]), axis=[0]) }
"""


@pytest.mark.parametrize(
    ("call", "result"),
    [
        ('@twice(ones(shape=[3, 4], dtype="float32"))', "6, 4"),
        ("@twice(@twice(%x))", "4 * b, 4"),
        ("@join(concatenate((%x, %x)), %x, %x)", "2 * b, 4"),
        ("@half(@twice(%x))", "b, 4"),
        ('@half(ones(shape=[6, 4], dtype="float32"))', "3, 4"),
    ],
)
def test_calls_find_names(call: str, result: str) -> None:
    mod = module(f"{FUNCTIONS}def @main[b](%x: Tensor[(b, 4), float32]) {{ {call} }}")
    assert infer(mod) == []
    ty = mod["main"].checked_type
    assert isinstance(ty, FuncType) and type_text(ty.ret_type) == f"Tensor[({result}), float32]"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("add(%x, concatenate((%x, %x)))", ["b", "2 * b"]),
        ("reshape(%x, newshape=[-1, 2, 4, 3]); reshape_like(%x, concatenate((%x, %x)))", ["4 * b", "8 * b"]),
        (
            "nn.batch_matmul(reshape(%x, newshape=[0, 1, 4]), reshape(concatenate((%x, %x)), newshape=[-1, 1, 4]), transpose_b=True)",
            ["b", "2 * b"],
        ),
        ("@f(%x, concatenate((%x, %x)))", ["b", "2 * b"]),
        ('@even(ones(shape=[3, 4], dtype="float32"))', ["3", "2 * n"]),
    ],
)
def test_contradictions_name_both_extents(body: str, said: list[str]) -> None:
    mod = module(
        "def @f[n](%x: Tensor[(n, 4), float32], %y: Tensor[(n, 4), float32]) { add(%x, %y) }\n"
        "def @even[n](%x: Tensor[(2 * n, 4), float32]) { %x }\n"
        f"def @main[b](%x: Tensor[(b, 4), float32]) {{ {body} }}"
    )
    wrong = [d for d in infer(mod) if d.severity == "error"]
    assert len(wrong) == 1
    text = wrong[0].title + "".join(str(note) for note in wrong[0].notes)
    assert all(word in text for word in said), text


def test_a_result_that_contradicts_its_declaration() -> None:
    mod = module("def @main[b](%x: Tensor[(b, 4), float32]) -> Tensor[(2 * b, 4), float32] { nn.relu(%x) }")
    (wrong,) = infer(mod)
    assert wrong.code == "R0302" and any("dimension 0 is b, not 2 * b" in str(note) for note in wrong.notes)


def test_texts_of_named_extents_are_read_back() -> None:
    text = (
        "def @main[b, t](%x: Tensor[(b + t, 2 * b - 1, b * (t / 2)), float32]) "
        "-> Tensor[(t + b, b + b - 1, b * (t / 2)), float32] { nn.relu(%x) }\n"
        "def @other[n](%x: Tensor[(min(n, 4), max(2 * n, 3), floormod(n, 2), 5 - n), int8]) { %x }"
    )
    mod = module(text)
    assert infer(mod) == []
    printed = astext(mod)
    again = module(printed.removeprefix(HEADER))
    assert infer(again) == []
    assert "b * (t / 2)" in printed and "(b + t, 2 * b - 1, " in printed and "meta" not in printed
    assert structural_equal(mod, again) and structural_hash(mod) == structural_hash(again) and astext(again) == printed
    tvm = astext(mod, style="tvm")
    assert "Tensor[(?, ?, ?), float32]" in tvm and "Tensor[(?, ?, ?, ?), int8]" in tvm
    assert format_text(HEADER + text) == format_text(format_text(HEADER + text))
    assert "Tensor[(b + t, 2 * b - 1, b * (t / 2)), float32]" in format_text(HEADER + text)


def test_types_are_equal_up_to_the_names_of_extents() -> None:
    of = "fn {}(Tensor[({}), int8], Tensor[({}), int8]) -> Tensor[({}), int8]"
    texts = [
        of.format("[a, b]", "a", "b", "a * b + 1"),
        of.format("[b, a]", "b", "a", "1 + a * b"),
        of.format("[a, b]", "a", "b", "a * b + a"),
    ]
    mods = [module(f"def @main(%f: {text}) {{ %f }}") for text in texts]
    types = [mod["main"].params[0].type_annotation for mod in mods]
    assert types_equal(types[0], types[1]) and not types_equal(types[0], types[2])
    assert structural_equal(mods[0], mods[1]) and not structural_equal(mods[0], mods[2])
    assert structural_hash(mods[0]) == structural_hash(mods[1])


@pytest.mark.parametrize(
    ("extent", "said"),
    [
        ("n / 0", "it divides by 0"),
        ("minimum(n, 2)", "`minimum` computes no extent"),
        ("min(n)", "`min` takes two extents, not 1"),
        (
            " + ".join(["floormod(n * n, 3)"] + [f"floormod(n + {k}, {k + 300})" for k in range(300)]),
            "it is computed of too many others",
        ),
    ],
)
def test_wrong_computations(extent: str, said: str) -> None:
    with pytest.raises(RelayError) as wrong:
        module(f"def @main[n](%x: Tensor[({extent}), float32]) {{ %x }}")
    (found,) = wrong.value.diagnostics
    assert found.code == "R0105" and said in found.title


def test_names_that_nothing_declares() -> None:
    with pytest.raises(RelayError) as wrong:
        module("def @main[n](%x: Tensor[(n * m), float32]) { %x }")
    assert [d.code for d in wrong.value.diagnostics] == ["R0207"]
