"""`python -m relaylang.tvm script.py ARGS` is `relay tvm script.py ARGS`."""

from __future__ import annotations

import sys

from relaylang.cli import main

if __name__ == "__main__":
    sys.exit(main(["tvm", *sys.argv[1:]]))
