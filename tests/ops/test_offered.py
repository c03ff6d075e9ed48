"""Values of attributes that editors offer: every enumeration has its own, and no operator refuses them all."""

from __future__ import annotations

from relaylang.ops import OPS
from relaylang.ops.common import COMMON
from relaylang.ops.domains import offered
from tests.shared import check_each

#: Strings that may be anything.
FREE = {
    ("einsum", "equation"),
    ("annotation.compiler_begin", "compiler"),
    ("annotation.compiler_end", "compiler"),
    ("nn.bitpack", "name"),
    ("nn.space_to_depth", "mode"),
}
STRINGS = [(op.name, field.name) for op in OPS.values() for field in op.schema.values() if field.kind == "str"]


def offers_strings(op: str, name: str) -> None:
    field = OPS[op].schema[name]
    values = offered(OPS[op], field)
    assert bool(values) == ((op, name) not in FREE)
    assert len(set(values)) == len(values)
    if values and field.default and (op, name) != ("nn.conv2d_backward_weight", "kernel_layout"):
        assert values[0] == field.default or "layout" not in name


def test_strings() -> None:
    check_each(lambda pair: offers_strings(*pair), STRINGS)


def test_layouts_of_results_have_the_axes_of_the_data() -> None:
    for op in OPS.values():
        if "out_layout" in op.schema and op.name != "nn.conv2d_backward_weight":
            data = op.schema.get("data_layout") or op.schema["layout"]
            assert offered(op, op.schema["out_layout"]) == offered(op, data), op.name


def test_common_operators_exist() -> None:
    assert set(COMMON) <= OPS.keys() and len(set(COMMON)) == len(COMMON)
