"""Passes and analyses beside TVM's: the recorded answers, and, where `RELAY_ORACLE` names a Python with TVM, TVM itself.

recorded.json.gz has a hash of TVM's result for each generated program on which both agree. The counts of all programs,
and the reasons of differences, are in table.md. `make pass-conformance` makes both again.
"""

from __future__ import annotations

import gzip
import json
import os
from collections import Counter
from typing import Any

import pytest

from tests.conformance.passes import analyses, record, specs
from tests.conformance.passes.reasons import reason
from tests.shared import few

RECORDED: dict[str, list[Any]] = json.loads(gzip.decompress(record.FILE.read_bytes()))
SPECS = {spec.name: spec for spec in specs.SPECS}
#: Passes whose every result is another program than TVM's, of the same meaning (see `reasons.py`).
OTHERWISE = {
    "PartialEvaluate",
    "LazyGradientInit",
    "FirstOrderGradient",
    "gradient, higher order",
    "Defunctionalization",
    "EtaExpand(False, True)",
    "qnn.Legalize",
    "MergeComposite, ethos-u",
    "partitioned, ethos-u",
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", few(SPECS, *list(SPECS)[::3]))
def test_results_are_tvms(name: str) -> None:
    spec = SPECS[name]
    rows = [row for row in RECORDED["passes"] if row[0] == name]
    assert rows or name in OTHERWISE
    for _, kind, seed, verdict, number in rows:
        mine = spec.run(spec.ready(specs.program(kind, seed)))
        assert record.signature(mine, verdict) == number, (kind, seed)


@pytest.mark.parametrize("name", analyses.ANALYSES)
def test_analyses_are_tvms(name: str) -> None:
    rows = [row for row in RECORDED["analyses"] if row[0] == name]
    programs = {(kind, seed): mod for kind, seed, mod in analyses.programs(3)}
    assert rows
    for _, kind, seed, theirs in rows:
        assert analyses.ours(name, programs[kind, seed]) == theirs, (kind, seed)


def test_the_table_has_every_pass_and_a_reason_for_all() -> None:
    text = record.TABLE.read_text()
    assert all(f"| {name.replace('|', '/')} |" in text for name in [*SPECS, *analyses.ANALYSES])
    assert "NO REASON" not in text and "OURS IS WRONG" not in text


@pytest.mark.skipif("RELAY_ORACLE" not in os.environ, reason="RELAY_ORACLE names no Python with TVM")
@pytest.mark.parametrize("name", SPECS)
def test_beside_tvm(name: str) -> None:
    found = [c for c in record.cases(1, name, golden=False) if c.spec.name == name]
    rows, _ = record.judged(os.environ["RELAY_ORACLE"], found)
    said = Counter(row["verdict"] for row in rows)
    assert [row for row in rows if row["verdict"] not in ("same", "names") and not reason(row)] == [], said


@pytest.mark.skipif("RELAY_ORACLE" not in os.environ, reason="RELAY_ORACLE names no Python with TVM")
def test_analyses_beside_tvm() -> None:
    found = analyses.compare(os.environ["RELAY_ORACLE"], 3)
    unlike = [b for b in found if b.verdict not in ("same", "both refuse") and (b.analysis, b.verdict) not in analyses.REASONS]
    assert unlike == []
