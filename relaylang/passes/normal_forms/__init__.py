"""A-normal form, basic block normal form, graph normal form, continuation passing style."""
