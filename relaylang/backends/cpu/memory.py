"""The plan of a program's memory: a place for each value, reused after its last use.

Values that the prepare list makes and a run reads lie in the fixed memory, the others in the arena. Some kernels may write
over an operand (`Kernel.in_place`). They do so where nothing else needs its value. So an operator that writes a few
rows of a tensor copies the tensor only where its old value is needed, too.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Sequence

from relaylang.backends.cpu.origin import calls_of
from relaylang.backends.cpu.program import Instruction, Outside, Program, Run, Slot, Turns, number_sites, walk
from relaylang.diagnostics import Span
from relaylang.ir import Call, Function, post_order
from relaylang.kernels.sizes import Size, largest
from relaylang.runtime.failures import STATUS

#: More slots than these are placed in order of time, which is linear.
_MANY = 1500
#: The most operators that a note lists.
_MOST_NAMES = 4
#: The number of orders to try, and the most slots for which all are tried.
_TRIES, _FEW = 40, 400


def plan(program: Program) -> None:
    """Give every slot its place, and the program the sizes of its memory."""
    prepare, run = walk(program.prepare), walk(program.run)
    made_before = {id(s) for item in prepare for s in item.outputs}
    _made_in_outputs(program, run, made_before)
    for item in run:
        for slot in item.reads():
            if id(slot) in made_before and not slot.fixed:
                slot.fixed = True
                slot.offset = program.fixed_bytes
                program.fixed_bytes += slot.bytes
    for items in (prepare, run):
        slots, over = _overwritten(items, [s for s in lives(items) if not s.fixed])
        if any(isinstance(s.bytes, Size) for s in slots):
            program.arena_bytes = largest(_place_in_order(slots), program.arena_bytes)
        else:
            program.live_bytes = max(program.live_bytes, live_bytes(slots))
            program.arena_bytes = largest(place(slots), program.arena_bytes)
        if items is prepare:
            program.prepare_bytes = program.arena_bytes
        for slot, old in over:
            slot.offset = old.offset
    number_sites(program)
    if program.may_fail:
        program.arena_bytes += STATUS
    program.in_place = _overwritten_inputs(program)


def spread(program: Program) -> None:
    """Give every slot of a planned program a place of its own. All values last until the next run."""
    total = 0
    for slot in program.in_outputs:
        slot.kind = "made"
    for items in (walk(program.prepare), walk(program.run)):
        for slot in lives(items):
            if not slot.fixed:
                slot.offset = total
                total += slot.bytes
    program.arena_bytes = program.prepare_bytes = total + (STATUS if program.may_fail else 0)


def lives(items: Sequence[Instruction]) -> list[Slot]:
    """The slots that instructions make, with the first and the last instruction that touches each."""
    slots: dict[int, Slot] = {}
    for position, item in enumerate(items):
        touched = [*item.reads(), *item.outputs]
        if isinstance(item, (Run, Outside, Turns)) and item.work is not None:
            touched.append(item.work)
        for slot in touched:
            if slot.kind != "made":
                continue
            if slot.first < 0:
                slot.first = position
            slot.last = position
            slots[id(slot)] = slot
    return list(slots.values())


def _overwritten(items: Sequence[Instruction], slots: list[Slot]) -> tuple[list[Slot], list[tuple[Slot, Slot]]]:
    """The slots that need a place, and those that are written over another one, with that one.

    The lives of overwritten slots grow by those of their successors.
    """
    known = {id(s) for s in slots}
    heir: dict[int, Slot] = {}
    over: list[tuple[Slot, Slot]] = []
    for position, item in enumerate(items):
        if not isinstance(item, Run) or not item.kernel.in_place:
            continue
        new = item.outputs[0]
        if id(new) not in known or new.first != position or len(item.outputs) != 1 or not item.results[0].is_whole:
            continue
        for old in (view.slot for view in item.inputs):
            first = heir.get(id(old), old)
            ends = first.last == old.last == position and old.first < position
            if id(old) in known and ends and old.bytes == new.bytes and _reads_in_place(item, old):
                first.last = new.last
                heir[id(new)] = first
                over.append((new, first))
                break
    return [s for s in slots if id(s) not in heir], over


def _over_operand(item: Instruction) -> bool:
    """Whether an instruction has one result, which it may write over an operand."""
    return isinstance(item, Run) and bool(item.kernel.in_place) and len(item.outputs) == 1 and item.results[0].is_whole


def _first_and_last(items: Sequence[Instruction]) -> tuple[dict[int, int], dict[int, int]]:
    """The first instruction that writes each slot, and the last that touches it, by the slot's identity."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for position, item in enumerate(items):
        first.update({id(s): position for s in item.outputs if id(s) not in first})
        last.update({id(s): position for s in (*item.reads(), *item.outputs)})
    return first, last


def _made_in_outputs(program: Program, items: Sequence[Instruction], made_before: Collection[int]) -> None:
    """Make values where the outputs lie that are written over them, and so on back to the first of such a chain."""
    first, last = _first_and_last(items)
    at_root = set(map(id, program.run))
    makers = {id(s): item for item in program.run for s in item.outputs}
    for position in reversed(range(len(items))):
        item = items[position]
        if id(item) not in at_root or not _over_operand(item):
            continue
        new = item.outputs[0]
        if new.kind != "output" or first[id(new)] != position:
            continue
        for old in (view.slot for view in item.inputs):  # type: ignore[union-attr]
            own = old.kind == "made" and id(old) not in made_before and id(old) in makers and last[id(old)] == position
            if own and (old.shape, old.dtype) == (new.shape, new.dtype) and _reads_in_place(item, old):  # type: ignore[arg-type]
                old.kind, old.number = "output", new.number
                program.in_outputs.append(old)
                break


def _overwritten_inputs(program: Program) -> list[tuple[int, int]]:
    """The inputs and outputs, by their numbers, that may be the same memory: a run needs nothing of the input afterwards."""
    items = walk(program.run)
    at_root = set(map(id, program.run))
    written: dict[int, int] = {}
    read: dict[int, int] = {}
    for position, item in enumerate(items):
        written.update({s.number: position for s in item.outputs if s.kind == "output" and s.number not in written})
        read.update({s.number: position for s in item.reads() if s.kind == "input"})
    found = []
    for number, position in sorted(written.items()):
        item = items[position]
        if id(item) not in at_root or not _over_operand(item):
            continue
        new = item.outputs[0]
        for old in (view.slot for view in item.inputs):  # type: ignore[union-attr]
            fits = old.kind == "input" and read.get(old.number) == position and (old.shape, old.dtype) == (new.shape, new.dtype)
            if fits and _reads_in_place(item, old):  # type: ignore[arg-type]
                found.append((old.number, number))
                break
    return found


def _reads_in_place(run: Run, slot: Slot) -> bool:
    """Whether a kernel reads all of a slot, by operands that its result may be written over."""
    readers = {n: view for n, view in enumerate(run.inputs) if view.slot is slot}
    return all(v.is_whole for v in readers.values()) and readers.keys() <= run.kernel.in_place and slot not in run.packs


def live_bytes(slots: Sequence[Slot]) -> int:
    """The most bytes that are in use at once: no arena can be smaller."""
    change: dict[int, int] = {}
    for slot in slots:
        change[slot.first] = change.get(slot.first, 0) + slot.bytes
        change[slot.last + 1] = change.get(slot.last + 1, 0) - slot.bytes
    now = most = 0
    for position in sorted(change):
        now += change[position]
        most = max(most, now)
    return most


def place(slots: Sequence[Slot]) -> int:
    """Offsets for slots with known lives, none of which overlap in time and place. Returns the arena's size.

    Slots get the lowest place that is free throughout their lives, one after the other. The order decides: of several,
    the best counts. Slots that end at the top come first in the next try.
    """
    if len(slots) > _MANY:
        return _place_in_order(slots)
    least = live_bytes(slots)
    orders = [
        sorted(slots, key=lambda s: (-s.bytes, s.first)),
        sorted(slots, key=lambda s: (-s.bytes * (s.last - s.first + 1), s.first)),
        sorted(slots, key=lambda s: (s.first - s.last, -s.bytes)),
        sorted(slots, key=lambda s: (s.first, -s.bytes)),
    ]
    best, offsets = -1, [0] * len(slots)
    for number in range(_TRIES if len(slots) <= _FEW else len(orders)):
        order = orders[number] if number < len(orders) else orders[-1]
        total = _place(order)
        if best < 0 or total < best:
            best, offsets = total, [s.offset for s in slots]
        if best == least:
            break
        if number >= len(orders) - 1:
            top = {id(s) for s in order if s.offset + s.bytes == total}
            orders.append([*(s for s in order if id(s) in top), *(s for s in order if id(s) not in top)])
    for slot, offset in zip(slots, offsets):
        slot.offset = offset
    return max(best, 0)


def _place(slots: Sequence[Slot]) -> int:
    """Offsets for slots in this order. Returns the arena's size."""
    placed: list[Slot] = []
    offsets: list[int] = []
    total = 0
    for slot in slots:
        at = 0
        for other in placed:  # in order of offset
            if other.last < slot.first or other.first > slot.last:
                continue
            if other.offset - at >= slot.bytes:
                break
            at = max(at, other.offset + other.bytes)
        slot.offset = at
        total = max(total, at + slot.bytes)
        index = bisect_left(offsets, at)
        placed.insert(index, slot)
        offsets.insert(index, at)
    return total


def _place_in_order(slots: Sequence[Slot]) -> int:
    starts: dict[int, list[Slot]] = {}
    ends: dict[int, list[Slot]] = {}
    for slot in slots:
        starts.setdefault(slot.first, []).append(slot)
        ends.setdefault(slot.last, []).append(slot)
    free: dict[int, list[int]] = {}  # stretches by size
    total = 0
    for position in sorted({*starts, *ends}):
        for slot in starts.get(position, ()):
            same = free.get(slot.bytes)
            if same:
                slot.offset = same.pop()
            else:
                slot.offset = total
                total += slot.bytes
        for slot in ends.get(position, ()):
            free.setdefault(slot.bytes, []).append(slot.offset)
    return total


def most_in_use(programs: Iterable[Program]) -> tuple[Span | None, list[str]]:
    """The place of the kernel at which most memory is in use, and a note about it."""
    used, function = max((_peak(program) for program in programs), key=lambda peak: peak[0], default=(0, None))
    if function is None:
        return None, []
    calls = [call for f in (function, *_inside(function)) for call in calls_of(f)]
    names = list(dict.fromkeys(call.op.name for call in calls))  # type: ignore[attr-defined]
    span = next((call.span for call in reversed(calls) if call.span is not None), function.span)
    shown = ", ".join(names[:_MOST_NAMES]) + (", ..." if len(names) > _MOST_NAMES else "")
    return span, [f"most is in use at {shown}: {used} bytes"]


def _inside(function: Function) -> list[Function]:
    """The composites of a region."""
    return [n.op for n in post_order(function.body) if isinstance(n, Call) and isinstance(n.op, Function)]


def _peak(program: Program) -> tuple[int, Function | None]:
    """The most bytes that are in use at once, and the kernel that runs then."""
    items = walk(program.run)
    change = [0] * (len(items) + 1)
    for slot in _slots(items):
        change[slot.first] += slot.bytes
        change[slot.last + 1] -= slot.bytes
    now = 0
    best: tuple[int, Function | None] = (0, None)
    for item, step in zip(items, change):
        now += step
        if now > best[0] and isinstance(item, (Run, Outside, Turns)):
            best = now, item.function
    return best


def _slots(items: Sequence[object]) -> list[Slot]:
    """The slots of the arena. The lives of those that are written over another one are its own."""
    slots: dict[int, Slot] = {}
    for item in items:
        if isinstance(item, (Run, Outside, Turns)):
            own = [*item.outputs, *([item.work] if item.work is not None else [])]
            slots.update({id(s): s for s in own if s.kind == "made" and not s.fixed and s.first >= 0})
    return list(slots.values())
