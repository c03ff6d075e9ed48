"""The standard definitions in Relay text. `relaylang.prelude` reads them; in Python `relaylang.std` is the operator."""
