"""The load: orders over HTTP, several at once, evenly spread over a time."""

import http.client
import itertools
import json
import threading
import time
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from project.demo.options import DemoError
from project.shop.catalog import ARTICLES

ANSWER_SECONDS = 30.0
"""The longest wait for one answer of the web server."""


@dataclass(slots=True)
class LoadResult:
    """accepted: ids of orders answered with 201. seconds: how long each answer took.

    refused: what came instead of a 201, one text an order.
    """

    accepted: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


class Load:
    """Post `orders` orders to the server on `port`, spread over `seconds`, by `posters` threads.

    Order n is due at n/orders of the time. When the server is slower than that, the load falls
    behind instead of piling up connections. marked: the numbers of the orders to be marked.
    """

    def __init__(
        self,
        *,
        port: int,
        orders: int,
        seconds: float,
        posters: int,
        marked: Collection[int] = (),
    ) -> None:
        self.result = LoadResult()
        self._port = port
        self._orders = orders
        self._interval = seconds / orders
        self._posters = posters
        self._marked = marked
        self._numbers = itertools.count()

    def warm_up(self) -> None:
        """Wait until the server answers. Raise DemoError if it does not within 30 s."""
        connection = self._connection()
        try:
            connection.request("GET", "/shop/")
            status = connection.getresponse().status
        except (OSError, http.client.HTTPException) as error:
            raise DemoError(f"The web server does not answer: {error!r}") from error
        finally:
            connection.close()
        if status != 200:
            raise DemoError(f"The shop's page answers with {status}.")

    def run(self, stop: threading.Event) -> None:
        """Post all orders, or those until `stop` is set."""
        start = time.monotonic()
        with ThreadPoolExecutor(self._posters, thread_name_prefix="poster") as pool:
            futures = [pool.submit(self._post_some, start, stop) for _ in range(self._posters)]
        for future in futures:
            future.result()

    def _post_some(self, start: float, stop: threading.Event) -> None:
        connection = self._connection()
        while (number := next(self._numbers)) < self._orders:
            due = start + number * self._interval
            if stop.wait(max(0.0, due - time.monotonic())):
                break
            self._post(connection, number)
        connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self._port, timeout=ANSWER_SECONDS)

    def _post(self, connection: http.client.HTTPConnection, number: int) -> None:
        body = json.dumps(order_number(number, marked=number in self._marked))
        began = time.monotonic()
        try:
            connection.request("POST", "/shop/orders/", body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            answer = response.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()  # it reconnects by itself at the next request
            self.result.refused.append(f"order {number}: {error!r}")
            return
        if response.status != 201:
            self.result.refused.append(f"order {number}: {response.status} {answer[:200]!r}")
            return
        self.result.seconds.append(time.monotonic() - began)
        self.result.accepted.append(json.loads(answer)["id"])


def order_number(number: int, *, marked: bool) -> dict[str, object]:
    """Return the body of the demo's order `number`."""
    articles = list(ARTICLES)
    return {
        "sku": articles[number % len(articles)],
        "quantity": 1 + number % 3,
        "email": f"customer{number}@example.com",
        "marked": marked,
    }
