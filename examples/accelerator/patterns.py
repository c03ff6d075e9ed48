"""Step 1, the pattern table: what mac8 computes, as shapes of programs."""

from relaylang.dataflow_pattern import is_constant, is_op, wildcard
from relaylang.partition import register_pattern_table


def layer():
    """A dense layer of int8 with a shift, limits and a cast: `cast(clip(right_shift(nn.dense(x, w), s)))`."""
    shifted = is_op("right_shift")(is_op("nn.dense")(wildcard(), is_constant()), is_constant())
    return is_op("cast")(is_op("clip")(shifted))


@register_pattern_table("mac8")
def table():
    return [("mac8.layer", layer())]
