"""Networks of Darknet give what loops over numbers give; the same networks gave Darknet's own results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import relaylang as relay
from relaylang.diagnostics import RelayError
from relaylang.frontends.darknet import import_darknet
from relaylang.frontends.formats import import_file
from relaylang.frontends.options import Options
from relaylang.interpreter.evaluate import Evaluator
from relaylang.ir.structural import structural_equal
from relaylang.tvm.relay.testing.darknet import LAYERTYPE, __darknetffi__
from tests.frontends.darknet.networks import NETWORKS, conv, net, reference, weights_for


def operand(cfg: str) -> np.ndarray:
    numbers = dict(line.split("=") for line in cfg.splitlines()[2:5])
    shape = [1, *[int(numbers[k]) for k in ("channels", "height", "width")]]
    return np.random.default_rng(2).uniform(0, 1, shape).astype("float32")


def called(mod: relay.IRModule, *values: np.ndarray) -> list[np.ndarray]:
    found = Evaluator(mod).call("main", values)
    return [np.asarray(v) for v in found] if isinstance(found, tuple) else [np.asarray(found)]


def same(found: list[np.ndarray], wanted: list[np.ndarray]) -> None:
    assert len(found) == len(wanted)
    for f, w in zip(found, wanted):
        np.testing.assert_allclose(f.reshape(-1), w.reshape(-1), rtol=0, atol=1e-5 * max(np.abs(w).max(), 1e-3))


@pytest.mark.parametrize("revision", [0, 5])
@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_gives_what_the_loops_give(name: str, revision: int) -> None:
    cfg = NETWORKS[name]
    x = operand(cfg)
    weights, wanted = reference(cfg, x, revision if name != "yolo4" else 5)
    imported = import_darknet(cfg.encode(), weights=weights)
    assert relay.infer(imported.module, fresh=True) == [] and not imported.notes
    assert structural_equal(relay.parse(imported.module.astext()), imported.module)
    same(called(imported.module, x), wanted)


def test_the_weights_are_found_beside_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "net.cfg").write_text(NETWORKS["classes"])
    (tmp_path / "net.weights").write_bytes(weights_for(NETWORKS["classes"]))
    imported = import_file(str(tmp_path / "net.cfg"), Options(folder=str(tmp_path)))
    assert imported is not None and "nn.conv2d" in imported.module.astext(show_meta_data=False)
    (tmp_path / "net.weights").unlink()
    with pytest.raises(RelayError, match=r"its file of weights .*net.weights is missing"):
        import_darknet(str(tmp_path / "net.cfg"))


def test_from_darknet_has_the_results_of_tvm(tmp_path: Path) -> None:
    """The last result first, then mask, anchors and attributes; other boxes come after it with their own."""
    cfg = NETWORKS["yolo3"]
    x = operand(cfg)
    weights, wanted = reference(cfg, x)
    (tmp_path / "net.cfg").write_text(cfg)
    (tmp_path / "other.weights").write_bytes(weights)
    library = __darknetffi__.dlopen("libdarknet.so")
    network = library.load_network(str(tmp_path / "net.cfg").encode(), str(tmp_path / "other.weights").encode(), 0)
    assert (network.w, network.h, network.c) == (8, 8, 3) and network.layers[-1].type == LAYERTYPE.YOLO
    assert network.layers[network.n - 1].classes == 1
    mod, params = relay.frontend.from_darknet(network, dtype="float32", shape=x.shape)
    order = [p.name_hint for p in mod["main"].params]
    assert order[0] == "data" and set(order[1:]) == set(params)
    found = called(mod, x, *[params[n] for n in order[1:]])
    same([found[0], found[4]], wanted[::-1])
    assert [found[i].tolist() for i in (1, 5)] == [[0, 1, 2], [0, 1]] and found[2].tolist() == [10, 13, 16, 30, 33, 23]
    assert found[3].tolist() == [3, 18, 8, 8, 1, 3]


@pytest.mark.parametrize(
    ("cfg", "says"),
    [
        ("[net]\nheight=8\nwidth=8\n[convolutional\n", "line 4 begins a section"),
        ("filters=3\n", "line 1 is no entry"),
        ("[convolutional]\nfilters=3\n", "its first section is not"),
        ("[net]\n" + conv(3), "no height and width"),
        (net() + conv(3, s=0), "numbers from 1 on"),
        (net() + "[route]\nlayers=-1\n", "it names the layer -1"),
        (net() + "[route]\nlayers=3\n", "it names the layer 3"),
        (net() + conv(1 << 20, 31), "weights, and the weights has"),
        (net() + "[upsample]\nstride=1000000\n", "needs"),
        (net() + conv(3) + "[lstm]\noutput=3\n[gru]\noutput=3\n", "2 layers of 2 operators"),
        (net() + conv(3, a="norm_chan"), "its activation is norm_chan"),
        (net() + conv(7) + "[yolo]\nmask=0\nanchors=1,2\nclasses=80\nnum=1\n", "7 channels"),
    ],
)
def test_a_wrong_network_gets_a_diagnostic(cfg: str, says: str) -> None:
    with pytest.raises(RelayError) as wrong:
        import_darknet(cfg.encode(), weights=weights_for(NETWORKS["yolo3"]))
    assert any(says in text for d in wrong.value.diagnostics for text in (d.title, *d.notes)), wrong.value.diagnostics


def test_short_and_long_weights() -> None:
    cfg = NETWORKS["classes"]
    weights = weights_for(cfg)
    with pytest.raises(RelayError, match="more"):
        import_darknet(cfg.encode(), weights=weights[:-8])
    assert "2 numbers more" in import_darknet(cfg.encode(), weights=weights + bytes(8)).notes[0].title
    with pytest.raises(RelayError, match="no header"):
        import_darknet(cfg.encode(), weights=b"123")
