"""When two results agree: in type and shape always, in whole numbers exactly, in floats to the operator's tolerance."""

from __future__ import annotations

from typing import Any

import numpy as np

from relaylang.interpreter import KERNELS
from relaylang.interpreter.kernels.tolerance import tolerance
from relaylang.ops import get, make_attrs
from tests.interpreter.cases_rare import DEFINED
from tests.interpreter.values import Case


def computed(case: Case) -> Any:
    """What our kernel gives for a case."""
    name, attrs, args, _ = case
    known = get(name).attrs
    with np.errstate(all="ignore"):
        return KERNELS[name](make_attrs(known, attrs) if known is not None else None, *args)


def assert_agree(name: str, ours: Any, theirs: Any) -> None:
    defined = DEFINED.get(name, lambda result: result)
    _assert_same(name, defined(ours), defined(theirs))


def _assert_same(name: str, ours: Any, theirs: Any) -> None:
    if isinstance(theirs, (tuple, list)):
        assert isinstance(ours, (tuple, list)) and len(ours) == len(theirs)
        for a, b in zip(ours, theirs):
            _assert_same(name, a, b)
        return
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert ours.dtype == theirs.dtype
    assert ours.shape == theirs.shape
    relative, absolute = tolerance(name, ours.dtype)
    if relative:
        np.testing.assert_allclose(ours, theirs, rtol=relative, atol=absolute)
    else:
        np.testing.assert_array_equal(ours, theirs)
