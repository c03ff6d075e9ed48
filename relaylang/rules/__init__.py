"""One table per transformation, from an operator's name to its rule.

Each module or package here has a mapping `RULES`, and says what a rule gets and returns. The walks that use the tables
stand in `relaylang.passes`. Facts about an operator itself are traits of its record in `relaylang.ops`.
"""
