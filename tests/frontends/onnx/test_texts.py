"""Texts as rows of bytes, against onnxruntime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")

import onnx

from relaylang.diagnostics import RelayError
from relaylang.frontends.onnx.backend import run_model
from relaylang.frontends.onnx.importer import import_onnx
from relaylang.frontends.onnx.texts import decoded, encoded
from relaylang.frontends.options import Options
from relaylang.ir import ANY
from tests.frontends.onnx.models import node
from tests.frontends.onnx.runtime import theirs

ML = "ai.onnx.ml"
ROOM = 12
WORDS = np.array([["cat", "Dog", ""], ["ähre", "cat", "twelve bytes"]], object)


def model(
    nodes: Sequence[Any],
    inputs: Mapping[str, np.ndarray],
    outputs: Sequence[tuple[str, int]],
    weights: Mapping[str, Any] | None = None,
) -> bytes:
    """A model whose inputs of objects are texts. An output is a name and the number of its element type."""
    helper = onnx.helper
    kinds = {n: 8 if x.dtype == object else helper.np_dtype_to_tensor_dtype(x.dtype) for n, x in inputs.items()}
    given = [helper.make_tensor_value_info(n, kinds[n], x.shape) for n, x in inputs.items()]
    results = [helper.make_tensor_value_info(n, kind, None) for n, kind in outputs]
    tensors = [onnx.numpy_helper.from_array(np.asarray(w), n) for n, w in (weights or {}).items()]
    graph = helper.make_graph(list(nodes), "graph", given, results, tensors)
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid(ML, 3)], ir_version=10
    ).SerializeToString()


def check(
    nodes: Sequence[Any],
    inputs: Mapping[str, np.ndarray],
    outputs: Sequence[tuple[str, int]],
    weights: Mapping[str, Any] | None = None,
    devices: Sequence[str] = ("CPU", "CPU:1"),
) -> None:
    data = model(nodes, inputs, outputs, weights)
    wanted = theirs(data, inputs)
    shapes = {n: (*x.shape, ROOM) for n, x in inputs.items() if x.dtype == object}
    for device in devices:
        for one, other in zip(run_model(data, inputs, device, shapes=shapes), wanted, strict=True):
            assert one.shape == other.shape and one.dtype == other.dtype
            if other.dtype == object:
                assert one.tolist() == other.tolist()
            else:
                np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)


def test_codes() -> None:
    assert decoded(encoded(WORDS)).tolist() == WORDS.tolist()
    assert encoded("ab", 4).tolist() == [97, 98, 0, 0]
    for text, room in (("abc", 2), ("a\0", 8)):
        with pytest.raises(ValueError, match="a text has"):
            encoded(text, room)


@pytest.mark.parametrize(
    ("attrs", "kind"),
    [
        ({"keys_strings": ["cat", "ähre", "catalogue of all"], "values_int64s": [4, 5, 6], "default_int64": -2}, 7),
        ({"keys_strings": ["", "Dog"], "values_floats": [0.5, 1.5], "default_float": 9.0}, 1),
        ({"keys_strings": ["cat", "Dog"], "values_strings": ["a long text of many bytes", ""], "default_string": "?"}, 8),
    ],
)
def test_labels_of_texts(attrs: dict[str, Any], kind: int) -> None:
    check([node("LabelEncoder", ["x"], domain=ML, **attrs)], {"x": WORDS}, [("y", kind)])


def test_labels_that_are_texts() -> None:
    x = np.array([3, 1, 7], "int64")
    attrs = {"keys_int64s": [1, 3], "values_strings": ["one", "three"]}
    check([node("LabelEncoder", ["x"], domain=ML, **attrs)], {"x": x}, [("y", 8)])


@pytest.mark.parametrize("texts", [True, False])
def test_categories(texts: bool) -> None:
    attrs = {"cats_strings": ["cat", "Dog", ""], "cats_int64s": [7, 8, 9]}
    x = WORDS if texts else np.array([[7, 1], [9, 8]], "int64")
    check([node("CategoryMapper", ["x"], domain=ML, **attrs)], {"x": x}, [("y", 7 if texts else 8)])


def test_one_hot() -> None:
    check([node("OneHotEncoder", ["x"], domain=ML, cats_strings=["Dog", "cat"], zeros=1)], {"x": WORDS}, [("y", 1)])


def test_concatenation_broadcasts() -> None:
    y = np.array(["", "!", "ß and more"], object)
    check([node("StringConcat", ["x", "w"])], {"x": WORDS, "w": y}, [("y", 8)])


@pytest.mark.parametrize("change", ["NONE", "LOWER", "UPPER"])
@pytest.mark.parametrize("sensitive", [0, 1])
@pytest.mark.parametrize("stops", [[], ["CAT", "Dog"], ["dog", "cat", ""]])
def test_normal_forms(change: str, sensitive: int, stops: list[str]) -> None:
    """The number of texts that are left is not known, so that compiled code has no form of it."""
    attrs = {"case_change_action": change, "is_case_sensitive": sensitive, "locale": "C", **({"stopwords": stops} if stops else {})}
    for x in (WORDS[0], WORDS[:1]):
        check([node("StringNormalizer", ["x"], **attrs)], {"x": x}, [("y", 8)], devices=["CPU"])


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
@pytest.mark.parametrize("sizes", [(1, 1, 0), (2, 2, 0), (2, 2, 3), (1, 2, 1), (1, 3, 1), (3, 3, 9)])
@pytest.mark.parametrize("texts", [False, True])
def test_counts_of_sequences(mode: str, sizes: tuple[int, int, int], texts: bool) -> None:
    rng = np.random.default_rng(5)
    pool = [2, 3, 5, 4, 3, 4, 5, 2, 5, 5, 2, 3, 4]  # three words, two pairs, two of three
    x: Any = rng.integers(1, 6, (2, 9))
    names = np.array(["", "a", "bé", "ccc", "dd", "e"], object)
    least, most, skips = sizes
    attrs: dict[str, Any] = {
        "mode": mode, "min_gram_length": least, "max_gram_length": most, "max_skip_count": skips,
        "ngram_counts": [0, 3, 7], "ngram_indexes": [6, 1, 0, 2, 5, 3, 4], "weights": [2.0, 0.5, 3.0, 1.5, 4.0, 0.25, 7.0],
    }  # fmt: skip
    attrs["pool_strings" if texts else "pool_int64s"] = names[pool].tolist() if texts else pool
    for given in (x, x[0]):
        devices = ("CPU", "CPU:1") if (mode, sizes) == ("TFIDF", (1, 3, 1)) else ("CPU",)
        check([node("TfIdfVectorizer", ["x"], **attrs)], {"x": names[given] if texts else given}, [("y", 1)], devices=devices)


def test_what_moves_elements_moves_texts() -> None:
    nodes = [
        node("Concat", ["x", "w"], ["all"], axis=0),
        node("Transpose", ["all"], ["turned"]),
        node("Reshape", ["turned", "shape"], ["flat"]),
        node("Gather", ["flat", "places"], ["some"]),
        node("Equal", ["some", "same"], ["z"]),
        node("Shape", ["all"], ["extents"]),
        node("ArrayFeatureExtractor", ["all", "columns"], ["y"], domain=ML),
    ]
    weights = {"shape": np.array([-1]), "places": np.array([[0, 5], [8, 2]]), "same": np.array(["cat", "x"], object)}
    weights |= {"columns": np.array([2, 0]), "w": np.array([["other", "a text that is longer", "x"]], object)}
    check(nodes, {"x": WORDS}, [("y", 8), ("some", 8), ("z", 9), ("extents", 7)], weights)


def test_a_classifier_of_texts() -> None:
    x, size = WORDS[:, :1], np.array([[0.5], [2.0]], "float32")
    nodes = [
        node("OneHotEncoder", ["x"], ["hot"], domain=ML, cats_strings=["cat", "ähre"], zeros=1),
        node("Reshape", ["hot", "shape"], ["columns"]),
        node("FeatureVectorizer", ["columns", "size"], ["features"], domain=ML, inputdimensions=[2, 1]),
        node(
            "LinearClassifier", ["features"], ["y", "z"], domain=ML, classlabels_strings=["no", "perhaps", "yes"],
            coefficients=[1.0, -1, 0.5, 2, 0.1, -3, 0, 0, 1], intercepts=[0.1, 0.2, 0.3], post_transform="SOFTMAX",
        ),
    ]  # fmt: skip
    check(nodes, {"x": x, "size": size}, [("y", 8), ("z", 1)], {"shape": np.array([2, 2])})
    data = model([*nodes, node("ZipMap", ["z"], ["map"], domain=ML, classlabels_strings=["no", "perhaps", "yes"])],
                 {"x": x, "size": size}, [("map", 1)], {"shape": np.array([2, 2])})  # fmt: skip
    (scores,) = run_model(data, {"x": x, "size": size}, shapes={"x": (2, 1, ROOM)})
    assert scores.shape == (2, 3) and np.allclose(scores.sum(1), 1)


@pytest.mark.parametrize("ids", [[0, 2], [0, 0]])
def test_trees_with_texts_as_classes(ids: list[int]) -> None:
    attrs: dict[str, Any] = {
        "nodes_treeids": [0, 0, 0], "nodes_nodeids": [0, 1, 2], "nodes_featureids": [0, 0, 0], "nodes_values": [0.5, 0.0, 0.0],
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"], "nodes_truenodeids": [1, 0, 0], "nodes_falsenodeids": [2, 0, 0],
        "class_treeids": [0, 0], "class_nodeids": [1, 2], "class_weights": [0.3, 0.9], "post_transform": "NONE",
        "classlabels_strings": ["small", "large", "none"][: max(ids) + 1 if max(ids) else 2],
    }  # fmt: skip
    layer = node("TreeEnsembleClassifier", ["x"], ["y", "z"], domain=ML, class_ids=ids, **attrs)
    check([layer], {"x": np.array([[0.1], [0.9]], "float32")}, [("y", 8), ("z", 1)])


def test_constants_and_values() -> None:
    """A value for an input is a constant; texts of the model fit it."""
    nodes = [node("Constant", [], ["c"], value_strings=["a", "bc"]), node("StringConcat", ["x", "c"])]
    data = model(nodes, {"x": WORDS[:1, :2]}, [("y", 8)])
    (found,) = run_model(data, {"x": WORDS[:1, :2]})
    assert found.tolist() == [["cata", "Dogbc"]]


def test_open_extents() -> None:
    nodes = [node("Transpose", ["x"], ["t"]), node("LabelEncoder", ["t"], domain=ML, keys_strings=["cat"], values_int64s=[1])]
    data = model(nodes, {"x": WORDS}, [("y", 7)])
    (result,) = run_model(data, {"x": WORDS}, shapes={"x": (ANY, 3, ROOM)})
    assert result.tolist() == [[1, -1], [-1, 1], [-1, -1]]


@pytest.mark.parametrize(
    ("layer", "code", "words"),
    [
        (node("Add", ["x", "x"]), "R0801", "operands are texts"),
        (node("StringSplit", ["x"], ["y", "n"]), "R0801", "depends on the text"),
        (node("Cast", ["x"], to=1), "R0801", "texts no numbers"),
        (node("LabelEncoder", ["x"], domain=ML, keys_int64s=[1], values_int64s=[1]), "R0805", "keys are numbers"),
        (node("OneHotEncoder", ["x"], domain=ML, cats_int64s=[1]), "R0805", "categories are numbers"),
        (node("LabelEncoder", ["x"], domain=ML, keys_strings=["a"], values_int64s=[1, 2]), "R0805", "1 keys and 2 values"),
        (node("LabelEncoder", ["x"], domain=ML, keys_strings=["a\0b"], values_int64s=[1]), "R0805", "character 0"),
        (node("TfIdfVectorizer", ["x"], mode="TF", min_gram_length=1, max_gram_length=1, max_skip_count=0, ngram_counts=[0],
              ngram_indexes=[0, 1], pool_strings=["a"]), "R0805", "1 sequences"),
    ],
)  # fmt: skip
def test_what_does_not_fit(layer: Any, code: str, words: str) -> None:
    data = model([layer], {"x": WORDS}, [("y", 1)])
    with pytest.raises(RelayError, match=words) as wrong:
        import_onnx(data, Options(shapes={"x": (2, 3, ROOM)}))
    assert wrong.value.diagnostics[0].code == code


def test_an_input_needs_room() -> None:
    data = model([node("Identity", ["x"])], {"x": WORDS}, [("y", 8)])
    with pytest.raises(RelayError, match="--shape x=2x3x16") as wrong:
        import_onnx(data)
    assert wrong.value.diagnostics[0].code == "R0804"
    with pytest.raises(RelayError, match="uint8"):
        import_onnx(data, Options(shapes={"x": (2, 3, 8)}, dtypes={"x": "int32"}))


@pytest.mark.parametrize("wanted", [True, False])
def test_branches_give_texts(wanted: bool) -> None:
    helper = onnx.helper

    def branch(name: str, nodes: Sequence[Any]) -> Any:
        outputs = [helper.make_tensor_value_info(f"{name}_{kind}", 0, None) for kind in ("texts", "numbers")]
        outputs[0].type.tensor_type.elem_type, outputs[1].type.tensor_type.elem_type = 8, 1
        return helper.make_graph(list(nodes), name, [], outputs)

    then = branch("then", [node("StringConcat", ["x", "x"], ["then_texts"]), node("Identity", ["r"], ["then_numbers"])])
    other = branch("other", [node("Identity", ["x"], ["other_texts"]), node("Neg", ["r"], ["other_numbers"])])
    chosen = helper.make_node("If", ["c"], ["t", "q"], then_branch=then, else_branch=other)
    inputs = {"x": WORDS, "c": np.array(wanted), "r": np.ones(2, "float32")}
    check([chosen, node("StringConcat", ["t", "x"], ["y"])], inputs, [("y", 8), ("q", 1)])


def _graph(nodes: Sequence[Any], inputs: Sequence[tuple[str, int, Any]], outputs: Sequence[tuple[str, int, Any]]) -> Any:
    """The graph of a loop. An end is a name, the number of its element type, and its shape."""
    ends = [[onnx.helper.make_tensor_value_info(*end) for end in side] for side in (inputs, outputs)]
    return onnx.helper.make_graph(list(nodes), "body", *ends)


def _loop(*nodes: Any, rows: bool = True) -> Any:
    """A loop of the texts `x` over `count` turns: `nodes` make u of t, which are the rows, too."""
    outputs = [("go", 9, []), ("u", 8, [2, 3]), *([("row", 8, [2, 3])] if rows else [])]
    steps = [node("Identity", ["on"], ["go"]), *nodes, *([node("Identity", ["u"], ["row"])] if rows else [])]
    body = _graph(steps, [("i", 7, []), ("on", 9, []), ("t", 8, [2, 3])], outputs)
    return onnx.helper.make_node("Loop", ["count", "", "x"], ["y", *(["all"] if rows else [])], body=body)


#: Each turn drops the first row, and appends one whose texts are longer than the room of the input.
LONGER = (node("Gather", ["t", "second"], ["w"], axis=0), node("Concat", ["w", "long"], ["u"], axis=0))
TABLE = {"long": np.array([["a much longer text", "", "é"]], object), "second": np.array([1])}


@pytest.mark.parametrize("count", [0, 1, 3, 12])
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("device", ["CPU", "CPU:1"])
def test_loops_carry_and_stack_texts(count: int, known: bool, device: str) -> None:
    """Against the definition: onnxruntime's Gather loses all texts of a row but the first."""
    turns = {"count": np.array(count)}
    weights, inputs = ({**TABLE, **turns}, {"x": WORDS}) if known else (TABLE, {"x": WORDS, **turns})
    last, stacked = run_model(
        model([_loop(*LONGER)], inputs, [("y", 8), ("all", 8)], weights), inputs, device, shapes={"x": (2, 3, ROOM)}
    )
    state, rows = WORDS, []
    for _ in range(count):
        state = np.concatenate([state[1:], TABLE["long"]])
        rows.append(state)
    assert last.tolist() == state.tolist()
    assert stacked.shape == (count, 2, 3) and stacked.tolist() == [row.tolist() for row in rows]


def test_texts_grow_in_loops_that_are_written_out() -> None:
    check([_loop(node("StringConcat", ["t", "t"], ["u"]))], {"x": WORDS}, [("y", 8), ("all", 8)], {"count": np.array(3)})


def test_texts_do_not_grow_in_other_loops() -> None:
    loop = _loop(node("StringConcat", ["t", "t"], ["u"]), rows=False)
    data = model([loop], {"count": np.array(2), "x": WORDS}, [("y", 8)])
    with pytest.raises(RelayError, match="its texts grow from turn to turn"):
        import_onnx(data, Options(shapes={"x": (2, 3, ROOM)}))


@pytest.mark.parametrize("rows", [3, 11])
def test_scans_over_texts(rows: int) -> None:
    """The state is the last row; a row of numbers goes with each row of texts."""
    steps = [
        node("Identity", ["v"], ["last"]),
        node("StringConcat", ["v", "mark"], ["marked"]),
        node("Equal", ["s", "v"], ["same"]),
    ]
    body = _graph(steps, [("s", 8, [2]), ("v", 8, [2])], [("last", 8, [2]), ("marked", 8, [2]), ("same", 9, [2])])
    scan = node("Scan", ["start", "x"], ["end", "y", "z"], body=body, num_scan_inputs=1, scan_input_axes=[1], scan_output_axes=[-1, 0])
    words = np.array([[f"w{i // 2}" for i in range(rows)], ["ö"] * rows], object)
    weights = {"mark": np.array("!", object), "start": np.array(["w0", ""], object)}
    check([scan], {"x": words}, [("end", 8), ("y", 8), ("z", 9)], weights)
