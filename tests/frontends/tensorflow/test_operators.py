"""Small graphs against what TensorFlow recorded: operators, control flow of both versions, lists, functions."""

from __future__ import annotations

import pytest

from relaylang.frontends.options import Options
from relaylang.frontends.tensorflow.table import table
from tests.frontends.tensorflow.recorded import cases, compare
from tests.shared import check_each

pytest.importorskip("google.protobuf", reason="the importer reads messages by protobuf")
#: Cases in groups of one test each.
GROUPS = 8


@pytest.mark.parametrize("group", range(GROUPS))
def test_graphs_compute_what_tensorflow_does(group: int) -> None:
    found = cases()
    names = sorted(found)[group::GROUPS]
    check_each(compare, [found[n] for n in names], names)


def test_layers_in_another_layout() -> None:
    found = cases()
    names = [n for n in found if n.startswith(("Conv2D", "Depthwise", "MaxPool S", "AvgPool", "FusedBatch"))]
    check_each(lambda case: compare(case, Options(layout="NCHW")), [found[n] for n in names], names)


def test_every_recorded_operator_is_in_the_table() -> None:
    rules = set(table().names())
    assert {"BlockLSTM", "Conv2D", "StatelessWhile", "TensorArrayV3", "TensorListReserve"} <= rules
