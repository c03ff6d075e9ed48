"""A coverage-guided fuzz target for the readers of networks (`pip install '.[fuzz,onnx,tflite]'`).

    python fuzz/importers.py -max_total_time=60 [FOLDER_FOR_FINDS] FOLDER_OF_NETWORKS

Every input gives a program, a `RelayError`, or no known format. Its printed program reads back as the same. Anything else
ends the run, and the input lies in a file `crash-...`. The options are libFuzzer's; `-rss_limit_mb` bounds the memory.
"""

from __future__ import annotations

import sys


def one_input(data: bytes) -> None:
    """The checks of every input."""
    from relaylang.diagnostics import RelayError
    from relaylang.frontends.formats import import_bytes
    from relaylang.ir import structural_equal
    from relaylang.syntax import astext, parse

    try:
        made = import_bytes(data, "fuzzed")
    except RelayError as wrong:
        assert wrong.diagnostics and str(wrong)
        return
    if made is not None:
        assert structural_equal(parse(astext(made.module)).module, made.module)


def main() -> None:
    try:
        import atheris
    except ImportError:
        sys.exit("the fuzzer needs atheris: pip install '.[fuzz]'")
    with atheris.instrument_imports(include=["relaylang"]):
        import relaylang.frontends.formats
        import relaylang.frontends.onnx.table
        import relaylang.frontends.tflite.table
        import relaylang.frontends.torch.table

        relaylang.frontends.onnx.table.table()
        relaylang.frontends.tflite.table.table()
        relaylang.frontends.torch.table.table()
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
