"""`_run_opt_pass`: a pass over one expression."""

from relaylang.tvm.relay.testing import run_opt_pass as _run_opt_pass

__all__ = ["_run_opt_pass"]
