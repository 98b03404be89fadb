"""A link between memories as a move sees it: bytes in, bytes out, unless something happens to them."""

from __future__ import annotations

from collections import deque

__all__ = ["LinkDownError", "Wire"]


class LinkDownError(Exception):
    """The link went down while bytes were on it.

    Parameters
    ----------
    received : bytes
        What had arrived by then.
    """

    def __init__(self, received: bytes) -> None:
        super().__init__(f"link must stay up, it went down after {len(received)} bytes")
        self.received = received


class Wire:
    """Carry one burst after another; faults that were asked for befall the next ones, one each, in order.

    Attributes
    ----------
    sent_bytes : int
        Bytes given to the link so far, those of failed bursts too.
    """

    def __init__(self) -> None:
        self.sent_bytes = 0
        self._faults: deque[int | None] = deque()

    def corrupt(self, bit: int) -> None:
        """Let a bit of the burst after those already due a fault arrive inverted; counted modulo its length."""
        self._faults.append(bit)

    def cut(self) -> None:
        """Let the link go down in the middle of the burst after those already due a fault."""
        self._faults.append(None)

    def carry(self, burst: bytes) -> bytes:
        """Return what arrives of a burst.

        Raises
        ------
        LinkDownError
            If the link goes down before it ends.
        """
        self.sent_bytes += len(burst)
        if not self._faults:
            return burst
        bit = self._faults.popleft()
        if bit is None:
            raise LinkDownError(burst[: len(burst) // 2])
        place, shift = divmod(bit % (8 * len(burst)), 8)
        return burst[:place] + bytes([burst[place] ^ 1 << shift]) + burst[place + 1 :]
