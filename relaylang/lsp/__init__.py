"""Relay in editors: what an editor asks about a text (`analysis`, `features`), and the server that it asks (`server`)."""
