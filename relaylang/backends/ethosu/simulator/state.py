"""What a command stream has set so far, and the faults that name the command they come from."""

from __future__ import annotations

from relaylang.backends.ethosu.stream import Command
from relaylang.diagnostics import RelayError, error


class State:
    """The registers. Reading one that no command has set is a fault: the hardware would compute with anything."""

    def __init__(self) -> None:
        self.command = Command(0, "the start", 0, None)
        self._set: dict[str, Command] = {}

    def set(self, command: Command) -> None:
        self._set[command.name] = command

    def fault(self, why: str) -> RelayError:
        """The error about the command that is executed now."""
        return RelayError(error("R0616", f"the command at byte {self.command.at:#x}, {self.command.name}, {why}"))

    def _of(self, name: str) -> Command:
        found = self._set.get(f"SET_{name}")
        if found is None:
            raise self.fault(f"needs {name}, which no command before it sets")
        return found

    def __getitem__(self, name: str) -> int:
        """A register of 16 bits, without sign."""
        return self._of(name).param

    def signed(self, name: str) -> int:
        value = self._of(name).param
        return value - (1 << 16) if value & 0x8000 else value

    def address(self, name: str) -> int:
        """A register of 48 bits: an address, a stride or a length."""
        return self._of(name).address

    def scale(self, name: str) -> tuple[int, int]:
        """A multiplier of 32 bits, and its shift to the right."""
        found = self._of(name)
        return found.payload or 0, found.param & 0x3F
