"""Networks of model zoos with random weights against their frameworks' results.

They agree to 1e-5 of the largest value. EfficientNetV2S amplifies errors of rounding: Keras's own result moves by 9e-4 when its
input moves by one unit in the last place. It may differ by twice that.

`scripts/mxnet_results.py --zoo $RELAY_ZOO/mxnet` and `scripts/keras_networks.py --applications $RELAY_ZOO/keras` write them.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from relaylang.frontends.formats import import_file
from relaylang.frontends.options import Options
from relaylang.interpreter.evaluate import Evaluator

FOLDER = Path(os.environ.get("RELAY_ZOO", ""))
pytestmark = [
    pytest.mark.sweep,
    pytest.mark.skipif("RELAY_ZOO" not in os.environ, reason="RELAY_ZOO names no folder of networks"),
]
#: Networks that may differ by twice of what their framework's result does for another input, one unit in the last place away.
AMPLIFYING = ("EfficientNetV2S",)
#: The files of a network beside NAME.npz, by the folder.
ENDINGS = {"mxnet": ("-symbol.json",), "keras": (".keras", ".h5")}
FILES = [
    pytest.param(path, path.with_name(path.stem + ending), id=f"{kind}-{path.stem}{ending}")
    for kind, endings in ENDINGS.items()
    for path in sorted((FOLDER / kind).glob("*.npz"))
    for ending in endings
]


@pytest.mark.parametrize(("arrays", "file"), FILES)
def test_a_network_gives_what_its_framework_gives(arrays: Path, file: Path) -> None:
    known = np.load(arrays)
    x, wanted = (known[name] for name in (("data", "output0") if "data" in known.files else ("in0", "out0")))
    options = Options({"data": x.shape}, folder=str(file.parent)) if "data" in known.files else Options()
    made = import_file(str(file), options)
    assert made is not None and not made.params
    y = np.asarray(Evaluator(made.module).call("main", (x,)))
    assert y.shape == wanted.shape
    largest = np.abs(wanted).max()
    apart = np.abs(y - wanted).max() / largest
    print(f"{file.name}: {apart:.1e}")
    spread = np.abs(known["near0"] - wanted).max() / largest if arrays.stem in AMPLIFYING else 0.0
    assert apart <= max(1e-5, 2 * spread), f"the framework itself moves by {spread:.1e}"
