"""A coverage-guided fuzz target for the reader (`pip install '.[fuzz]'`).

    python fuzz/reader.py -max_total_time=60 [FOLDER_FOR_FINDS] fuzz/seeds examples

Every input gives a program or a `RelayError`. A program's print reads back as the same program and is a fixed point; so is its
canonical form. Anything else ends the run, and the input lies in a file `crash-...`. The options are libFuzzer's.
"""

from __future__ import annotations

import sys

MOST = 20_000


def one_input(data: bytes) -> None:
    """The checks of every input."""
    from relaylang.diagnostics import RelayError
    from relaylang.syntax import astext, parse
    from relaylang.testing.roundtrip import formats_once, reads_back

    text = data[:MOST].decode("utf-8", "surrogateescape")
    try:
        node = parse(text).value
    except RelayError as wrong:
        assert wrong.diagnostics and str(wrong)
        return
    try:
        printed, again = reads_back(node)
    except RelayError:
        return  # nodes of two metadata sections, a value without a form in one
    assert astext(again) == printed
    formats_once(text)


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
