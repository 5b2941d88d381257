"""The ledger: an append-only file of deliveries, and the answers that follow from it.

Contract: the first delivery of a (kind, key) does the work; every later one gets the first
answer, does nothing, and is written down as a repetition. The file holds one JSON object a line,
in the order of arrival, and is read back when the server starts again.
"""

import json
import threading
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path


class KeyReusedError(Exception):
    """The idempotency key was first used for another request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One request that reached the server.

    number: 1, 2, … in order of arrival. kind: "charge" or "mail". reference: the order it is
    for, as the client names it. worked: False for a repetition, which did nothing.
    """

    number: int
    kind: str
    key: str
    reference: str
    worked: bool


class Ledger:
    """Deliveries in arrival order, kept in `path`. Safe for many threads of one process."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._first: dict[tuple[str, str], Delivery] = {}
        self._count = 0
        for delivery in read_ledger(path):
            self._remember(delivery)
        self._file = path.open("a", encoding="utf-8")

    def deliver(self, kind: str, key: str, reference: str) -> Delivery:
        """Do the work unless this key has done it, write the delivery down, and return it.

        Raise KeyReusedError if the key belongs to another reference. One lock covers looking and
        doing: two deliveries of one key at the same instant must not both find it new.
        """
        with self._lock:
            first = self._first.get((kind, key))
            if first and first.reference != reference:
                raise KeyReusedError(f"Key {key} was used for {first.reference}, not {reference}.")
            delivery = Delivery(
                number=self._count + 1, kind=kind, key=key, reference=reference, worked=not first
            )
            self._file.write(json.dumps(asdict(delivery)) + "\n")
            self._file.flush()
            self._remember(delivery)
            return delivery

    def receipt(self, delivery: Delivery) -> str:
        """Return the number of the work behind `delivery`: the same for every repetition."""
        return f"{delivery.kind}-{self._first[delivery.kind, delivery.key].number}"

    def close(self) -> None:
        """Close the file; nothing more can be delivered."""
        self._file.close()

    def _remember(self, delivery: Delivery) -> None:
        self._count = delivery.number
        self._first.setdefault((delivery.kind, delivery.key), delivery)


def read_ledger(path: Path) -> Iterator[Delivery]:
    """Yield the deliveries written in `path`, oldest first; none if there is no such file."""
    if not path.exists():
        return
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield Delivery(**json.loads(line))
