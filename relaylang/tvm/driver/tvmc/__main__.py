"""`python -m relaylang.tvm.driver.tvmc`."""

from __future__ import annotations

import sys

from relaylang.tvm.driver.tvmc.main import main

if __name__ == "__main__":
    sys.exit(main())
