"""The standard library: definitions in Relay text, and the functions that put them into modules."""
