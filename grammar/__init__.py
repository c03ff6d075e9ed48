"""The grammar of Relay text and what editors need of it."""
