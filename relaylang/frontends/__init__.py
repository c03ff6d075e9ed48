"""Importers: networks of other formats become Relay programs. `common/` is shared; a format is one package beside it."""
