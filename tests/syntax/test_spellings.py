"""Calls as TVM 0.6 to 0.15 wrote them. Each is read as today's call of the same meaning, with a note."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from relaylang.cli import main
from relaylang.diagnostics import RelayError
from relaylang.interpreter import evaluate
from relaylang.ir import IRModule
from relaylang.ir.structural import structural_diff
from relaylang.lsp.document import Document, NotByParts
from relaylang.ops import OPS
from relaylang.syntax import astext, parse
from relaylang.syntax.format import format_text
from relaylang.syntax.metadata import MetaNode
from relaylang.syntax.spellings import BY_NAME, SPELLINGS, spelling_of
from relaylang.typing import infer

NEW = '#[version = "0.0.5"]'
OLD = "v0.0.4"
PARAMS = (
    "%x: Tensor[(1, 3, 4, 4), float32], %w: Tensor[(3, 4), float32], %i: Tensor[(3, 4), int64], %v: Tensor[(3), float16], "
    "%j: Tensor[(1, 3), int64], %q: Tensor[(1, 3, 4, 4), uint8], %a: Tensor[(2, 5, 3), int32], %k: Tensor[(3, 2, 2, 2), float32], "
    "%h: Tensor[(2, 2, 3, 2), float32], %qk: Tensor[(2, 3, 2, 2), uint8], %r: Tensor[(1, 4), int32], "
    "%y: Tensor[(1, 1, 2, 2, 2), float32], %s: Tensor[(2), int64], %b: Tensor[(1, 5, 6), float32], %n: Tensor[(1), int32], "
    "%o: Tensor[(1, 5), int32], %p: Tensor[(2, 2), int64]"
)
ROI = "roi=[0f, 0f, 0f, 0f]"
#: (header, the call as it was written, the call of today)
CALLS = [
    (
        NEW,
        "nn.pad(%x, pad_value=1f, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]])",
        "nn.pad(%x, 1f, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]])",
    ),
    (NEW, "nn.pad(%x, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]])", "nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]])"),
    (NEW, "dyn.nn.pad(%w, %p, 0f, pad_value=0f, pad_width=[])", "dyn.nn.pad(%w, %p, 0f, pad_width=[])"),
    (
        NEW,
        "strided_slice(%w, begin=[0, 0], end=[1, 2], strides=[1, 1])",
        "strided_slice(%w, begin=[0, 0], end=[1, 2], strides=[1, 1], axes=None)",
    ),
    (OLD, "strided_slice(%w, begin=[0, 0], end=[1, 2])", "strided_slice(%w, begin=[0, 0], end=[1, 2], strides=[1], axes=None)"),
    (NEW, "qnn.dequantize(%q, 0.5f, 3)", 'qnn.dequantize(%q, 0.5f, 3, out_dtype="float32")'),
    (NEW, "image.resize(%x, size=[8, 8])", f'image.resize2d(%x, size=[8, 8], {ROI}, rounding_method="")'),
    (
        OLD,
        "image.resize(%x, size=[8, 8])",
        f'image.resize2d(%x, size=[8, 8], {ROI}, coordinate_transformation_mode="align_corners", rounding_method="")',
    ),
    (
        NEW,
        'image.resize(%x, size=[8, 8], method="nearest_neighbor", align_corners=False)',
        f'image.resize2d(%x, size=[8, 8], {ROI}, method="nearest_neighbor", coordinate_transformation_mode="asymmetric", '
        'rounding_method="")',
    ),
    (
        NEW,
        'image.resize(%x, size=[8, 8], layout="NHWC", method="bicubic", bicubic_alpha=-0.75f)',
        f'image.resize2d(%x, size=[8, 8], {ROI}, layout="NHWC", method="cubic", rounding_method="", cubic_alpha=-0.75f)',
    ),
    (NEW, "image.resize2d(%x, size=[8, 8])", f"image.resize2d(%x, size=[8, 8], {ROI})"),
    (
        NEW,
        'image.resize3d(%y, size=[4, 4, 4], method="trilinear")',
        'image.resize3d(%y, size=[4, 4, 4], roi=[0f, 0f, 0f, 0f, 0f, 0f], rounding_method="")',
    ),
    (NEW, "dyn.image.resize(%x, %s)", 'dyn.image.resize2d(%x, %s, zeros(shape=[4], dtype="float32"), rounding_method="")'),
    (NEW, "scatter(%w, %i, %w)", "scatter_elements(%w, %i, %w)"),
    (NEW, "scatter (%w, %i, %w, axis=1)", "scatter_elements(%w, %i, %w, axis=1)"),
    (NEW, "scatter_add(%w, %i, %w, axis=1)", 'scatter_elements(%w, %i, %w, axis=1, reduction="add")'),
    (NEW, "scatter_nd(%v, %j, out_shape=[5])", 'scatter_nd(cast_like(zeros(shape=[5], dtype="float32"), %v), %j, %v, mode="add")'),
    (NEW, "contrib.adaptive_avg_pool2d(%x, output_size=[2, 2])", "nn.adaptive_avg_pool2d(%x, output_size=[2, 2])"),
    (OLD, "contrib.adaptive_max_pool2d(%x, output_size=[2, 2])", "nn.adaptive_max_pool2d(%x, output_size=[2, 2])"),
    (OLD, 'contrib.ndarray_size(%x, dtype="int64")', 'ndarray_size(%x, dtype="int64")'),
    (OLD, "nn.batch_matmul(%a, %a)", "nn.batch_matmul(%a, %a, transpose_b=True)"),
    (OLD, "nn.dense(%w, %w)", "nn.dense(%w, %w, units=None)"),
    (NEW, "nn.dense(%w, %w)", "nn.dense(%w, %w, units=None)"),
    (
        OLD,
        'nn.conv2d_transpose(%x, %h, channels=2, kernel_size=[2, 2], kernel_layout="HWOI")',
        'nn.conv2d_transpose(%x, %h, channels=2, kernel_size=[2, 2], kernel_layout="HWIO")',
    ),
    (
        NEW,
        'qnn.quantize(%x, output_scale=0.5f, output_zero_point=3, out_dtype="uint8")',
        'qnn.quantize(%x, 0.5f, 3, out_dtype="uint8")',
    ),
    (NEW, "qnn.dequantize(%q, input_zero_point=3, input_scale=0.5f)", 'qnn.dequantize(%q, 0.5f, 3, out_dtype="float32")'),
    (
        NEW,
        'qnn.conv2d(%q, %qk, kernel_size=[2, 2], channels=2, out_dtype="int32", input_zero_point=3, kernel_zero_point=1, '
        "input_scale=0.5f, kernel_scale=0.25f)",
        'qnn.conv2d(%q, %qk, 3, 1, 0.5f, 0.25f, channels=2, kernel_size=[2, 2], out_dtype="int32")',
    ),
    (
        NEW,
        'qnn.requantize(%r, input_scale=0.5f, input_zero_point=0, output_scale=0.25f, output_zero_point=3, out_dtype="uint8")',
        'qnn.requantize(%r, 0.5f, 0, 0.25f, 3, out_dtype="uint8")',
    ),
    (
        NEW,
        "qnn.concatenate((%q, %q), input_scales=[0.5, 0.25], input_zero_points=[1, 2], output_scale=0.5, output_zero_point=3, axis=1)",
        "qnn.concatenate((%q, %q), (0.5f, 0.25f), (1, 2), 0.5f, 3, axis=1)",
    ),
    (
        NEW,
        "qnn.add(%q, %q, lhs_scale=0.5, lhs_zero_point=1, rhs_scale=0.5, rhs_zero_point=2, output_scale=0.25, output_zero_point=4)",
        "qnn.add(%q, %q, 0.5f, 1, 0.5f, 2, 0.25f, 4)",
    ),
    (NEW, "qnn.leaky_relu(%q, 0.5f, 3, alpha=0.125f)", "qnn.leaky_relu(%q, 0.5f, 3, 0.5f, 3, alpha=0.125f)"),
    (NEW, "vision.get_valid_counts(%b, score_threshold=0.5f)", "vision.get_valid_counts(%b, 0.5f)"),
    (
        NEW,
        "vision.non_max_suppression(%b, %n, %o, 2, max_output_size=2, iou_threshold=0.25f, return_indices=False)",
        "vision.non_max_suppression(%b, %n, %o, 2, 0.25f, return_indices=False)",
    ),
    (NEW, "reshape(%x, newshape=[4, -1], reverse=False)", "reshape(%x, newshape=[4, -1])"),
    (NEW, "reshape(%w, newshape=[-1, 0], reverse=True)", "contrib_reverse_reshape(%w, newshape=[-1, 0])"),
    (NEW, 'topk(%w, dtype="int32")', 'topk(%w, k=1, dtype="int32")'),
]
#: What TVM declared and is not read, and why.
UNREAD = {
    "vision.non_max_suppression 2": "it had no `indices`",
    "nn.contrib_conv2d_winograd_nnpack_without_weight_transform 2": "there is no such operator today",
    **dict.fromkeys(
        (
            "memory.alloc_storage 2",
            "memory.alloc_tensor 2",
            "memory.invoke_tvm_op 3",
            "memory.kill 3",
            "memory.shape_func 3",
            "vm.shape_func 3",
        ),
        "a step of compiled code; the texts that have it refer to compiled functions, which they do not hold",
    ),
}


def whole(header: str, call: str) -> str:
    return f"{header}\ndef @main({PARAMS}) {{\n  {call}\n}}\n"


def module(text: str) -> IRModule:
    made = parse(text).module
    assert made is not None
    return made


@pytest.mark.parametrize(("header", "old", "today"), CALLS, ids=[f"{c[0][-3]} {c[1][:60]}" for c in CALLS])
def test_an_old_call_is_todays(header: str, old: str, today: str) -> None:
    result = parse(whole(header, old))
    assert result.module is not None
    assert structural_diff(result.module, module(whole(NEW, today))) is None
    assert [n.code for n in result.notes] == ["R0152"] and "TVM 0." in result.notes[0].title
    assert [d.title for d in infer(result.module) if d.severity == "error"] == []
    for style in ("lossless", "tvm"):
        again = parse(astext(result.module, style=style))
        assert again.module is not None and structural_diff(again.module, result.module) is None and not again.notes
    if any(row.makes and row.name == old.partition("(")[0] for row in SPELLINGS):
        with pytest.raises(RelayError, match="relay print"):
            format_text(whole(header, old))
    else:
        made = format_text(whole(header, old))
        assert made == whole(NEW, today) and format_text(made) == made


@pytest.mark.parametrize("today", [c[2] for c in CALLS], ids=[c[2][:60] for c in CALLS])
def test_todays_call_is_itself(today: str) -> None:
    result = parse(whole(NEW, today))
    assert not result.notes


def test_every_operator_that_was_declared_otherwise_is_read() -> None:
    lines = [line.split() for line in (Path(__file__).parent / "old_operators.txt").read_text().splitlines() if line[0] != "#"]
    assert len(lines) > 40
    unread = set()
    for first, last, name, count, *attrs in lines:
        if f"{name} {count}" in UNREAD:
            unread.add(f"{name} {count}")
            continue
        least = {a[:-1]: 1 for a in attrs if a[-1] == "!"}
        for version in (first, last):
            major, minor = map(int, version.split("."))
            row = spelling_of(name, int(count), least, (major, minor))
            assert row is not None and row.first <= (major, minor) <= row.last, (name, version)
            assert {a.rstrip("!") for a in attrs} <= row.known, (name, version)
        assert name in OPS or spelling_of(name, int(count), least, None) is not None
    assert unread == set(UNREAD)


def test_a_text_that_says_its_version_has_its_defaults() -> None:
    call = "nn.batch_matmul(%a, %a)"
    nodes = '"root": 1, "nodes": [{"type_key": ""}, {"type_key": "Map"}], "b64ndarrays": []'
    dated = f'{whole(NEW, call)}\n#[metadata]\n{{{nodes}, "attrs": {{"tvm_version": "0.7.0"}}}}\n'
    assert module(dated)["main"].body.attrs.transpose_b is True
    made = format_text(dated)
    assert "transpose_b=True" in made and "0.7.0" not in made and format_text(made) == made
    for text in (whole(NEW, call), whole("", call), dated.replace("0.7.0", "0.8.0")):
        assert module(text)["main"].body.attrs.transpose_b is False
    for header in ("v0.0.3", '#[version = "0.0.4"]', "/* of 2019 */ // v\n v0.0.4"):
        assert module(whole(header, call))["main"].body.attrs.transpose_b is True
    plain = parse(whole(OLD, "nn.conv2d_transpose(%x, %k, channels=2, kernel_size=[2, 2])"))
    assert plain.module is not None and plain.module["main"].body.attrs.kernel_layout == "IOHW" and not plain.notes


def test_values_of_old_calls() -> None:
    def value(header: str, params: str, call: str, *given: np.ndarray) -> np.ndarray:
        return evaluate(module(f"{header}\ndef @main({params}) {{ {call} }}"), *given)

    a = np.arange(30, dtype="float32").reshape(2, 5, 3)
    product = value(OLD, "%a: Tensor[(2, 5, 3), float32]", "nn.batch_matmul(%a, %a)", a)
    np.testing.assert_array_equal(product, a @ a.transpose(0, 2, 1))
    updates, places = np.array([1, 2, 4], "float16"), np.array([[1, 3, 1]], "int64")
    summed = value(NEW, "%v: Tensor[(3), float16], %j: Tensor[(1, 3), int64]", "scatter_nd(%v, %j, out_shape=[5])", updates, places)
    assert summed.dtype == "float16" and summed.tolist() == [0, 5, 0, 2, 0]
    line = np.array([[[[0, 10, 20, 40]]]], "float32")
    ends = value(OLD, "%x: Tensor[(1, 1, 1, 4), float32]", "image.resize(%x, size=[1, 7])", line)
    np.testing.assert_array_equal(ends.ravel(), [0, 5, 10, 15, 20, 30, 40])
    near = value(
        OLD, "%x: Tensor[(1, 1, 1, 4), float32]", 'image.resize(%x, size=[1, 8], method="nearest_neighbor", align_corners=False)', line
    )
    assert near.ravel().tolist() == [0, 0, 10, 10, 20, 20, 40, 40]
    small = np.array([[1, 2]], "int8")
    call = "nn.pad(%w, pad_value=7f, pad_width=[[0, 0], [1, 0]])"
    padded = value(NEW, "%w: Tensor[(1, 2), int8]", call, small)
    assert padded.dtype == "int8" and padded.tolist() == [[7, 1, 2]]


def test_devices_were_numbers() -> None:
    for call, names in (
        ("on_device(%x, device_type=2, is_fixed=True)", ["virtual_device"]),
        ("device_copy(%x, src_dev_type=1, dst_dev_type=2)", ["src_virtual_device", "dst_virtual_device"]),
    ):
        mod = module(whole(NEW, call))
        attrs = mod["main"].body.attrs
        assert all(isinstance(attrs[n], MetaNode) for n in names) and attrs[names[-1]].attrs["device_type_int"] == "2"
        for style in ("lossless", "tvm"):
            again = module(astext(mod, style=style))
            assert structural_diff(mod, again) is None and astext(again, style=style) == astext(mod, style=style)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("nn.pad(%x, pad_value=True, pad_width=[[0, 0]])", ["R0109 attribute `pad_value` of `nn.pad` must be a number"]),
        ("nn.pad(%x, pad_value=1f, pad_widht=[[0, 0]])", ["R0203 `nn.pad` has no attribute `pad_widht`"]),
        ("scatter(%w, %i, %w, axs=1)", ["R0203 `scatter_elements` has no attribute `axs`"]),
        ("scatter", ["R0202 unknown operator `scatter`"]),
        ('qnn.quantize(%x, output_scale=0.5f, out_dtype="uint8")', ["R0208 `qnn.quantize` wants the attribute `output_zero_point`"]),
        ("scatter_nd(%v, %j, out_shape=5)", ["R0109 attribute `out_shape` of `scatter_nd` must be a list of whole numbers"]),
        ('on_device(%x, device_type="a")', ["R0109 attribute `device_type` of `on_device` must be a number"]),
        ("device_copy(%x, src_dev_type=1, dst_dev_type=True)", ["R0109 attribute `dst_dev_type` of `device_copy` must be a number"]),
        (
            "qnn.add(%q, %q, lhs_scale=0.5, lhs_zero_point=5000000000)",
            ["R0109 attribute `lhs_zero_point` of `qnn.add` must be a number"],
        ),
        ("qnn.dequantize(%q)", ["R0208 `qnn.dequantize` wants the attribute `out_dtype`"]),
        (
            "image.resize(%x, size=[8, 8], align_corners=2)",
            ["R0109 attribute `coordinate_transformation_mode` of `image.resize2d` must be a string, not 2"],
        ),
        (
            "nn.pad(%x, pad_value=1g, pad_width=[[0, 0]])",
            ["R0105 `g` is no suffix of a number: there are i8 to i64, u8 to u64, f, f16, f32, f64, bf16"],
        ),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_what_is_wrong_with_an_old_call(call: str, said: list[str]) -> None:
    with pytest.raises(RelayError) as wrong:
        parse(whole(NEW, call))
    assert [f"{d.code} {d.title}" for d in wrong.value.diagnostics] == said
    assert all(d.span is not None for d in wrong.value.diagnostics)


def test_the_editor_reads_old_texts_whole() -> None:
    with pytest.raises(NotByParts):
        Document(whole(OLD, "nn.batch_matmul(%a, %a)"), "old.relay")
    Document(whole(NEW, "nn.batch_matmul(%a, %a, transpose_b=True)"), "new.relay")


def test_verbs_tell_what_they_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "old.relay"
    path.write_text(whole(OLD, "nn.batch_matmul(%a, %a)"))
    assert main(["check", str(path)]) == 0
    assert "note[R0152]: `nn.batch_matmul` is read as TVM 0.6 to 0.7 wrote it" in capsys.readouterr().err
    assert main(["fmt", "-w", str(path)]) == 0 and main(["check", str(path)]) == 0
    assert "R0152" not in capsys.readouterr().err and "transpose_b=True" in path.read_text()


def test_the_guide_has_the_table() -> None:
    text = (Path(__file__).parents[2] / "docs" / "language.md").read_text()
    rows = {row: f"| `{row.name}` | {row.versions.removeprefix('TVM ')} | `{row.now}` | {row.says} |\n" for row in SPELLINGS}
    assert [row.name for row, line in rows.items() if line not in text] == [] and set(BY_NAME) == {row.name for row in SPELLINGS}
