"""The toolchain of the Relay IR text language."""
