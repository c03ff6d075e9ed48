"""Step 2, the checks: which of these programs the hardware has room and numbers for. A check says why not."""

import sys
from pathlib import Path

from relaylang.partition import register_pattern_table

sys.path.insert(0, str(Path(__file__).parent))
from patterns import layer


def parts(cast):
    """The dense call of a layer, its weights, its shift, and its limits."""
    clip = cast.args[0]
    shift = clip.args[0]
    dense = shift.args[0]
    return dense, dense.args[1].data, shift.args[1].data, (clip.attrs.a_min, clip.attrs.a_max)


def fits(cast):
    """True, or the reason why a layer stays on the CPU."""
    dense, weights, shift, limits = parts(cast)
    types = [dense.args[0].checked_type.dtype, str(weights.dtype), cast.checked_type.dtype]
    if types != ["int8"] * 3 or dense.checked_type.dtype != "int32":
        return f"its numbers are {', '.join(types)}; mac8 multiplies int8 and adds int32"
    if shift.size != 1 or not 0 <= int(shift.reshape(-1)[0]) < 32:
        return f"it shifts by {shift.tolist()}; mac8 by one number from 0 to 31"
    if limits != (0, 127):
        return f"its limits are {limits[0]:g} and {limits[1]:g}; those of mac8 are 0 and 127"
    if max(weights.shape) > 255 * 8:
        return f"its weights are {weights.shape}; mac8 counts up to 255 blocks of 8"
    return True


@register_pattern_table("mac8")
def table():
    return [("mac8.layer", layer(), fits)]
