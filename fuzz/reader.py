"""A coverage-guided fuzz target for the reader (`pip install '.[fuzz]'`).

    python fuzz/reader.py -max_total_time=60 [FOLDER_FOR_FINDS] fuzz/seeds examples

Every input gives a program or a `RelayError`. A program's print reads back as the same program and is a fixed point; so is its
canonical form. Anything else ends the run, and the input lies in a file `crash-...`. The options are libFuzzer's.
"""

from __future__ import annotations

import sys

MOST = 20_000


def one_input(data: bytes) -> None:
    """What is to hold for every input."""
    from relaylang.diagnostics import RelayError
    from relaylang.ir import structural_diff
    from relaylang.syntax import astext, parse
    from relaylang.syntax.format import format_text

    text = data[:MOST].decode("utf-8", "surrogateescape")
    try:
        node = parse(text).value
    except RelayError as wrong:
        assert wrong.diagnostics and str(wrong)
        return
    try:
        printed = astext(node)
    except RelayError:
        return  # nodes of two metadata sections, a value without a form in one
    again = parse(printed).value
    difference = structural_diff(node, again, map_free_vars=True)
    assert difference is None, difference
    assert astext(again) == printed
    try:
        made = format_text(text)
    except RelayError as wrong:
        assert [d.code for d in wrong.diagnostics] == ["R0152"]  # an old call that has no short form today
        return
    assert format_text(made) == made


def main() -> None:
    try:
        import atheris
    except ImportError:
        sys.exit("the fuzzer needs atheris: pip install '.[fuzz]'")
    with atheris.instrument_imports(include=["relaylang"]):
        import relaylang.syntax
        import relaylang.syntax.format  # noqa: F401
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
