"""Files of older versions, damaged files, and programs that are wrong."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relaylang as relay
from relaylang.diagnostics import RelayError
from relaylang.frontends.contents import is_paddle
from relaylang.frontends.options import Options
from relaylang.frontends.paddle import import_paddle
from relaylang.frontends.paddle.legacy import rows
from relaylang.frontends.paddle.table import table
from relaylang.ir import type_text
from tests.frontends.paddle.files import (
    integer,
    integers,
    operation,
    part,
    pdiparams,
    pdmodel,
    real,
    tensor,
    text,
    truth,
    variable,
    weight,
)
from tests.frontends.paddle.test_networks import files, results, same

RNG = np.random.default_rng(4)
ONE = variable("x", (2, 3))


def one(type: str, *attributes: bytes, shape: Sequence[int] = (2, 3), dtype: str = "float32") -> bytes:
    """A program of one operation."""
    return pdmodel([variable("x", shape, dtype)], [operation(type, {"X": ["x"]}, {"Out": ["y"]}, attributes)], ["x"], ["y"])


def pir(*operations: dict[str, Any], result: int | None = None) -> bytes:
    """A program in PIR: an input %1 of (2, 3), operations, and a result, by default of the last one."""
    kind = {"#": "0.t_dtensor", "D": [{"#": "0.t_f32"}, [2, 3], "NCHW", [], 0]}
    given = {"#": "1.data", "A": [named("name", "x")], "I": [], "O": [{"%": 1, "TT": kind}]}
    last = result if result is not None else operations[-1]["O"][0]["%"]
    fetched = {"#": "1.fetch", "A": [named("col", 0)], "I": [{"%": last}], "O": [{"%": 1 << 30, "TT": kind}]}
    block = {"#": "block_0", "args": [], "ops": [given, *operations, fetched]}
    base = {"magic": "pir", "trainable": True, "version": 4}
    return json.dumps({"base_code": base, "program": {"regions": [{"#": "region_0", "blocks": [block]}]}}).encode()


def named(name: str, value: Any) -> dict[str, Any]:
    return {"N": name, "AT": {"#": "0.a", "D": value}}


def op(name: str, inputs: Sequence[int], results: Sequence[int], **attributes: Any) -> dict[str, Any]:
    listed = [named(key, value) for key, value in attributes.items()]
    return {"#": f"1.{name}", "A": listed, "I": [{"%": i} for i in inputs], "O": [{"%": r} for r in results]}


# ---- older forms


W, V = weight("w.w_0", (3, 4)), weight("v", (4,))


def old_program() -> bytes:
    """A product, a sum along an axis, and a scale."""
    operations = [
        operation("mul", {"X": ["x"], "Y": ["w.w_0"]}, {"Out": ["a"]}, [integer("x_num_col_dims", 1), integer("y_num_col_dims", 1)]),
        operation("elementwise_add", {"X": ["a"], "Y": ["v"]}, {"Out": ["b"]}, [integer("axis", 1)]),
        operation("scale", {"X": ["b"]}, {"Out": ["y"]}, [real("scale", 2.0), real("bias", 1.0), truth("bias_after_scale", False)]),
    ]
    weights = [variable("w.w_0", W.shape, weight=True), variable("v", V.shape, weight=True)]
    return pdmodel([ONE, *weights], operations, ["x"], ["y"])


def checked(mod: relay.IRModule) -> None:
    x = RNG.normal(size=(2, 3)).astype("float32")
    same(results(mod, x)[0], (x @ W + V + 1) * 2)


def test_a_program_of_the_first_version_is_read() -> None:
    checked(import_paddle(old_program(), params=pdiparams({"w.w_0": W, "v": V})).module)
    checked(import_paddle(old_program(), params={"w.w_0": W, "v": V}).module)


@pytest.mark.parametrize(("name", "file"), [("__model__", "__params__"), ("__model__", ""), ("a.b.pdmodel", "a.b.pdiparams")])
def test_weights_are_found_beside_a_program(tmp_path: Path, name: str, file: str) -> None:
    (tmp_path / name).write_bytes(old_program())
    if file:
        (tmp_path / file).write_bytes(pdiparams({"w.w_0": W, "v": V}))
    else:
        (tmp_path / "w.w_0").write_bytes(tensor(W))
        (tmp_path / "v").write_bytes(tensor(V))
    checked(import_paddle(str(tmp_path / name)).module)
    mod, params = relay.frontend.from_paddle(str(tmp_path / name), {"x": (2, 3)})
    assert sorted(params) == ["v", "w.w_0"] and len(mod["main"].params) == 3


def test_a_second_operand_begins_at_an_axis() -> None:
    x, y = RNG.normal(size=(2, 3, 4)).astype("float32"), RNG.normal(size=(2, 3)).astype("float32")
    add = operation("elementwise_add", {"X": ["x"], "Y": ["y"]}, {"Out": ["z"]}, [integer("axis", 0)])
    mod = import_paddle(pdmodel([variable("x", x.shape), variable("y", y.shape)], [add], ["x", "y"], ["z"])).module
    same(results(mod, x, y)[0], x + y[:, :, None])


def test_other_older_operators() -> None:
    x = RNG.normal(size=(2, 3)).astype("float32")
    pads = integers("paddings", [1, 0, 0, 2]), text("mode", "constant"), real("pad_value", 1.0)
    mod = import_paddle(one("pad2d", *pads, shape=(1, 1, 2, 3))).module
    same(results(mod, x[None, None])[0][0, 0], np.pad(x, [(1, 0), (0, 2)], constant_values=1))
    same(results(import_paddle(one("flatten2", integer("axis", 0))).module, x)[0], x.reshape(1, 6))
    same(results(import_paddle(one("mean")).module, x)[0], x.mean().reshape(1))
    same(results(import_paddle(one("brelu", real("t_min", -0.5), real("t_max", 0.5))).module, x)[0], x.clip(-0.5, 0.5))
    ids = np.array([[2], [0]])
    look = operation("lookup_table", {"W": ["w.w_0"], "Ids": ["x"]}, {"Out": ["y"]}, [integer("padding_idx", 2)])
    both = [variable("x", ids.shape, "int64"), variable("w.w_0", W.shape, weight=True)]
    mod = import_paddle(pdmodel(both, [look], ["x"], ["y"]), params={"w.w_0": W}).module
    same(results(mod, ids)[0], np.stack([np.zeros(4, "float32"), W[0]]))


def test_an_operation_in_place_changes_its_operand() -> None:
    data = pir(op("full_int_array", [], [2], value=[1], dtype="int64"), op("increment_", [1], [3], value=2.0), op("add", [1, 3], [4]))
    x = RNG.normal(size=(2, 3)).astype("float32")
    same(results(import_paddle(data).module, x)[0], 2 * (x + 2))


def test_the_table_of_older_operators_names_conversions() -> None:
    known = set(table().names())
    assert [old for old, row in rows().items() if row.name not in known] == []


def test_inputs_take_shapes_and_values() -> None:
    data = pdmodel([variable("x", (-1, 3))], [operation("relu", {"X": ["x"]}, {"Out": ["y"]})], ["x"], ["y"])
    assert "Tensor[(?, 3), float32]" in import_paddle(data).module.astext()
    assert "Tensor[(4, 3), float32]" in import_paddle(data, Options({"x": (4, 3)})).module.astext()
    assert not import_paddle(data, Options(values={"x": np.ones((4, 3), "float32")})).module["main"].params
    for options, said in ((Options({"z": (1,)}), "has no input z"), (Options({"x": (1,)}), "has 2 axes, not 1")):
        refused(data, "R0804", said, options=options)


# ---- wrong files


def refused(data: bytes, code: str, said: str, params: Any = None, options: Options = Options()) -> RelayError:  # noqa: B008
    with pytest.raises(RelayError, match=said) as raised:
        import_paddle(data, options, "net.pdmodel", params)
    assert raised.value.diagnostics[0].code == code
    return raised.value


def test_unknown_operators_are_listed_at_once() -> None:
    chain = [operation(t, {"X": ["x"]}, {"Out": [f"y{i}"]}) for i, t in enumerate(("foo", "foo", "py_func", "softmox"))]
    wrong = refused(pdmodel([ONE], chain, ["x"], ["y0"]), "R0801", "4 layers of 3 operators cannot be converted")
    notes = " ".join(wrong.diagnostics[0].notes)
    assert "2 x foo" in notes and "first in y0" in notes and "did you mean softmax" in notes and "Python code" in notes
    data = pir(op("foo", [1], [2]), op("foo", [2], [3]), op("bar", [1], [4]))
    notes = " ".join(refused(data, "R0801", "3 layers of 2 operators cannot be converted").diagnostics[0].notes)
    assert "1 x bar" in notes and "2 x foo" in notes


def test_wrong_programs_have_a_diagnostic() -> None:
    refused(b"\n\5abc", "R0802", "cut short or damaged")
    refused(b"", "R0802", "it has no blocks")
    refused(b'{"base_code": {"magic": "pir"}, "program"', "R0802", "its JSON is wrong at character")
    refused(b'{"base_code": {"magic": "pir"}}', "R0802", "no field 'program' that fits")
    refused(b'{"a":' * 100_000, "R0802", "nested too deeply")
    refused(pdmodel([ONE], [], ["x"], []), "R0802", "no results")
    refused(pdmodel([ONE], [], ["gone"], ["x"]), "R0802", "its input 'gone' is no tensor")
    refused(
        pdmodel([ONE], [operation("relu", {"X": ["z"]}, {"Out": ["y"]})], ["x"], ["y"]),
        "R0805",
        "is no result of an operation before it",
    )
    refused(one("relu").replace(b"\x0a\x01X", b"\x0a\x01Z"), "R0805", "the operand 0 is missing")
    refused(
        pdmodel([ONE], [operation("relu", {"X": ["x"]}, {"Out": ["y"]})], ["x"], ["gone"]),
        "R0802",
        "its result 'gone' is not computed",
    )
    refused(one("softmax", integer("axis", 7)), "R0805", "names the axis 7")
    refused(one("softmax", text("axis", "a")), "R0805", "its attribute axis is 'a'")
    refused(one("reshape2", integers("shape", [7, -1])), "R0301", "reshape")
    refused(one("reshape2", integers("shape", [-1, -1])), "R0805", "its shape is")
    refused(one("transpose2", integers("axis", [0, 0])), "R0805", "its perm is")
    refused(
        one("pool2d", integers("ksize", [9, 9]), integers("strides", [0, 1]), shape=(1, 1, 4, 4)), "R0805", "must be numbers from 1 on"
    )
    refused(one("cast", integer("out_dtype", 99)), "R0805", "its element type is '99'")
    refused(one("while", part(1, "sub_block") + part(2, b"")), "R0802", "damaged|program")
    inner = part(1, "sub_block") + b"\x10\x08\x60\x00"
    refused(
        pdmodel([ONE], [operation("while", {"Condition": ["x"]}, {}, [inner])], ["x"], ["x"]),
        "R0802",
        "a block is inside of the block 0",
    )


def test_weights_that_do_not_fit_have_a_diagnostic() -> None:
    refused(old_program(), "R0802", "2 of its tensors are weights, and their file is missing")
    whole = pdiparams({"w.w_0": W, "v": V})
    refused(old_program(), "R0802", "3 bytes behind its 2 weights", whole + b"abc")
    refused(old_program(), "R0802", "the file of weights belongs|has the shape", pdiparams({"w.w_0": V, "v": W}))
    refused(old_program(), "R0802", "1 of its weights have no value", {"v": V})
    for end in range(0, len(whole), 7):
        refused(old_program(), "R0802", "cut short or damaged", whole[:end])
    claims = struct.pack("<IQIi", 0, 0, 0, 8) + b"\x08\x05\x10" + b"\xff" * 4 + b"\x7f" + whole
    refused(old_program(), "R0802", "damaged|left", claims)


def test_hostile_sizes_allocate_nothing() -> None:
    wide = integers("shape", [2_000_000_000] * 2)
    refused(one("fill_constant", wide, integer("dtype", 5), real("value", 1.0)), "R0016", "budget")
    refused(one("eye", integer("num_rows", 2_000_000_000), integer("dtype", 5)), "R0016", "budget")
    refused(one("assign_value", wide, integer("dtype", 5)), "R0805", "0 values")


def test_other_formats_are_none_of_paddlepaddle() -> None:
    for data in (b"def @main(%x: int32) { %x }", b"[net]\nheight=8\n", b"", b'{"nodes": [], "op": "inputs"}', b"\n\2\x08\0"):
        assert not is_paddle(data)
    assert is_paddle(old_program()) and is_paddle(pir(op("relu", [1], [2])))


@pytest.mark.parametrize(("form", "ending"), [("2", ".pdmodel"), ("3", ".json")])
def test_the_command_reads_a_program(tmp_path: Path, form: str, ending: str, capsys: pytest.CaptureFixture[str]) -> None:
    from tests.cli.command import relay as command

    program, weights = files(form, "lenet")
    (tmp_path / f"net{ending}").write_bytes(program)
    (tmp_path / "net.pdiparams").write_bytes(weights)
    done = command(capsys, "import", str(tmp_path / f"net{ending}"))
    assert done.status == 0 and "nn.conv2d" in done.out
    assert command(capsys, "check", str(tmp_path / f"net{ending}")).status == 0
    alone = command(capsys, "import", str(tmp_path / "net.pdiparams"))
    assert alone.status and ".pdiparams beside it" in alone.err


def test_partial_leaves_external_functions() -> None:
    chain = [
        operation("foo", {"X": ["x"], "Y": ["x"]}, {"Out": ["a"], "Mask": ["m"]}),
        operation("relu", {"X": ["a"]}, {"Out": ["y"]}),
    ]
    made = import_paddle(
        pdmodel([ONE, variable("a", (-1, 4)), variable("m", (2,), "bool")], chain, ["x"], ["y"]), Options(partial=True)
    )
    assert [d.severity for d in made.notes] == ["warning"] and "1 x foo" in " ".join(made.notes[0].notes)
    ty = type_text(made.module["extern_foo"].checked_type)
    assert ty == "fn (Tensor[(2, 3), float32], Tensor[(2, 3), float32]) -> (Tensor[(?, 4), float32], Tensor[(2), bool])"
    assert "@extern_foo(%x, %x)" in made.module.astext() and "nn.relu(%1)" in made.module.astext()
    data = pdmodel([ONE], chain, ["x"], ["y"])  # it states no type of the result
    refused(data, "R0801", "1 layer of 1 operator cannot be converted", options=Options(partial=True))
    kind = {"#": "0.t_dtensor", "D": [{"#": "0.t_f32"}, [5, -1], "NCHW", [], 0]}
    foo = op("foo", [1], [2])
    foo["O"][0]["TT"] = kind
    mod = import_paddle(pir(foo, op("relu", [2], [3])), Options(partial=True)).module
    assert type_text(mod["extern_foo"].checked_type) == "fn (Tensor[(2, 3), float32]) -> Tensor[(5, ?), float32]"
    refused(pir(op("foo", [1], [2]), op("relu", [2], [3])), "R0801", "1 layer of 1 operator", options=Options(partial=True))


def test_a_result_that_is_not_computed_is_named() -> None:
    ops = [
        operation("max_pool2d_with_index", {"X": ["x"]}, {"Out": ["p"], "Mask": ["m"]}, [integers("ksize", [2, 2])]),
        operation("cast", {"X": ["m"]}, {"Out": ["y"]}, [integer("out_dtype", 5)]),
    ]
    said = refused(pdmodel([variable("x", (1, 1, 4, 4))], ops, ["x"], ["y"]), "R0801", "1 layer of 1 operator")
    assert "its operand 'm' is a result that the importer does not compute" in " ".join(said.diagnostics[0].notes)
    said = refused(pdmodel([variable("x", (1, 1, 4, 4))], ops[:1], ["x"], ["m"]), "R0802", "its result 'm' is not computed")
    assert "does not compute this result" in " ".join(said.diagnostics[0].notes)


def test_a_branch_changes_what_is_around_it() -> None:
    def block(*operations: dict[str, Any]) -> dict[str, Any]:
        last = {"#": "2.yield", "A": [], "I": [], "O": []}
        return {"#": "region", "blocks": [{"#": "block", "args": [], "ops": [*operations, last]}]}

    start, test = op("scale", [1, 10], [2], bias=0.0, bias_after_scale=True), op("cast", [9], [3], dtype="bool")
    branch = op("if", [3], [])
    branch["regions"] = [block(op("increment_", [2], [20], value=1.0)), block(op("relu_", [2], [21]))]
    factor = op("full", [], [10], value=2.0, shape=[1], dtype="float32")
    data = pir(op("max", [1, 11], [9], keepdim=False), op("add", [2, 2], [4]))
    whole = json.loads(data)
    ops = whole["program"]["regions"][0]["blocks"][0]["ops"]
    ops[1:3] = [op("full_int_array", [], [11], value=[0, 1], dtype="int64"), factor, start, ops[1], test, branch, ops[2]]
    x = RNG.normal(size=(2, 3)).astype("float32")
    for sign in (1, -1):
        given = sign * np.abs(x)
        given = given if sign > 0 else given * 0
        wanted = 2 * (2 * given + 1) if given.max() else 2 * np.maximum(2 * given, 0)
        same(results(import_paddle(json.dumps(whole).encode()).module, given)[0], wanted)
