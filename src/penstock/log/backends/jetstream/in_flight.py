"""Operations on their way: what is known of each, their bounds, and who must wait for whom."""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from penstock.errors import TryAgain
from penstock.log.backends.jetstream.codec import Message, OperationId
from penstock.log.backends.outcomes import unanswered
from penstock.log.operations import AppendRows, Mark, Operation, TakeQuery, payload_bytes
from penstock.settings.server import Settings

Lane = tuple[str, ...]


@dataclass(eq=False)
class Waiting:
    """An operation that is not answered yet. Its number is given when it is first published."""

    operation: Operation
    size: int
    future: Future[Any] = field(default_factory=unanswered)
    id: OperationId | None = None
    messages: list[Message] = field(default_factory=list)
    unacked: set[int] = field(default_factory=set)
    sent_at_s: float = 0.0
    failed: bool = False
    expected: int | None = None
    attempt: int = 0


def lane_of(operation: Operation) -> Lane | None:
    """Operations of one lane are published one after the other.

    A message that is published again may come after its successors. Where that would change an
    answer, the successor waits: a producer's sequences go up, and a task log has one last message.
    """
    match operation:
        case TakeQuery():
            return ("t", operation.query)
        case Mark():
            return ("t", operation.marker.query)
        case AppendRows() if operation.producer is not None and operation.sequence is not None:
            return ("p", operation.stream, operation.producer)
    return None


class Lanes:
    """Lanes, and the operation at the head of each; only the head may be published."""

    def __init__(self) -> None:
        self._behind: dict[Lane, deque[Waiting]] = {}

    def enter(self, waiting: Waiting) -> bool:
        """Whether the operation may go now; otherwise `leave` gives it out later."""
        lane = lane_of(waiting.operation)
        if lane is None:
            return True
        if lane in self._behind:
            self._behind[lane].append(waiting)
            return False
        self._behind[lane] = deque()
        return True

    def leave(self, lane: Lane) -> Waiting | None:
        """The head has been answered: the one that may go now."""
        behind = self._behind.get(lane)
        if behind:
            return behind.popleft()
        self._behind.pop(lane, None)
        return None


class Bounds:
    """Holds what is unanswered, and refuses more than the settings allow."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._unanswered: set[Waiting] = set()
        self._bytes = 0
        self._closed = False
        self._none = threading.Condition(self._lock)

    def admit(self, operation: Operation) -> Waiting:
        size = payload_bytes(operation)
        with self._lock:
            if self._closed:
                raise TryAgain("the server is stopping; try again when it is back", code="stopping")
            full = self._bytes + size > self._settings.queue_bytes_max
            count = len(self._unanswered)
            if count >= self._settings.queue_max or (full and count):
                raise TryAgain(
                    f"{count} operations with {self._bytes} bytes wait for the log, which is "
                    "the bound; try again, or send fewer and larger requests",
                    code="busy",
                )
            waiting = Waiting(operation, size)
            self._unanswered.add(waiting)
            self._bytes += size
        return waiting

    def release(self, waiting: Waiting) -> None:
        with self._lock:
            self._unanswered.discard(waiting)
            self._bytes -= waiting.size
            if not self._unanswered:
                self._none.notify_all()

    @property
    def count(self) -> int:
        return len(self._unanswered)

    def unanswered(self) -> list[Waiting]:
        """All operations without an answer: to be published, behind another, or to be seen."""
        with self._lock:
            return list(self._unanswered)

    def close(self, seconds_max: float) -> bool:
        """Admit nothing more, and wait until nothing is left; whether that came in time."""
        with self._lock:
            self._closed = True
            return self._none.wait_for(lambda: not self._unanswered, seconds_max)
