"""What the driver and the template say to each other: JSON, each message with its length before it."""

from __future__ import annotations

import socket
import struct
from contextlib import suppress
from typing import Final

import msgspec

from foresail.core.words import AttemptId

_HEAD: Final = struct.Struct("!I")


class _Message(msgspec.Struct, frozen=True, tag=True, tag_field="is", kw_only=True):
    pass


class Begin(_Message, frozen=True, kw_only=True):
    """To the template: begin the attempt whose grant lies in its folder."""

    attempt: AttemptId


class Signal(_Message, frozen=True, kw_only=True):
    """To the template: send a signal to the whole group of an attempt."""

    attempt: AttemptId
    number: int


class Ready(_Message, frozen=True, kw_only=True):
    """From the template: it has done the imports. `warm`: attempts inherit them; else each does them itself."""

    warm: bool
    why: str = ""


class Started(_Message, frozen=True, kw_only=True):
    attempt: AttemptId
    pid: int


class Refused(_Message, frozen=True, kw_only=True):
    """From the template: the host could not make a process for the attempt."""

    attempt: AttemptId
    why: str


class Ended(_Message, frozen=True, kw_only=True):
    """From the template: the attempt and every process of its group are gone. `code` below 0: minus the signal.

    `rank`: whose end it was that ended the attempt.
    """

    attempt: AttemptId
    code: int
    rank: int = 0


Order = Begin | Signal
Answer = Ready | Started | Refused | Ended
Message = Order | Answer

_decoder: msgspec.json.Decoder[Message] = msgspec.json.Decoder(Message)


class Channel:
    """One end of a stream socket."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._rest = b""

    def fileno(self) -> int:
        return self._end.fileno()

    def send(self, message: Message) -> None:
        """Send one message.

        Raises:
            OSError: the other side is gone.
        """
        data = msgspec.json.encode(message)
        self._end.sendall(_HEAD.pack(len(data)) + data)

    def receive(self) -> list[Message]:
        """Messages that have come in; waits where none has.

        Raises:
            EOFError: the other side is gone.
        """
        try:
            chunk = self._end.recv(1 << 16)
        except ConnectionError:
            chunk = b""
        if not chunk:
            raise EOFError
        self._rest += chunk
        return list(iter(self._next, None))

    def _next(self) -> Message | None:
        if len(self._rest) < _HEAD.size:
            return None
        (size,) = _HEAD.unpack_from(self._rest)
        if len(self._rest) < _HEAD.size + size:
            return None
        data, self._rest = self._rest[_HEAD.size : _HEAD.size + size], self._rest[_HEAD.size + size :]
        return _decoder.decode(data)

    def close(self) -> None:
        """Close this process's descriptor; others that hold one may go on."""
        self._end.close()

    def hang_up(self) -> None:
        """End the conversation for every process that holds either end."""
        with suppress(OSError):
            self._end.shutdown(socket.SHUT_RDWR)
        self._end.close()
