"""The conversions of layers and operations, by topic. Each file has its `RULES`."""
