"""A recipe: the options of the partitioning engine that an accelerator chooses.

The defaults are TVM's steps: composites row by row, marked calls, merged regions, functions under TVM's names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from relaylang.ir import Call, Function
from relaylang.partition.naming import TVM_NAMES, Naming

#: Whether a target takes a call of an operator outside a composite: True, or a sentence that says why not.
OpCheck = Callable[[Call], "bool | str | None"]


@dataclass(frozen=True)
class Recipe:
    """How programs are prepared and partitioned for one accelerator.

    - `name`: the accelerator's name, as users write it.
    - `prepare`: the passes before partitioning, as `relay opt --passes` takes them.
    - `operators`: the operators that it takes outside composites, each with its check.
    - `search`: "rows" gives each row of the table all that it matches, before the next row is tried. "calls" takes
      the outermost scope of the entry function alone. From the result upwards, each call goes to the first row that fits.
      Values inside such a composite have no use outside.
    - `constants_inside`: constants are part of composites where the pattern has a wildcard, too.
    - `tuples`: a tuple goes to the accelerator with all its operands, with all its users, or never. With "users" a field
      goes with the call that makes its tuple.
    - `merge`: "late" merges neighbouring regions as TVM does. A region that waits for nothing joins later ones. "early"
      numbers regions from the inputs on, and joins those of one number. "none" leaves each call alone.
    - `bind_constants`: constants go into a region, else they are its parameters.
    - `outputs`: a region returns its values in the order in which they are used, or in which they are computed.
    - `unfold`: composites that stay on the host are plain calls again.
    - `worth`: a region without a call of one of these operators goes back to the host, after regions are numbered.
    - `keep`: whether the accelerator takes a region's function as a whole. Otherwise it goes back to the host.
    - `not_worth`: the reason that the report gives for a region that goes back because it is not worth it.
    - `naming`: the names of functions and their parameters.
    - `integers`: the accelerator takes quantized programs only.
    """

    name: str
    prepare: str = "FoldConstant(fold_qnn=True)"
    operators: Mapping[str, OpCheck] = field(default_factory=dict)
    search: Literal["rows", "calls"] = "rows"
    constants_inside: bool = False
    tuples: Literal["operands", "users", "never"] = "operands"
    merge: Literal["late", "early", "none"] = "late"
    bind_constants: bool = True
    outputs: Literal["used", "computed"] = "used"
    unfold: bool = False
    worth: frozenset[str] = frozenset()
    keep: Callable[[Function], bool] | None = None
    not_worth: str = "it could go, but its region has no product in it and is not worth the way"
    naming: Naming = TVM_NAMES
    integers: bool = False


#: TVM's steps, for no accelerator in particular.
TVM_STEPS = Recipe("")

__all__ = ["TVM_STEPS", "OpCheck", "Recipe"]
