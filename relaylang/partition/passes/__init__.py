"""Passes that partition programs, one file each; `relaylang.passes.PASSES` finds them here."""
