"""Pages on files and metadata: R00xx."""

from __future__ import annotations

from relaylang.diagnostics.pages.page import Page

PAGES = (
    Page(
        "R0001",
        "cannot read a file",
        """The system does not give the file: it does not exist, is a directory, or may not be read. The message says
        which. A file named - is the standard input.""",
        "$ relay check examples/mpl.relay",
        "$ relay check examples/mlp.relay",
        "shell",
    ),
    Page(
        "R0002",
        "the file is empty",
        """There is nothing in the file but white space. A program without definitions is written with its header only.""",
        "\n",
        '#[version = "0.0.5"]',
    ),
    Page(
        "R0003",
        "the file is not text",
        """Relay text is UTF-8. The file has other bytes, or NUL bytes, as binary files have. It may be a model in
        another format (.onnx, .tflite, .params), or text in another encoding. `iconv -t UTF-8` converts text. The
        message names the first such byte.""",
        "\0",
        "def @main() { 1 }",
    ),
    Page(
        "R0010",
        "the metadata section is damaged",
        """Behind `#[metadata]` stands JSON that carries the constants which `meta[relay.Constant][0]` and its like
        refer to. It was cut off, edited or mangled. A bracket is missing, a blob has another length than its header
        says, or an index points nowhere. Print the program again where it came from, or leave the section out and
        give the values with `--params`.""",
        'def @main() { meta[relay.Constant][0] }\n\n#[metadata]\n{"root": 1, "nodes": [',
        "def @main() { meta[relay.Constant][0] /* ty=Tensor[(2), float32] */ }",
    ),
    Page(
        "R0011",
        "a value has no form in a metadata section",
        """A program from Python holds a value that Relay text cannot carry. It is an array of a type that no tensor
        has, or an object of a class of your own. Use numbers, strings, lists, maps, arrays, types and expressions.""",
        'import numpy as np\nimport relaylang as relay\nrelay.astext(relay.Constant(np.zeros(2, "complex64")))',
        'import numpy as np\nimport relaylang as relay\nrelay.astext(relay.Constant(np.zeros(2, "float32")))',
        "python",
    ),
    Page(
        "R0012",
        "a parameter file is damaged",
        """The file has the name of a parameter file (.npz, .params, .safetensors), but another content. Or it was cut
        off. A download that failed leaves such files. Get or write it again.""",
        "$ relay run examples/mlp.relay --params damaged.npz",
        "$ relay run examples/mlp.relay --params good.npz --random-params 0",
        "shell",
    ),
    Page(
        "R0013",
        "cannot write a file",
        """The parameters could not be written. The disk is full, or the directory does not exist or is not writable.""",
        """
import numpy as np
from relaylang.runtime.params import save_params
save_params("/no/such/directory/p.npz", {"w": np.zeros(3)})
""",
        """
import numpy as np
from relaylang.runtime.params import save_params
save_params("p.npz", {"w": np.zeros(3)})
""",
        "python",
    ),
    Page(
        "R0014",
        "not a parameter file",
        """The file's name does not end with .npz, .params or .safetensors, by which its format is known.""",
        "$ relay run examples/mlp.relay --params weights.bin",
        "$ relay run examples/mlp.relay --params good.npz --random-params 0",
        "shell",
    ),
    Page(
        "R0015",
        "no random value for a type",
        """`--random-params` makes values for tensors of known shape. A function, a reference or a tensor with an extent that
        is not known has none. Give the parameter a value with --input, or write its extents in the program.""",
        "$ relay run unknown_extent.relay --random-params 0",
        "$ relay run unknown_extent.relay --input 'x=[1, 2, 3]'",
        "shell",
    ),
    Page(
        "R0016",
        "a file asks for more than its budget",
        """A model, a parameter file or a compiled program would become far more than its own size. Functions may call each
        other twice, constants may double, an archive may swell, and products of constants may take hours. Each file has a
        budget of nodes, one of bytes and one of work, which grow with its size. RELAY_BUDGET_NODES, RELAY_BUDGET_BYTES and
        RELAY_BUDGET_WORK raise them for a file that you trust.""",
        "$ relay import laughs.onnx",
        "$ RELAY_BUDGET_NODES=4000000 relay import laughs.onnx",
        "text",
    ),
    Page(
        "R0090",
        "there are more errors than are shown",
        """Twenty errors are shown for a text; this note counts the others. Many errors often have one cause: repair the first
        ones and look again.""",
        "def @main() {\n  (%a0, %a1, %a2, %a3, %a4, %a5, %a6, %a7, %a8, %a9,\n"
        "   %b0, %b1, %b2, %b3, %b4, %b5, %b6, %b7, %b8, %b9, %c0)\n}",
        "def @main(%a0: int32) {\n  %a0\n}",
    ),
)
