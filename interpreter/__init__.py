"""The reference interpreter: what a Relay program means."""
