"""Importing this module makes `import tvm` mean relaylang, in this process, with or without a TVM beside it.

Usage:

    import relaylang.tvm.install
    from tvm import relay
"""

from __future__ import annotations

from relaylang.runtime.external import codegen
from relaylang.tvm.ccompiler import generate
from relaylang.tvm.conventions import adopt
from relaylang.tvm.faces import stand_in

stand_in()
adopt()
codegen("ccompiler", generate)
