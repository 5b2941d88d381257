"""The Python of every page compiles and runs, as the modules that it says it is."""

import ast
import io
import json
import shlex
import sys
import types
import unittest
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, User
from django.core.management import CommandError, load_command_class
from django.db import connection
from django.test import RequestFactory

from jobqueue import TimeLimitExceeded, conf, events
from jobqueue.checks.schedules import check_schedules
from jobqueue.engine import declared
from jobqueue.engine.bulk_plan import BULK_VERBS
from jobqueue.engine.registry import registry
from jobqueue.management.jobs_commands.bulk import VERBS
from jobqueue.redaction import redact
from jobqueue.testing import eager
from tests.control.test_bulk import make
from tests.docs import shop
from tests.docs.pages import PAGES, ROOT, Block, blocks

PYTHON = [block for page in PAGES for block in blocks(page) if block.language == "python"]
WITH_CODE = sorted({block.page for block in PYTHON})
SHELL = [block for page in PAGES for block in blocks(page) if block.language == "console"]
OURS = ("runworker", "runscheduler", "runreaper", "jobs")


@pytest.mark.parametrize("block", PYTHON, ids=str)
def test_python_compiles_and_says_where_it_belongs(block: Block) -> None:
    ast.parse(block.text)
    assert block.file, "its first line is a comment with a file's name"


@pytest.mark.parametrize("block", [b for b in PYTHON if b.file == "settings.py"], ids=str)
def test_settings_are_what_the_checks_take(block: Block) -> None:
    settings: dict[str, Any] = {"BASE_DIR": ROOT}
    exec(block.text, settings)  # noqa: S102 - our own documentation
    for params in settings.get("TASKS", {}).values():
        assert params["BACKEND"] == conf.BACKEND_PATH
        assert conf.parse(params.get("OPTIONS", {}))[1] == []
    assert "jobqueue" in settings.get("INSTALLED_APPS", ["jobqueue"])


@pytest.mark.parametrize("block", SHELL, ids=str)
def test_commands_take_what_the_pages_give_them(block: Block) -> None:
    for line in block.text.splitlines():
        if "manage.py" in line:  # what else there is may go on over several lines
            words = shlex.split(line.removeprefix("$ "), comments=True)
            command, *arguments = words[words.index("manage.py") + 1 :]
            if command in OURS:
                parser = load_command_class("jobqueue", command).create_parser("manage.py", command)
                parser.parse_args(arguments)


def test_an_argument_that_does_not_exist_would_be_noticed() -> None:
    block = Block("page", 1, "console", "$ python manage.py jobs list --no-such-option\n")
    with pytest.raises((CommandError, SystemExit)):
        test_commands_take_what_the_pages_give_them(block)


# --- running ----------------------------------------

GIVEN_FILES = ("settings.py", "shop/models.py", "shop/payments.py")
"""What pages show and `tests.docs.shop` has; of the models a test says that it has them alike."""
Load = Callable[[str], dict[str, types.ModuleType]]


@pytest.fixture
def tables(_django_db_helper: None) -> Iterator[None]:
    """The tables of the documentation's shop; see also this folder's conftest."""
    with connection.schema_editor() as editor:
        for model in shop.MODELS:
            editor.create_model(model)
    yield
    if not connection.in_atomic_block:
        with connection.schema_editor() as editor:
            for model in reversed(shop.MODELS):
                editor.delete_model(model)


@pytest.fixture
def load(tables: None, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Load]:
    """Returns the modules that a page's snippets make, by file; `shop` is the documentation's."""
    tasks_before = dict(registry._tasks)
    package = types.ModuleType("shop")
    package.__path__ = []
    settings.TASKS = {"default": settings.TASKS["default"] | {"QUEUES": []}}
    for name, module in {
        "shop": package,
        "shop.models": shop,
        "shop.payments": shop,
        "shop.remote": shop,
    }.items():
        monkeypatch.setitem(sys.modules, name, module)
        setattr(package, name.rpartition(".")[2], module)
    monkeypatch.setattr(events, "_subscribers", [])
    monkeypatch.setattr(declared, "_declared", {})
    shop.keys.clear()

    def load_page(page: str) -> dict[str, types.ModuleType]:
        modules: dict[str, types.ModuleType] = {}
        for block in blocks(ROOT / page):
            if block.language == "python" and block.file not in GIVEN_FILES:
                _execute(block, modules, package, monkeypatch)
        return modules

    yield load_page
    registry._tasks.clear()
    registry._tasks.update(tasks_before)


def _execute(
    block: Block,
    modules: dict[str, types.ModuleType],
    package: types.ModuleType,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Run a snippet in its file's module, which earlier snippets may have begun."""
    name = block.file.removesuffix(".py").replace("/", ".")
    if block.file not in modules:
        modules[block.file] = types.ModuleType(name)
        monkeypatch.setitem(sys.modules, name, modules[block.file])
        setattr(package, name.rpartition(".")[2], modules[block.file])
    code = compile(block.text, f"{block}", "exec")
    exec(code, modules[block.file].__dict__)  # noqa: S102 - our own documentation


@pytest.fixture
def provided(monkeypatch: pytest.MonkeyPatch, load: Load) -> Callable[[str, str], None]:
    """Gives the shop a module that a page takes for granted."""

    def provide(file: str, text: str) -> None:
        _execute(Block("given", 1, "python", f"# {file}\n{text}"), {}, sys.modules["shop"],
                 monkeypatch)  # fmt: skip

    return provide


GIVEN = """
from django.db import transaction
from jobqueue import task
from shop.models import Order

@task(queue_name="mail")
def send_receipt(order_id):
    return f"receipt for {Order.objects.get(pk=order_id).email}"
"""
ORDERING = """
from shop.models import Order
from shop.tasks import send_receipt

def place_order(email):
    order = Order.objects.create(email=email)
    send_receipt.enqueue(order.pk)
    return order
"""


def run_cases(module: types.ModuleType) -> int:
    """Run the test cases of a snippet; return how many there were. Closes the connection."""
    suite = unittest.defaultTestLoader.loadTestsFromModule(module)
    output = io.StringIO()
    result = unittest.TextTestRunner(output).run(suite)
    assert result.wasSuccessful(), output.getvalue()
    return result.testsRun


@pytest.mark.parametrize(
    "page", [page for page in WITH_CODE if page not in ("docs/howto/testing.md",)]
)
def test_python_of_a_page_runs(load: Load, provided: Callable[[str, str], None], page: str) -> None:
    provided("shop/mailing.py", "send_receipt = None")
    load(page)


def test_view_of_the_readme(load: Load) -> None:
    modules = load("README.md")
    view = modules["shop/views.py"].create_order
    with eager() as jobs:
        response = view(RequestFactory().post("/", {"email": "kim@example.com"}))
        modules["shop/tasks.py"].charge_card.enqueue(shop.Order.objects.get().pk)
    assert response.status_code == 201
    assert [job.job_state for job in jobs] == ["succeeded", "scheduled", "succeeded"]
    assert (shop.StockMovement.objects.count(), shop.Charge.objects.count()) == (1, 1)


def test_tests_of_the_readme(load: Load) -> None:
    assert run_cases(load("README.md")["shop/tests.py"]) == 2


def test_tutorial(load: Load) -> None:
    assert run_cases(load("docs/tutorial.md")["shop/tests.py"]) == 2
    assert len(shop.keys) == 1
    assert shop.keys[0].endswith(":charge")


def test_models_of_the_tutorial_are_those_of_its_test() -> None:
    (block,) = [b for b in PYTHON if b.page == "docs/tutorial.md" and b.file == "shop/models.py"]
    for node in ast.parse(block.text).body:
        if isinstance(node, ast.ClassDef):
            told = {ast.unparse(field).partition(" = ")[0] for field in node.body}
            fields = getattr(shop, node.name)._meta.concrete_fields
            assert told == {field.name for field in fields if not field.primary_key}


def test_testing(load: Load, provided: Callable[[str, str], None]) -> None:
    provided("shop/tasks.py", GIVEN)
    provided("shop/ordering.py", ORDERING)
    assert run_cases(load("docs/howto/testing.md")["shop/tests.py"]) == 3


def test_outside_effects(load: Load) -> None:
    tasks = load("docs/howto/outside-effects.md")["shop/tasks.py"]
    order = shop.Order.objects.create(email="kim@example.com")
    with eager() as jobs:
        tasks.charge_card.enqueue(order.pk)
        tasks.import_orders.enqueue(3)
    assert [job.job_state for job in jobs] == ["succeeded", "succeeded"]
    assert shop.keys == [f"{jobs[0].id}:charge"]
    assert (shop.Charge.objects.count(), shop.Order.objects.count()) == (1, 4)
    assert jobs[1].return_value == 3


def test_long_jobs(load: Load) -> None:
    tasks = load("docs/howto/long-jobs.md")["shop/tasks.py"]
    with eager() as jobs:
        tasks.yearly_report.enqueue(2026)
    assert jobs[0].return_value == {"lines": 12}
    assert shop.Report.objects.count() == 1


def test_progress(load: Load) -> None:
    modules = load("docs/howto/progress.md")
    with eager() as jobs:
        modules["shop/tasks.py"].export_orders.enqueue()
        state = modules["shop/views.py"].export_state(RequestFactory().get("/"), jobs[0].id)
    assert json.loads(state.content) == {
        "state": "succeeded",
        "progress": "",
        "fraction": None,
        "log": ["0 orders exported"],
    }
    assert run_cases(modules["shop/tests.py"]) == 1


def test_time_limits(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = load("docs/howto/time-limits.md")["shop/tasks.py"]
    monkeypatch.setattr(tasks, "sales_of", overstay_after(tasks.sales_of, months=3))
    with eager() as jobs:
        tasks.forecast.enqueue(2026)
    assert jobs[0].return_value == 4
    assert shop.Report.objects.get().text.endswith("not finished in time")


def overstay_after(function: Callable[..., str], months: int) -> Callable[[int, int], str]:
    """Return `function`, interrupted in a later month."""

    def interrupted(year: int, month: int) -> str:
        if month > months:
            raise TimeLimitExceeded
        return function(year, month)

    return interrupted


def test_async_tasks(load: Load) -> None:
    tasks = load("docs/howto/async-tasks.md")["shop/tasks.py"]
    with eager() as jobs:
        tasks.fetch_price.enqueue("teapot")
    assert (jobs[0].job_state, jobs[0].return_value) == ("succeeded", 1290)
    assert shop.Price.objects.count() == 1


def test_limits(load: Load) -> None:
    tasks = load("docs/howto/limits.md")["shop/tasks.py"]
    assert tasks.rebuild_index.key_for([], {}) == "shop.tasks.rebuild_index"
    assert tasks.for_acme.key_for([], {}) == "shop.tasks.rebuild_index:acme"
    assert tasks.sync_customer.key_for([42], {}) == "customer:42"
    shared = [task.key_for([1], {}) for task in (tasks.send_receipt, tasks.send_reminder)]
    assert shared == ["mailgun", "mailgun"]
    assert [tasks.pack.key_for([n], {}) for n in (42, -1)] == ["shard:2", None]


def test_unique_jobs(load: Load) -> None:
    modules = load("docs/howto/unique-jobs.md")
    with eager() as jobs:
        for _ in range(2):
            modules["shop/rules.py"].on_message(7)
            modules["shop/rules.py"].send_digest.enqueue(7)
            modules["shop/keys.py"].index_page.enqueue("https://example.com/?a")
    assert len(jobs) == 4
    with eager():
        assert modules["shop/saving.py"].save(7)[1] is False


def test_retries(load: Load) -> None:
    modules = load("docs/howto/retries.md")
    shop.answers[:] = ["done", "closed", "busy", "unknown article"]
    with eager() as jobs:
        for _ in range(4):
            modules["shop/tasks.py"].push_stock.enqueue("teapot")
    assert [j.job_state for j in jobs] == ["dead", "retrying", "scheduled", "succeeded"]
    patient = modules["shop/policies.py"].patient
    assert (patient(2), patient(1, ConnectionError())) == (10.0, 60.0)


def test_schedules(load: Load, settings: Any) -> None:
    modules = load("docs/howto/schedules.md")
    options: dict[str, Any] = {}
    (block,) = [b for b in PYTHON if b.page.endswith("schedules.md") and b.file == "settings.py"]
    exec(block.text, options)  # noqa: S102 - our own documentation
    settings.TASKS = {"default": {**options["TASKS"]["default"], "QUEUES": []}}
    assert list(check_schedules("default")) == []
    assert set(declared.sync("default")) == {"nightly report", "stock", "weekly report"}

    class User:
        pk = 7

        def get_username(self) -> str:
            return "kim"

    ticks = modules["shop/reports.py"].send_report_daily(User(), 6)
    assert [(tick.hour, tick.minute) for tick in ticks] == [(6, 0)] * 3
    with eager() as jobs:
        modules["shop/tasks.py"].report.enqueue()
    assert jobs[0].return_value == "report of None"


def test_events(load: Load, capsys: pytest.CaptureFixture[str]) -> None:
    metrics = load("docs/reference/events.md")["shop/metrics.py"]
    events.emit("job.dead", task="shop.tasks.send", reason="poison")
    metrics.stop()
    assert capsys.readouterr().out == "shop.tasks.send poison\n"


def test_middleware(load: Load, settings: Any, caplog: pytest.LogCaptureFixture) -> None:
    tasks = load("docs/reference/tasks.md")["shop/tasks.py"]
    options = {"MIDDLEWARE": ["shop.middleware.timing"]}
    settings.TASKS = {"default": settings.TASKS["default"] | {"OPTIONS": options}}
    with eager() as jobs, caplog.at_level("INFO", "jobqueue.job"):
        tasks.send_receipt.enqueue(7)
    assert jobs[0].return_value == "receipt of order 7"
    assert "took 0." in caplog.text


def test_operations(load: Load) -> None:
    requeue_for = load("docs/howto/operating.md")["shop/operations.py"].requeue_for

    class User:
        def get_username(self) -> str:
            return "kim"

    assert requeue_for(User(), "01890a5d-ac96-774b-bcce-b302099a8057") == "1 not found"


def test_secrets(load: Load, settings: Any) -> None:
    load("docs/howto/secrets.md")
    settings.JOBQUEUE = {"REDACT": "shop.privacy.redact"}
    arguments = {"args": [], "kwargs": {"token": "t", "n": 1}}
    shown = redact(arguments, task="shop.tasks.sync", part="arguments")
    assert shown["kwargs"] == {"token": "[hidden]", "n": 1}
    assert redact(arguments, task="shop.payments.charge", part="arguments") == "[payment data]"


def test_permissions(load: Load) -> None:
    may_requeue = load("docs/reference/permissions.md")["shop/views.py"].may_requeue
    for is_superuser in (True, False):
        request = RequestFactory().get("/")
        request.user = User(is_superuser=is_superuser) if is_superuser else AnonymousUser()
        assert may_requeue(request) is is_superuser


def test_bulk_operations(load: Load) -> None:
    requeue = load("docs/howto/bulk-operations.md")["shop/operations.py"].requeue_after_outage
    user = User(username="kim")
    assert requeue(user) is None
    make(2, error_class="builtins.ConnectionError")
    operation = requeue(user)
    assert (operation.total, operation.actor, operation.state) == (2, "kim", "running")


def test_verbs_of_bulk_operations_are_all_in_the_page() -> None:
    text = (ROOT / "docs/howto/bulk-operations.md").read_text(encoding="utf-8")
    rows = [line.split("|") for line in text.splitlines() if line.startswith("| `")]
    told = {cells[1].strip(" `"): {s.strip() for s in cells[2].split(",")} for cells in rows}
    assert told == {name: set(BULK_VERBS[verb].sources) for name, verb in VERBS.items()}
