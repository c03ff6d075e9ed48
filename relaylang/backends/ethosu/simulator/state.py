"""What a command stream has set so far, and the faults that name the command they come from."""

from __future__ import annotations

from relaylang.backends.ethosu.registers import FIELDS
from relaylang.backends.ethosu.stream import Command, Stream
from relaylang.diagnostics import RelayError, error

#: The most elements that a stream may read and write, and products that it may compute: minutes of work.
_MOST_WORK = 1 << 38


class State:
    """The registers. Reading one that no command has set is a fault: the hardware would compute with anything."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.command = Command(0, "the start", 0, None)
        self._set: dict[str, Command] = {}
        self._fields = FIELDS[stream.product]
        self._spent = 0

    @property
    def is_u85(self) -> bool:
        return self.stream.product == "ethos-u85"

    def set(self, command: Command) -> None:
        self._set[command.name] = command

    def fault(self, why: str) -> RelayError:
        """The error about the command that is executed now."""
        return RelayError(error("R0616", f"the command at byte {self.command.at:#x}, {self.command.name}, {why}"))

    def spend(self, work: int) -> None:
        """Count elements or products; a stream that wants far too many is refused."""
        self._spent += work
        if self._spent > _MOST_WORK:
            raise self.fault(f"is where the stream exceeds {_MOST_WORK} elements and products, the most that are simulated")

    def _of(self, name: str) -> Command:
        command = self._set.get(f"SET_{name}")
        if command is None:
            raise self.fault(f"needs {name}, which no command before it sets")
        return command

    def place(self, name: str) -> int:
        """The byte of the command that has set a register."""
        return self._of(name).at

    def __getitem__(self, name: str) -> int:
        """A register of 16 bits, without sign."""
        return self._of(name).param

    def field(self, name: str, field: str) -> int:
        """A field of a register; 0 where the product lacks it."""
        place = self._fields.get(name, {}).get(field)
        if place is None:
            return 0
        low, bits = place
        return self._of(name).param >> low & ((1 << bits) - 1)

    def signed(self, name: str) -> int:
        value = self._of(name).param
        return value - (1 << 16) if value & 0x8000 else value

    def address(self, name: str) -> int:
        """A register of 48 bits: an address, a stride or a length."""
        return self._of(name).address

    def aligned(self, name: str, multiple: int, what: str = "") -> int:
        """A register of 48 bits that holds a multiple of a number. `what` is the name of the register in messages."""
        address = self.address(name)
        if address % multiple:
            raise self.fault(f"has {what or name} at {address:#x}, which is not a multiple of {multiple}")
        return address

    def payload(self, name: str) -> int:
        """The second word of a register: a number of 32 bits, without sign."""
        return self._of(name).payload or 0

    def scale(self, name: str) -> tuple[int, int]:
        """A multiplier of 32 bits, and its shift to the right."""
        return self.payload(name), self._of(name).param & 0x3F
