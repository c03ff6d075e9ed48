"""Wrong calls."""

from __future__ import annotations


class UsageError(Exception):
    """The arguments do not go together: `UsageError(what is wrong, the call that helps)`. Exit status 2."""
