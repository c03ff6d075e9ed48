"""Target strings: options, quotes and errors."""

from __future__ import annotations

from typing import Any

import pytest

from relaylang.backends.registry import parse_target
from relaylang.backends.target import Target
from relaylang.diagnostics import RelayError


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("c -cflags=-O1", {"cflags": "-O1"}),
        ('c -cflags="-O1 -g"', {"cflags": "-O1 -g"}),
        ("c -cflags='-O1 -g' -num-threads=2", {"cflags": "-O1 -g", "num-threads": 2}),
        ("""c -cflags="-O1 -DNAME='a, b'" """, {"cflags": "-O1 -DNAME='a, b'"}),
        (r'c -cflags="-DNAME=\"a\\b\""', {"cflags": r'-DNAME="a\b"'}),
        (r"c -cflags=-O1\ -g", {"cflags": "-O1 -g"}),
        (r"c -cc=C:\bin\cc", {"cc": r"C:\bin\cc"}),
        ('c -cc="/my tools/cc"', {"cc": "/my tools/cc"}),
        ("c -cflags=''", {"cflags": ""}),
        ('c -cflags="-Wl,-z,now"', {"cflags": "-Wl,-z,now"}),
        ("c -march=armv8-a+simd,+x", {"march": "armv8-a+simd,+x"}),
    ],
)
def test_options_with_quotes(text: str, options: dict[str, Any]) -> None:
    targets = parse_target(text)
    assert targets == [Target("c", options)]
    assert parse_target(str(targets[0])) == targets


def test_a_comma_in_quotes_separates_no_targets() -> None:
    found = parse_target('ethos-u, c -cflags="-O1, c"')
    assert found == [Target("ethos-u"), Target("c", {"cflags": "-O1, c"})]


@pytest.mark.parametrize("text", ['c -cflags="-O1', "c -cflags='-O1 -g", 'c -cc="a" -cflags="'])
def test_a_quote_that_does_not_end(text: str) -> None:
    with pytest.raises(RelayError, match="is not closed") as caught:
        parse_target(text)
    (found,) = caught.value.diagnostics
    assert found.code == "R0602"
    assert found.span is not None and found.span.end == len(text)
