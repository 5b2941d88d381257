"""The gateway does the work of a key once, whatever it answers, and its ledger says so."""

import http.client
import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from project.gateway.faults import Fault, FaultPlan
from project.gateway.ledger import Ledger, read_ledger
from project.gateway.server import GatewayServer
from project.shop import mail, payments
from project.shop.remote import RemoteError

SOUND = FaultPlan(late_rate=0, error_rate=0)
BROKEN = FaultPlan(late_rate=0, error_rate=1)


@pytest.fixture
def ledger_file(tmp_path):
    return tmp_path / "ledger.jsonl"


@pytest.fixture
def serve(ledger_file, settings):
    """Start a gateway with a fault plan; the shop's client finds it."""
    servers = []

    def start(plan):
        listener = socket.create_server(("127.0.0.1", 0))
        server = GatewayServer(listener, Ledger(ledger_file), plan)
        servers.append(server)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}).start()
        settings.GATEWAY_URL = f"http://127.0.0.1:{server.server_address[1]}"
        settings.GATEWAY_TIMEOUT_SECONDS = 5
        return server

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()
        server.ledger.close()


def test_the_same_key_gets_the_first_answer_and_does_nothing_more(serve, ledger_file):
    serve(SOUND)
    first = payments.charge(1, 500, "key")
    assert payments.charge(1, 500, "key") == first
    assert worked(ledger_file) == [True, False]


def test_another_key_does_the_work_again(serve, ledger_file):
    serve(SOUND)
    assert payments.charge(1, 500, "one") != payments.charge(1, 500, "two")
    assert worked(ledger_file) == [True, True]


def test_charges_and_mails_keep_their_keys_apart(serve, ledger_file):
    serve(SOUND)
    payments.charge(1, 500, "key")
    mail.send_receipt(1, "a@example.com", "key")
    assert [delivery.kind for delivery in read_ledger(ledger_file)] == ["charge", "mail"]
    assert worked(ledger_file) == [True, True]


def test_an_error_comes_after_the_work_and_a_repetition_finds_it_done(serve, ledger_file):
    server = serve(BROKEN)
    with pytest.raises(RemoteError):
        payments.charge(1, 500, "key")
    server.plan = SOUND
    assert payments.charge(1, 500, "key") == "charge-1"
    assert worked(ledger_file) == [True, False]


def test_a_late_answer_comes_after_the_work_and_the_client_has_given_up(
    serve, ledger_file, settings
):
    serve(FaultPlan(late_rate=1, error_rate=0, late_seconds=0.5))
    settings.GATEWAY_TIMEOUT_SECONDS = 0.1
    with pytest.raises(RemoteError):
        mail.send_receipt(1, "a@example.com", "key")
    assert worked(ledger_file) == [True]


def test_a_key_used_for_another_order_is_refused(serve, ledger_file):
    serve(SOUND)
    payments.charge(1, 500, "key")
    with pytest.raises(RemoteError):
        payments.charge(2, 500, "key")
    assert worked(ledger_file) == [True]


def test_many_deliveries_of_one_key_at_once_do_the_work_once(ledger_file):
    ledger = Ledger(ledger_file)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: ledger.deliver("charge", "key", "1"), range(40)))
    ledger.close()
    assert sum(delivery.worked for delivery in found) == 1
    assert worked(ledger_file).count(True) == 1
    assert [delivery.number for delivery in read_ledger(ledger_file)] == list(range(1, 41))


def test_the_ledger_remembers_its_keys_over_a_restart(ledger_file):
    before = Ledger(ledger_file)
    first = before.deliver("charge", "key", "1")
    before.close()
    after = Ledger(ledger_file)
    again = after.deliver("charge", "key", "1")
    after.close()
    assert (again.number, again.worked) == (2, False)
    assert after.receipt(again) == before.receipt(first)


@pytest.mark.parametrize(
    ("path", "key", "body", "status"),
    [
        ("/charges", "", {"reference": "1"}, 400),
        ("/charges", "key", {}, 400),
        ("/charges", "key", [], 400),
        ("/refunds", "key", {"reference": "1"}, 404),
    ],
)
def test_a_request_that_cannot_be_acted_on_is_refused(serve, ledger_file, path, key, body, status):
    server = serve(SOUND)
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=5)
    connection.request("POST", path, json.dumps(body), {"Idempotency-Key": key})
    assert connection.getresponse().status == status
    connection.close()
    assert worked(ledger_file) == []


def test_the_faults_of_a_seed_are_the_same_every_time():
    assert faults(seed=1) == faults(seed=1)
    assert faults(seed=1) != faults(seed=2)
    assert set(faults(seed=1)) == {Fault.NONE, Fault.LATE, Fault.ERROR}


def faults(*, seed: int) -> list[Fault]:
    plan = FaultPlan(seed=seed, late_rate=0.1, error_rate=0.1)
    return [plan.fault_of(number) for number in range(1, 301)]


def worked(ledger_file) -> list[bool]:
    return [delivery.worked for delivery in read_ledger(ledger_file)]
