"""The table shows what happened; the verdict names every violation."""

import io
from collections import Counter
from datetime import UTC, datetime

from rich.console import Console

from project.demo.audit import Violation, audit
from project.demo.facts import Evidence, Kill, Thaw
from project.demo.progress import Progress, Snapshot
from project.demo.refusal import Refusal
from project.demo.report import Report
from project.demo.table import MAX_VIOLATIONS, print_report
from tests.demo.evidence import clean, with_effect


def test_the_table_counts_orders_jobs_and_effects():
    rows = dict(report(clean(repeated=Counter(mail=2))).rows())
    assert (rows["orders"], rows["jobs"], rows["stock effects"]) == ("3", "9", "3")
    assert rows["mails"].startswith("3 (2 repeated")
    assert rows["lost"] == "0"


def test_the_table_says_how_zombies_were_refused():
    thaws = [thaw(Refusal.GUARD), thaw(Refusal.EXIT), thaw(Refusal.NOT_REFUSED)]
    zombies = dict(report(clean(), thaws=thaws).rows())["frozen workers refused"]
    assert zombies == "2 of 3 when thawed: 1 by the guard, 1 by its own exit, 1 NOT refused"


def test_the_table_tells_children_from_supervisors():
    kills = [Kill(datetime.now(UTC), what, 1) for what in ("child", "child", "supervisor")]
    killed = dict(report(clean(), kills=kills).rows())["kills (SIGKILL)"]
    assert killed == "3: 2 workers, 1 supervisors"


def test_the_table_counts_the_dead_and_what_they_interrupted():
    rows = dict(report(clean(), deaths=7).rows())
    assert (rows["workers that died"], rows["jobs interrupted, run again"]) == (
        "7",
        "0 (0 attempts)",
    )


def test_nothing_measured_is_no_figure():
    assert dict(report(clean()).rows())["enqueue over HTTP p50 / p95 / p99"] == "–"


def test_a_clean_report_says_so():
    assert "Audit passed" in printed(report(clean()))


def test_every_violation_is_printed_as_one_line():
    text = printed(report(with_effect("stock", {2: 1})))
    assert "Audit FAILED: 1 violations" in text
    assert "  duplicate: stock of order 2 happened 2 times\n" in text


def test_very_many_violations_are_counted():
    many = [Violation("lost", f"order {number}") for number in range(MAX_VIOLATIONS + 5)]
    text = printed(report(clean(), violations=many))
    assert text.count("  lost: order") == MAX_VIOLATIONS
    assert "and 5 more" in text


def test_progress_without_a_terminal_is_plain_lines():
    output = io.StringIO()
    states = Counter(succeeded=2, ready=3, scheduled=1)
    with Progress(Console(file=output, width=200)) as progress:
        progress.say("kill -9 [7]")
        progress.show(Snapshot(accepted=2, orders=5, states=states, kills=1, thaws=0))
    said, shown = output.getvalue().splitlines()
    assert said == "kill -9 [7]"
    assert "orders 2/5 · jobs done 2/6 · running 0 · waiting 4" in shown


def report(evidence: Evidence, **given: object) -> Report:
    facts = {"violations": audit(evidence), "kills": (), "thaws": (), "enqueue_seconds": ()}
    return Report(evidence=evidence, **facts | given)


def thaw(refusal: Refusal) -> Thaw:
    return Thaw(pid=1, order_id=1, frozen_seconds=3.5, refusal=refusal)


def printed(report: Report) -> str:
    output = io.StringIO()
    print_report(Console(file=output, width=60), report)
    return output.getvalue()
