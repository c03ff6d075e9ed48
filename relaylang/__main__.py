"""`python -m relaylang` is the `relay` command."""

from __future__ import annotations

import sys

from relaylang.cli import main

if __name__ == "__main__":
    sys.exit(main())
