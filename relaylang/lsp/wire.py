"""The layer between an editor and pygls: headers in any case, and refused messages without tracebacks."""

from __future__ import annotations

import logging
import re
from typing import BinaryIO

from pygls.exceptions import JsonRpcException

_LENGTH = re.compile(rb"\s*content-length\s*:\s*(\d+)\s*", re.I)
#: What pygls logs when a message is none of the protocol's.
_NO_MESSAGE = ("Unable to deserialize message", "Unable to handle message")


class Headers:
    """A stream that rewrites headers for pygls. Names of headers may have any case, lines may end with \\n."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def readline(self) -> bytes:
        line = self._stream.readline()
        match = _LENGTH.fullmatch(line)
        if match is not None:
            return b"Content-Length: %d\r\n" % int(match[1])
        return line

    def read(self, count: int = -1) -> bytes:
        return self._stream.read(count)

    def close(self) -> None:
        self._stream.close()


def worth_a_line(record: logging.LogRecord) -> bool:
    """Whether to log a record: a line for each wrong message.

    A refused request's answer has the reason. A request that the editor gives up may have its answer already.
    """
    if str(record.msg).startswith("Cancel notification"):
        return False
    if record.exc_info and isinstance(record.exc_info[1], JsonRpcException):
        return False
    for title in _NO_MESSAGE:
        if str(record.msg).startswith(title):
            record.msg, record.args, record.exc_info = title, (), None
    return True


def quiet() -> None:
    """Put the filter in front of what pygls logs."""
    for name in ("pygls.protocol.json_rpc", "pygls.server", "pygls.io_"):
        logging.getLogger(name).addFilter(worth_a_line)


__all__ = ["Headers", "quiet", "worth_a_line"]
