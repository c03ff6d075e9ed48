"""A-normal form, basic block normal form, graph normal form, and continuation passing style."""
