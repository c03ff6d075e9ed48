"""The table of Caffe's conversions: those of every file in `families/`."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from relaylang.frontends.caffe import families
from relaylang.frontends.common import Table

#: Layers that read a database in training. Their results are inputs of the network.
DATA = frozenset(("AnnotatedData", "Data", "HDF5Data", "ImageData", "Input", "MemoryData", "WindowData"))
#: Layers that training and measurements need. A network that runs does without them.
LEFT_OUT = frozenset(
    (
        "Accuracy",
        "ContrastiveLoss",
        "DetectionEvaluate",
        "EuclideanLoss",
        "HDF5Output",
        "HingeLoss",
        "InfogainLoss",
        "MultiBoxLoss",
        "MultinomialLogisticLoss",
        "SmoothL1Loss",
    )
)
#: Layers with weights, which a network without a file of weights cannot have.
WEIGHTED = frozenset(
    (
        "Convolution",
        "ConvolutionDepthwise",
        "Deconvolution",
        "DepthwiseConvolution",
        "Embed",
        "InnerProduct",
        "LSTM",
        "Normalize",
        "PReLU",
        "Parameter",
        "RNN",
    )
)
#: Layers that have no form in Relay, with the reason.
REFUSED = {
    "Filter": "the number of its results depends on data",
    "Im2col": "it is a part of Caffe's convolution",
    "Proposal": "it is Python code, which is not in the file",
    "Python": "it is Python code, which is not in the file",
}


@cache
def table() -> Table:
    """All conversions, by the types of layers."""
    names = sorted(module.name for module in iter_modules(families.__path__))
    return Table(*(import_module(f"{families.__name__}.{name}").RULES for name in names))


__all__ = ["DATA", "LEFT_OUT", "REFUSED", "WEIGHTED", "table"]
