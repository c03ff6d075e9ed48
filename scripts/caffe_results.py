"""Writes what OpenCV computes for the networks of tests/frontends/caffe: tests/frontends/caffe/data/recorded.npz.

    scripts/caffe_results.py

It needs an environment of its own, with `pip install 'opencv-python-headless<5'`: OpenCV 4 reads networks of Caffe.
"""

from __future__ import annotations

import sys
from pathlib import Path

import cv2
import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.frontends.caffe.networks import Net, caffemodel, networks, operands, prototxt  # noqa: E402

DATA = ROOT / "tests" / "frontends" / "caffe" / "data" / "recorded.npz"


def results(net: Net) -> list[np.ndarray]:
    """The results of a network that no layer of it uses, in the order of its layers."""
    read = cv2.dnn.readNetFromCaffe(*(np.frombuffer(part, np.uint8) for part in (prototxt(net).encode(), caffemodel(net))))
    read.setPreferableBackend(cv2.dnn.DNN_BACKEND_OPENCV)
    read.enableFusion(False)
    read.enableWinograd(False)
    for name, value in zip(net.inputs, operands(net)):
        read.setInput(value, name)
    used = {name for layer in net.layers for name in layer.bottoms}
    ends = [layer.name for layer in net.layers if not used.intersection(layer.tops)]
    return [np.asarray(made) for made in read.forward(ends)]


def main() -> None:
    found = {}
    for name, net in networks():
        for i, made in enumerate(results(net)):
            found[f"{name}_{i}"] = made.astype("float32")
            print(name, i, made.shape)
    DATA.parent.mkdir(exist_ok=True)
    np.savez_compressed(DATA, **found)


if __name__ == "__main__":
    main()
