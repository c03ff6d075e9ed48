"""Pages on the import and export of networks: R08xx."""

from __future__ import annotations

from relaylang.diagnostics.pages.page import Page

PAGES = (
    Page(
        "R0801",
        "layers that cannot be converted",
        """A network has operators that Relay cannot express, or that the importer does not convert. The notes list each of
        them: how often it occurs, the first layer that has it, and why. `--partial` puts an external function in the place
        of each such layer; the rest can be read, checked and partitioned.""",
        "$ relay import network_with_strings.onnx",
        "$ relay import network_with_strings.onnx --partial",
        "text",
    ),
    Page(
        "R0802",
        "a damaged model file",
        """The file is not a model that this reader understands. It is cut short, lengths in it lie, or a layer uses a tensor
        that no layer makes. Export the network again.""",
        "$ relay import half_of_a_download.onnx",
        "$ relay import network.onnx",
        "text",
    ),
    Page(
        "R0803",
        "a package is missing",
        """A format's reader needs a package that relaylang does not install by default. The note has the line that
        installs it.""",
        "$ relay import network.onnx",
        "$ pip install 'relaylang[onnx]'\n$ relay import network.onnx",
        "text",
    ),
    Page(
        "R0804",
        "an option of the import does not fit the model",
        """`--shape`, `--dtype` or `--value` names an input that the model does not have, or gives it another number of axes.
        A value may have another shape than the input, or elements that its type does not hold.""",
        "$ relay import network.onnx --shape image=1x3x224x224",
        "$ relay import network.onnx --shape input=1x3x224x224",
        "text",
    ),
    Page(
        "R0805",
        "a layer's operands or attributes do not fit together",
        """An attribute of a layer has a value that the operator does not allow. Or the layer has too few operands. The label
        shows the layer. The model is wrong, or a shape given with `--shape` does not suit it.""",
        "$ relay import network.onnx --shape input=1x3x7x7",
        "$ relay import network.onnx --shape input=1x3x224x224",
        "text",
    ),
    Page(
        "R0806",
        "operators that cannot be exported",
        """A program has operators, types or control flow that the format of the export does not have. The notes list each
        of them: how often it occurs, the first place that has it, and why. StableHLO and Relax text need known shapes. Another
        format may have the operator.""",
        "$ relay export network_with_sampling.relay -o network.mlir",
        "$ relay export network_with_sampling.relay -o network.onnx",
        "text",
    ),
    Page(
        "R0807",
        "a file of a version that relaylang does not know",
        """The file states a version of its format, or of a part of it, that is newer or older than those that the importer
        knows. It is an error where the format's own readers refuse such a file, since its contents may mean something else. It
        is a warning where they read on: operators that are new are listed, and all others have the meaning of the newest known
        version. Write the file for an older version, or install a newer relaylang.""",
        "$ relay import network_of_next_year.onnx",
        "$ relay import network.onnx",
        "text",
    ),
)
