"""Completion at the cursor, for the session and for editors: the offers that fit the place, the best first.

`place` finds the place among the tokens in front of the cursor, so the text may be wrong or unfinished. `offers` lists
the offers of a place. `fitting` says which types fit there, and `ranking` compares offers with the letters typed.
"""

from relaylang.repl.completion.names import Names
from relaylang.repl.completion.offers import complete
from relaylang.repl.completion.ranking import Offer, Suggestion, ranked

__all__ = ["Names", "Offer", "Suggestion", "complete", "ranked"]
