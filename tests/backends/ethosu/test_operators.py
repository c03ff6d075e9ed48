"""Every operator that Vela takes from TensorFlow Lite files, as Relay has it: it runs, or there is a reason."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

pytest.importorskip("tosa_reference_model", reason="needs relaylang[ethosu]")
pytest.importorskip("ethosu.regor", reason="needs relaylang[ethosu]")

from relaylang import RelayError
from relaylang.backends import ethosu
from tests.backends.ethosu.test_layers import MOVED, PROGRAMS, U, X, assert_exact, program
from tests.shared import PATIENCE, few

OLDER, U85 = ("ethos-u55-128", "ethos-u65-512"), "ethos-u85-256"
XI = f"{X}, %i: Tensor[(3), int32]"
BITS = "%x: Tensor[(1, 8, 5, 6), bool]"
BOTH = f"{BITS}, %y: Tensor[(5, 6), bool]"
PAIR = f"{X}, %y: Tensor[(8, 5, 6), int8]"


def real(call: str) -> tuple[str, str]:
    """A function of real numbers between quantised ones."""
    return f'qnn.quantize({call.format("qnn.dequantize(%x, 0.02f, 3)")}, 0.03f, -20, out_dtype="int8")', X


#: Operator -> the name of a program of the layers, or a program.
OPERATORS: dict[str, str | tuple[str, str]] = {
    "ABS": real("abs({})"),
    "ADD": "sum with an operand at its scale",
    "ARG_MAX": "place of the largest",
    "AVERAGE_POOL_2D": "rounded average of windows",
    "BATCH_MATMUL": "product of matrices",
    "CONCATENATION": (
        MOVED + "qnn.concatenate((%0, %y), (0.1f, 0.2f), (3, 4), 0.2f, 5, axis=1)",
        f"{X}, %y: Tensor[(1, 2, 5, 6), int8]",
    ),
    "CONV_2D": (
        'qnn.requantize(qnn.conv2d(%x, %w, 3, 0, 0.1f, 0.1f, channels=4, kernel_size=[3, 3], out_dtype="int32"), 0.002f, 0, 0.1f, '
        '4, out_dtype="int8")',
        f"{X}, %w: Tensor[(4, 8, 3, 3), int8]",
    ),
    "DEPTHWISE_CONV_2D": (
        'qnn.requantize(qnn.conv2d(%x, %k, 3, 0, 0.1f, 0.1f, groups=8, channels=8, kernel_size=[3, 3], out_dtype="int32"), 0.002f, '
        '0, 0.1f, 4, out_dtype="int8")',
        f"{X}, %k: Tensor[(8, 1, 3, 3), int8]",
    ),
    "ELU": (
        "%0 = qnn.dequantize(%x, 0.02f, 3); %1 = where(greater(%0, 0f), %0, subtract(exp(%0), 1f)); "
        'qnn.quantize(%1, 0.03f, -20, out_dtype="int8")',
        X,
    ),
    "EXP": real("exp({})"),
    "EXPAND_DIMS": (MOVED + "expand_dims(%0, axis=0)", "%x: Tensor[(8, 5, 6), int8]"),
    "FULLY_CONNECTED": (
        'qnn.requantize(qnn.dense(%x, %matrix, 3, 0, 0.1f, 0.1f, units=5, out_dtype="int32"), 0.003f, 0, 0.1f, 4, out_dtype="int8")',
        "%x: Tensor[(3, 9), int8], %matrix: Tensor[(5, 9), int8]",
    ),
    "GELU": (
        "%0 = qnn.dequantize(%x, 0.02f, 3); %1 = multiply(%0, add(multiply(erf(multiply(%0, 0.70710677f)), 0.5f), 0.5f)); "
        'qnn.quantize(%1, 0.03f, -20, out_dtype="int8")',
        X,
    ),
    "HARD_SWISH": ("qnn.hardswish(%x, 0.05f, 3, 0.04f, -20)", X),
    "LEAKY_RELU": ("qnn.leaky_relu(%x, 0.05f, 3, 0.04f, -20, alpha=0.3f)", X),
    "LOG": real("log({})"),
    "LOGISTIC": "sigmoid",
    "MAXIMUM": "larger one",
    "MAX_POOL_2D": ("nn.max_pool2d(%x, pool_size=[2, 3], strides=[2, 2])", X),
    "MEAN": "mean",
    "MINIMUM": "smaller one",
    "MIRROR_PAD": "mirrored border",
    "MUL": "product",
    "NEG": real("negative({})"),
    "PACK": (MOVED + "stack((%0, %x), axis=1)", "%x: Tensor[(8, 5, 6), int8]"),
    "PAD": (MOVED + "nn.pad(%0, 12, pad_width=[[0, 0], [1, 0], [2, 1], [0, 3]])", X),
    "PADV2": (MOVED + "nn.pad(%0, -99, pad_width=[[0, 0], [0, 2], [0, 0], [0, 0]])", X),
    "PRELU": "slopes of channels",
    "QUANTIZE": ('qnn.requantize(%x, 0.05f, 3, 0.08f, 70, out_dtype="uint8")', X),
    "REDUCE_MAX": "largest",
    "REDUCE_MIN": "smallest",
    "RELU": (MOVED + "clip(%0, a_min=12f, a_max=127f)", X),
    "RELU6": (MOVED + "clip(%0, a_min=12f, a_max=72f)", X),
    "RELU_0_TO_1": (MOVED + "clip(%0, a_min=12f, a_max=32f)", X),
    "RELU_N1_TO_1": (MOVED + "clip(%0, a_min=-8f, a_max=32f)", X),
    "RESHAPE": (MOVED + "reshape(%0, newshape=[5, 48])", X),
    "RESIZE_BILINEAR": "mixed pixels",
    "RESIZE_NEAREST_NEIGHBOR": "nearest pixels",
    "REVERSE_V2": "reverse",
    "RSQRT": real("rsqrt({})"),
    "SLICE": "slice",
    "SOFTMAX": "probabilities",
    "SPLIT": "equal parts",
    "SPLIT_V": "parts",
    "SQUARED_DIFFERENCE": (
        "%0 = qnn.subtract(%x, %y, 0.05f, 3, 0.02f, 1, 0.05f, -12); qnn.mul(%0, %0, 0.05f, -12, 0.05f, -12, 0.1f, -100)",
        PAIR,
    ),
    "SQUEEZE": (MOVED + "squeeze(%0, axis=[0])", X),
    "STRIDED_SLICE": "slice with strides",
    "SUB": "difference",
    "SUM": "sum",
    "TANH": "tanh",
    "TILE": "tile",
    "TRANSPOSE": "other axes",
    "TRANSPOSE_CONV": (
        "qnn.requantize(qnn.conv2d_transpose(%x, %w, 3, 0, 0.1f, 0.1f, channels=4, kernel_size=[3, 3], strides=[2, 2], "
        'kernel_layout="OIHW", out_dtype="int32"), 0.002f, 0, 0.1f, 4, out_dtype="int8")',
        f"{X}, %w: Tensor[(4, 8, 3, 3), int8]",
    ),
    "UNPACK": (MOVED + "squeeze(strided_slice(%0, begin=[0, 3], end=[1, 4], strides=[1]), axis=[1])", X),
    # The operators of the Ethos-U85 alone.
    "CAST": ('(cast(%x, dtype="int16"), cast(%y, dtype="bool"))', f"{BITS}, %y: Tensor[(5, 6), int8]"),
    "DIV": ("divide(%x, %m)", "%x: Tensor[(8, 5, 6), int32], %m: Tensor[(5, 6), int32]"),
    **{name: (f"{name.lower()}(%x, %y)", PAIR) for name in ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")},
    "GATHER": ("(take(%x, %i, axis=1), take(%x, reshape(%i, newshape=[1, 3]), axis=1, batch_dims=1))", XI),
    **{name: (f"{name.lower()}(%x, %y)", BOTH) for name in ("LOGICAL_AND", "LOGICAL_OR")},
    "LOGICAL_NOT": ("logical_not(%x)", BITS),
    "REDUCE_ALL": ("all(%x, axis=[2, 3])", BITS),
    "REDUCE_ANY": ("any(%x, axis=[1], keepdims=True)", BITS),
    "SCATTER_ND": (
        'scatter_nd(%x, reshape(%i, newshape=[1, 3]), %y, mode="update")',
        "%x: Tensor[(9, 5, 6), int8], %i: Tensor[(3), int32], %y: Tensor[(3, 5, 6), int8]",
    ),
    "SELECT": ("where(%c, %x, %y)", f"%c: Tensor[(1, 8, 5, 6), bool], {PAIR}"),
    "SELECT_V2": ("where(less(%x, %y), %x, 7u8)", f"{U}, %y: Tensor[(5, 6), uint8]"),
}
#: Operators that no Relay program has.
REASONS = {
    "ASSIGN_VARIABLE": "a program of Relay has no variables: their values are arguments and results",
    "READ_VARIABLE": "a program of Relay has no variables: their values are arguments and results",
    "UNIDIRECTIONAL_SEQUENCE_LSTM": "Relay has the steps, which are operators of their own",
}


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """The operators of Vela's own report, by the architecture."""
    folder = tmp_path_factory.mktemp("vela")
    command = [sys.executable, "-m", "ethosu.vela", "--supported-ops-report"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=PATIENCE)
    text = (folder / "SUPPORTED_OPS.md").read_text(encoding="utf-8")
    parts = {}
    for table in re.split(r"^## ", text, flags=re.MULTILINE):
        part, found, _ = table.partition(" TFLite Summary Table\n")
        if found:
            parts[part] = set(re.findall(r"^\| ([A-Z][A-Z0-9_]+) \|", table, re.MULTILINE))
    return parts


def test_all_operators_are_here(known: dict[str, set[str]]) -> None:
    assert set().union(*known.values()) == {*OPERATORS, *REASONS}


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", few(OPERATORS, *list(OPERATORS)[::3]))
def test_operator(name: str, known: dict[str, set[str]]) -> None:
    """The interpreter's integers on the accelerators that have it, and a note with the call's name on others."""
    found = OPERATORS[name]
    body, params = PROGRAMS[found] if isinstance(found, str) else found
    assert_exact(body, params, U85)
    for accelerator in OLDER:
        if name in known["Ethos-U55 and Ethos-U65"]:
            assert_exact(body, params, accelerator)
            continue
        with pytest.raises(RelayError, match=r"stays on the host: only the Ethos-U85") as wrong:
            ethosu.compile(program(body, params)[0], {"accelerator": accelerator})
        assert wrong.value.diagnostics[0].code == "R0614"
