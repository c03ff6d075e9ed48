"""What `tvm.relay.transform` has beside relaylang's passes."""

from __future__ import annotations

from relaylang.tvm.relay.transform.indexes import CapturePostDfsIndexInSpans
from relaylang.tvm.relay.transform.recasting import recast

__all__ = ["CapturePostDfsIndexInSpans", "recast"]
