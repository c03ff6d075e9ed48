"""`python -m relaylang` is the `relay` command."""

from __future__ import annotations

import os
import sys

# `-m` puts the working directory first: nothing else is imported from it.
if __name__ == "__main__" and sys.path[:1] == [os.getcwd()] and not getattr(sys.flags, "safe_path", False):
    del sys.path[0]

from relaylang.cli import main

if __name__ == "__main__":
    sys.exit(main())
