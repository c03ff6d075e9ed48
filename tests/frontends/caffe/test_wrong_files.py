"""Old files, damaged files, and networks that are wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from relaylang.diagnostics import RelayError
from relaylang.frontends.caffe import import_caffe
from relaylang.frontends.contents import is_caffe
from relaylang.frontends.formats import format_of
from relaylang.frontends.options import Options
from relaylang.ir import type_text
from tests.frontends.caffe.networks import NETWORKS, blob, caffemodel, number, part, prototxt
from tests.frontends.caffe.test_networks import results, same

INPUT = 'layer { name: "in" type: "Input" top: "data" input_param { shape { dim: 1 dim: 3 dim: 8 dim: 8 } } }\n'


def layer(type: str, params: str = "", bottom: str = "data", top: str = "y", name: str = "l") -> str:
    return f'layer {{ name: "{name}" type: "{type}" bottom: "{bottom}" top: "{top}" {params} }}\n'


RNG = np.random.default_rng(1)
KERNEL, SHIFT = RNG.normal(size=(4, 3, 3, 3)).astype("<f4"), RNG.normal(size=4).astype("<f4")
DENSE = RNG.normal(size=(5, 36)).astype("<f4")


def wanted(x: np.ndarray) -> np.ndarray:
    """A convolution with padding and stride 2, ReLU, a pool, a product and shares."""
    padded = np.pad(x.astype("float64"), ((0, 0), (0, 0), (1, 1), (1, 1)))
    made = np.zeros((1, 4, 4, 4))
    for f, i, j in np.ndindex(4, 4, 4):
        made[0, f, i, j] = (padded[0, :, 2 * i : 2 * i + 3, 2 * j : 2 * j + 3] * KERNEL[f]).sum() + SHIFT[f]
    made = np.maximum(made, 0)
    pooled = np.stack([made[:, :, i : i + 2, j : j + 2].max((2, 3)) for i in range(3) for j in range(3)], 2)
    scores = pooled.reshape(1, 36) @ DENSE.T
    return np.asarray(np.exp(scores) / np.exp(scores).sum())


SECOND = """name: "net" input: "data" input_dim: 1 input_dim: 3 input_dim: 8 input_dim: 8
layers { name: "c" type: CONVOLUTION bottom: "data" top: "c" convolution_param { num_output: 4 kernel_size: 3 pad: 1 stride: 2 } }
layers { name: "r" type: RELU bottom: "c" top: "c" }
layers { name: "p" type: POOLING bottom: "c" top: "p" pooling_param { kernel_size: 2 stride: 1 } }
layers { name: "d" type: INNER_PRODUCT bottom: "p" top: "d" inner_product_param { num_output: 5 bias_term: false } }
layers { name: "s" type: SOFTMAX_LOSS bottom: "d" bottom: "label" top: "s" }
"""
FIRST = """name: "net" input: "data" input_dim: 1 input_dim: 3 input_dim: 8 input_dim: 8
layers { layer { name: "pad" type: "padding" pad: 1 } bottom: "data" top: "pad" }
layers { layer { name: "c" type: "conv" num_output: 4 kernelsize: 3 stride: 2 } bottom: "pad" top: "c" }
layers { layer { name: "r" type: "relu" } bottom: "c" top: "c" }
layers { layer { name: "p" type: "pool" kernelsize: 2 } bottom: "c" top: "p" }
layers { layer { name: "d" type: "innerproduct" num_output: 5 biasterm: false } bottom: "p" top: "d" }
layers { layer { name: "s" type: "softmax" } bottom: "d" top: "s" }
"""


def old_weights(first: bool) -> bytes:
    """Weights in layers of the first form, or of the second."""
    made = part(1, "net")
    for name, kind, arrays in (("c", 4, [KERNEL, SHIFT]), ("d", 14, [DENSE])):
        if first:
            inner = (
                part(1, name)
                + part(2, "conv" if kind == 4 else "innerproduct")
                + b"".join(part(50, blob(a, "legacy")) for a in arrays)
            )
            made += part(2, part(1, inner))
        else:
            made += part(2, part(4, name) + number(5, kind) + b"".join(part(6, blob(a, "legacy")) for a in arrays))
    return made


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("first_weights", [True, False])
def test_old_forms_are_read(first: bool, first_weights: bool) -> None:
    text, data = (FIRST if first else SECOND), old_weights(first_weights)
    assert format_of(text.encode()).name == format_of(data).name == "caffe"  # type: ignore[union-attr]
    mod = import_caffe(text.encode(), weights_of=data).module
    x = RNG.normal(size=(1, 3, 8, 8)).astype("float32")
    same(results(mod, x)[0], wanted(x))


def test_rules_select_the_layers_of_the_phase() -> None:
    text = (
        INPUT
        + layer("ReLU", "include { phase: TRAIN }")
        + layer("Sigmoid", 'include { phase: TEST not_stage: "deploy" }')
        + layer("TanH", "exclude { phase: TEST }")
        + layer("AbsVal", "include { min_level: 1 }")
        + layer("Accuracy", "", "y", "accuracy")
        + 'layer { name: "t" type: "Data" top: "x" top: "label" data_param { batch_size: 4 } }'
        + 'layer { name: "loss" type: "EuclideanLoss" bottom: "y" bottom: "label" top: "loss" }'
    )
    text_of = import_caffe(text.encode()).module.astext(show_meta_data=False)
    assert "sigmoid(%data)" in text_of and text_of.count("%data") == 2 and "label" not in text_of
    chosen = import_caffe(('state { level: 1 stage: "deploy" } ' + text).encode()).module
    assert "abs(%data)" in chosen.astext(show_meta_data=False)


def test_inputs_of_databases_need_shapes() -> None:
    text = 'layer { name: "d" type: "Data" top: "data" top: "label" }\n' + layer("ReLU")
    with pytest.raises(RelayError, match=r"the shape of the input data is not known") as raised:
        import_caffe(text.encode())
    assert raised.value.diagnostics[0].code == "R0804"
    mod = import_caffe(text.encode(), Options({"data": (2, 3)})).module
    assert len(mod["main"].params) == 1
    made = import_caffe(text.encode(), Options(values={"data": np.ones((2, 3), "float32")}, shapes={"data": (2, 3)})).module
    assert not made["main"].params


def refused(text: str, code: str, said: str, weights: bytes | None = None) -> RelayError:
    with pytest.raises(RelayError, match=said) as raised:
        import_caffe(text.encode(), Options(), "net.prototxt", weights)
    assert raised.value.diagnostics[0].code == code
    return raised.value


def test_unknown_layers_are_listed_at_once() -> None:
    body = layer("Foo", "", "data", "a", "one") + layer("Foo", "", "a", "b", "two") + layer("Softmx", "", "data", "c", "three")
    wrong = refused(INPUT + body + layer("Python", "", "c", "d", "four"), "R0801", "4 layers of 3 operators cannot be converted")
    notes = " ".join(wrong.diagnostics[0].notes)
    assert "2 x Foo" in notes and "first in one" in notes and "did you mean Softmax" in notes and "Python code" in notes


def test_wrong_networks_have_a_diagnostic() -> None:
    conv = "convolution_param { num_output: 4 kernel_size: 3 }"
    refused(INPUT + layer("ReLU").replace("}", ""), "R0802", "the network is wrong in line")
    refused("layer {}", "R0801", "cannot be converted")
    refused(INPUT, "R0802", "no layers that give a result")
    refused(INPUT + layer("ReLU", "", "gone"), "R0805", "its operand 'gone' is no result of a layer before it")
    refused(INPUT + layer("ReLU", "", "z", "y") + layer("ReLU", "", "y", "z"), "R0805", "no result of a layer before it")
    refused(INPUT + layer("ReLU") + layer("TanH"), "R0805", "is that of another layer, too")
    refused(INPUT + layer("Convolution", conv), "R0802", "1 of its layers has weights, and their file is missing")
    other = part(1, "net") + part(100, part(1, "other") + part(2, "X") + part(7, blob(SHIFT)))
    refused(INPUT + layer("Convolution", conv), "R0805", "its weight is not in the file of weights", other)
    small = part(1, "net") + part(100, part(1, "l") + part(2, "X") + part(7, blob(SHIFT)))
    refused(INPUT + layer("Convolution", conv), "R0805", "has 4 elements in the file of weights", small)
    odd = part(1, "net") + part(100, part(1, "l") + part(2, "X") + part(7, part(5, b"12345")))
    refused(INPUT + layer("Convolution", conv), "R0805", "no whole number of elements", odd)
    refused(INPUT + layer("Pooling", "pooling_param { kernel_size: 9 }"), "R0805", "does not fit 8 places")
    refused(INPUT + layer("Pooling", "pooling_param { kernel_size: 3 stride: 0 }"), "R0805", "must be numbers from 1 on")
    refused(INPUT + layer("Softmax", "softmax_param { axis: 7 }"), "R0805", "names the axis 7")
    refused(INPUT + layer("Slice", "slice_param { slice_point: 9 }"), "R0805", "do not part")
    refused(INPUT + layer("Reshape", "reshape_param { shape { dim: 7 dim: -1 } }"), "R0805", "do not fit")
    refused(INPUT + layer("Crop", "") + "", "R0805", "the operand 1 is missing")
    for type in ("AbsVal", "BNLL", "ELU", "Sigmoid", "Swish", "TanH", "ReLU6", "Dropout", "Split"):
        refused(INPUT + layer(type).replace('bottom: "data"', ""), "R0805", "the operand 0 is missing")
    refused(INPUT + layer("PriorBox", "prior_box_param { img_size: 8 }"), "R0805", "its sizes are")
    refused(INPUT.replace("dim: 8", "dim: -8"), "R0802", "has the shape")


def test_hostile_sizes_allocate_nothing() -> None:
    huge = INPUT.replace("dim: 8", "dim: 60000")
    refused(huge + layer("PriorBox", "prior_box_param { min_size: 3 img_size: 8 }"), "R0016", "budget")
    shape = "dummy_data_param { shape { dim: 9999999 dim: 9999999 } }"
    refused(layer("DummyData", shape).replace('bottom: "data"', ""), "R0016", "budget")
    refused(INPUT + layer("SPP", "spp_param { pyramid_height: 4000000000 }"), "R0805", "4000000000 levels")
    refused(INPUT + layer("PReLU", "prelu_param { channel_shared: true }"), "R0802", "weights")
    claims = part(1, "net") + part(100, part(1, "l") + part(2, "X") + part(7, part(7, number(1, 1 << 40)) + part(5, b"\0" * 8)))
    refused(INPUT + layer("PReLU", "prelu_param { channel_shared: true }"), "R0805", "2 elements", claims)


def test_a_file_of_weights_cut_anywhere_is_damaged_or_lacks_weights() -> None:
    net = NETWORKS["lenet"]()
    text, data = prototxt(net).encode(), caffemodel(net)
    for end in range(0, len(data), 997):
        with pytest.raises(RelayError) as raised:
            import_caffe(text, weights_of=data[:end])
        assert {d.code for d in raised.value.diagnostics} <= {"R0802", "R0805"}, end


def test_other_formats_are_none_of_caffe() -> None:
    for text in (
        b"def @main(%x: int32) { %x }",
        b'node { name: "x" op: "Const" }',
        b"[net]\nheight=8\n",
        b"",
        b'name: "x"\nother: 3\n',
    ):
        assert not is_caffe(text)
    assert is_caffe(caffemodel(NETWORKS["lenet"]()))


def test_the_command_reads_a_network(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from tests.cli.command import relay

    net = NETWORKS["lenet"]()
    (tmp_path / "net.prototxt").write_text(prototxt(net))
    (tmp_path / "net.caffemodel").write_bytes(caffemodel(net))
    done = relay(capsys, "import", str(tmp_path / "net.prototxt"))
    assert done.status == 0 and "nn.conv2d" in done.out
    assert relay(capsys, "check", str(tmp_path / "net.caffemodel")).status == 0
    (tmp_path / "net.caffemodel").unlink()
    done = relay(capsys, "import", str(tmp_path / "net.prototxt"))
    assert done.status and "their file is missing" in done.err


def test_partial_leaves_external_functions_for_layers_in_place() -> None:
    data = INPUT + layer("Mine", top="data") + layer("ReLU", top="y", name="r")
    made = import_caffe(data.encode(), Options(partial=True))
    assert [d.severity for d in made.notes] == ["warning"] and "1 x Mine" in " ".join(made.notes[0].notes)
    assert type_text(made.module["extern_Mine"].checked_type) == "fn (Tensor[(1, 3, 8, 8), float32]) -> Tensor[(1, 3, 8, 8), float32]"
    assert "@extern_Mine(%data)" in made.module.astext()
    with pytest.raises(RelayError, match="1 layer of 1 operator cannot be converted"):
        import_caffe((INPUT + layer("Mine") + layer("ReLU", bottom="y", top="z", name="r")).encode(), Options(partial=True))
