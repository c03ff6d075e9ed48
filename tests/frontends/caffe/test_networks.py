"""Networks of Caffe give what OpenCV computes for them; scripts/caffe_results.py records it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import relaylang as relay
from relaylang.frontends.caffe import import_caffe
from relaylang.frontends.formats import format_of, import_file
from relaylang.frontends.options import Options
from relaylang.interpreter.evaluate import Evaluator
from relaylang.ir.structural import structural_equal
from tests.frontends.caffe.networks import NETWORKS, Net, caffemodel, operands, prototxt

DATA = Path(__file__).parent / "data" / "recorded.npz"


@cache
def recorded() -> dict[str, np.ndarray]:
    with np.load(DATA) as found:
        return dict(found)


def results(mod: relay.IRModule, *values: np.ndarray) -> list[np.ndarray]:
    found = Evaluator(mod).call("main", values)
    return [np.asarray(v) for v in found] if isinstance(found, tuple) else [np.asarray(found)]


def imported(net: Net, form: str = "packed", options: Options | None = None) -> relay.IRModule:
    made = import_caffe(prototxt(net).encode(), options or Options(), "net.prototxt", caffemodel(net, form))
    assert not made.notes
    return made.module


def same(found: np.ndarray, wanted: np.ndarray, tolerance: float = 1e-5) -> None:
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance * max(np.abs(wanted).max(initial=0), 1e-30))


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_gives_what_opencv_gives(name: str) -> None:
    net = NETWORKS[name]()
    mod = imported(net)
    assert relay.infer(mod, fresh=True) == []
    assert structural_equal(relay.parse(mod.astext()), mod)
    (found,) = results(mod, *operands(net))
    wanted = recorded()[f"{name}_0"]
    if name == "ssd":  # OpenCV orders the boxes by their scores. Caffe orders them by their classes first.
        assert (np.diff(found[0, 0, :, 1]) >= 0).all()
        found = found[:, :, np.argsort(-found[0, 0, :, 2], kind="stable")]
    same(found, wanted)


@pytest.mark.parametrize("form", ["legacy", "single", "double", "half"])
def test_weights_of_every_form_are_read(form: str) -> None:
    net = NETWORKS["lenet"]()
    (found,) = results(imported(net, form), *operands(net))
    same(found, recorded()["lenet_0"], 2e-3 if form == "half" else 1e-5)


def test_the_files_are_found_beside_each_other(tmp_path: Path) -> None:
    net = NETWORKS["lenet"]()
    text, model = tmp_path / "deploy.prototxt", tmp_path / "net.caffemodel"
    text.write_text(prototxt(net, old=True))
    with pytest.raises(relay.RelayError, match=r"4 of its layers have weights, and their file is missing"):
        import_caffe(text)
    model.write_bytes(caffemodel(net))
    want = recorded()["lenet_0"]
    assert format_of(text.read_bytes()).name == format_of(model.read_bytes()).name == "caffe"  # type: ignore[union-attr]
    for made in (
        import_file(str(text), Options(folder=str(tmp_path))),
        import_caffe(text),
        import_caffe(text, Options(weights=str(model))),
    ):
        assert made is not None
        same(results(made.module, *operands(net))[0], want)
    (tmp_path / "other.caffemodel").write_bytes(b"")
    with pytest.raises(relay.RelayError, match=r"is missing"):  # Two files have the ending.
        import_caffe(text)
    text.rename(tmp_path / "net.prototxt")
    same(results(import_caffe(model).module, *operands(net))[0], want)  # The network beside a file of weights counts.


def test_from_caffe_has_the_signature_of_tvm(tmp_path: Path) -> None:
    net = NETWORKS["resnet"]()
    (tmp_path / "a.prototxt").write_text(prototxt(net))
    (tmp_path / "b.caffemodel").write_bytes(caffemodel(net))
    mod, params = relay.frontend.from_caffe(str(tmp_path / "b.caffemodel"), str(tmp_path / "a.prototxt"), {"data": (1, 3, 16, 16)}, {})
    assert [str(d) for d in mod["main"].params[0].checked_type.shape] == ["1", "3", "16", "16"]
    assert len(mod["main"].params) == len(params) + 1 and "innerproduct26_weight" in params
    x = operands(net)[0][:1]
    same(results(mod, x, *params.values())[0], recorded()["resnet_0"][:1])

    class Message:
        """What Caffe's own package gives."""

        def __init__(self, data: bytes) -> None:
            self.data = data

        def SerializeToString(self) -> bytes:
            return self.data

    both = relay.frontend.from_caffe(Message(caffemodel(net)), Message(prototxt(net).encode()), {"data": (1, 3, 16, 16)}, {})
    assert structural_equal(both[0], mod)


def test_the_batch_may_be_open() -> None:
    from relaylang.ir import ANY

    for name in ("lenet", "densenet", "activations"):
        net = NETWORKS[name]()
        shape = (ANY, *net.inputs["data"][1:])
        mod = imported(net, options=Options({"data": shape}))
        same(results(mod, *operands(net))[0], recorded()[f"{name}_0"])


def test_a_scale_becomes_part_of_the_normalisation() -> None:
    text = imported(NETWORKS["resnet"]()).astext(show_meta_data=False)
    assert text.count("nn.batch_norm(") == 6 and "multiply(" not in text
