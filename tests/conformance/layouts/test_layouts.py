"""AlterOpLayout and ConvertLayout beside TVM's: the same programs, but where there is a reason."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conformance.layouts.cases import SMALL, WIDE, cases, digest, ours, read
from tests.conformance.layouts.record import NETWORKS, networks
from tests.passes.meaning import keeps_meaning
from tests.shared import check_each

RECORDED: dict[str, str] = json.loads((Path(__file__).parent / "recorded.json").read_text())
CASES = cases(networks())

#: Program, or program and request -> why TVM's result is another one.
REASONS = {
    "resnet18, NCHW4c": "TVM puts 3 channels into blocks of 4, with zeros behind; here what does not divide stays",
    "mobilenet, NCHW4c": "TVM asks the general operator for depthwise kernels of blocks that they do not have",
    "small left": "TVM brings the large operand back for the small one on its left; here the small one follows",
    **dict.fromkeys(
        [f"split, {how}" for how in ("blocks of 4", "NHWC", "NCHW4c", "HWNC")], "the wheel has no rule for split (TVM 0.16 has)"
    ),
    "max of all": "a result without axes needs no change of layout; TVM makes one in front",
    "prelu, NHWC": "TVM brings the data back; here the axis moves",
    "prelu, HWNC": "TVM brings the data back; here the axis moves",
    "upsampling, NHWC": "TVM follows only where the rows stay where they are",
    "resize, HWNC": "TVM makes a layout that it cannot compile; here it is brought back to NCHW",
    "lets": "TVM brings the values of lets back; here they keep their layout",
    "roi_align": "TVM's reader does not take the operator",
    "roi_pool": "TVM's reader does not take the operator",
}


def is_tvms(name: str) -> None:
    same = digest(ours(*CASES[name])) == RECORDED[name]
    assert same != (name in REASONS or name.partition(", ")[0] in REASONS)


def test_as_tvm() -> None:
    check_each(is_tvms, [name for name in RECORDED if name in CASES])


def test_every_program_is_recorded() -> None:
    assert {name for name in RECORDED if name.partition(", ")[0] not in NETWORKS} == set(cases({}))
    assert {r.partition(", ")[0] for r in REASONS} <= {*SMALL, *WIDE, *NETWORKS}


OTHERWISE = [n for n in cases({}) if not n.startswith("roi") and (n in REASONS or n.partition(", ")[0] in REASONS)]


@pytest.mark.parametrize("name", OTHERWISE)
def test_what_is_otherwise_means_the_same(name: str) -> None:
    text, how = CASES[name]
    mod = read(text)
    keeps_meaning(lambda m: ours(text, how), mod)


def test_the_number_tells_programs_apart() -> None:
    text, how = CASES["bias, NHWC"]
    assert digest(read(text)) != digest(ours(text, how))
    assert digest(read(text.replace("%b, axis=1", "%b, axis=-1"))) != digest(read(text))
    assert digest(read(text.replace("%b", "%c"))) == digest(read(text))
