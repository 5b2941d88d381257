"""The load posts every order once, and keeps apart what was accepted and what was not."""

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from project.demo.load import Load


class Shop(ThreadingHTTPServer):
    daemon_threads = True
    status = 201

    def __init__(self):
        super().__init__(("127.0.0.1", 0), ShopHandler)
        self.bodies = []


class ShopHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        length = int(self.headers["Content-Length"])
        self.server.bodies.append(json.loads(self.rfile.read(length)))
        answer = json.dumps({"id": len(self.server.bodies)}).encode()
        self.send_response(self.server.status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def shop():
    server = Shop()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def load_on(port: int, orders: int = 12, **changes: object) -> Load:
    return Load(port=port, orders=orders, seconds=0.05, posters=4, **changes)


def test_every_order_is_posted_once(shop):
    load = load_on(shop.server_address[1], marked={3, 5})
    load.run(threading.Event())
    emails = sorted(body["email"] for body in shop.bodies)
    assert emails == sorted(f"customer{number}@example.com" for number in range(12))
    assert sorted(load.result.accepted) == list(range(1, 13))
    assert len(load.result.seconds) == 12
    assert {body["email"] for body in shop.bodies if body["marked"]} == {
        "customer3@example.com",
        "customer5@example.com",
    }


def test_an_order_that_is_not_accepted_is_told_with_its_status(shop):
    shop.status = 500
    load = load_on(shop.server_address[1], orders=2)
    load.run(threading.Event())
    assert load.result.accepted == []
    assert all(": 500 " in text for text in load.result.refused)
    assert len(load.result.refused) == 2


def test_a_server_that_is_not_there_refuses_orders_and_raises_nothing():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    load = load_on(port, orders=3)
    load.run(threading.Event())
    assert len(load.result.refused) == 3


def test_a_stopped_load_posts_no_more(shop):
    stop = threading.Event()
    stop.set()
    load = load_on(shop.server_address[1])
    load.run(stop)
    assert shop.bodies == []
