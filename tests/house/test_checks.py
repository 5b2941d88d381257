"""The house's own checks can fail: each is shown what it must not let pass."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

from tests import coverage_gate

ROOT = Path(__file__).parent.parent.parent
PINS = Path("requirements/dev.txt")
SOURCE = Path("jobqueue/somewhere.py")
# In two parts, or the check would find them here.
HOST = "https:" + "//files.some-mirror.net/simple"
HOME = "/ro" + "ot/venv/bin/python"


@pytest.fixture(scope="module")
def tree() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_tree", ROOT / ".ci/check_tree.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("path", "line", "problem"),
    [
        (SOURCE, f"see {HOST}", "names the host files.some-mirror.net"),
        (SOURCE, HOST.replace("//", "//user:password@"), "names the host files.some-mirror.net"),
        (SOURCE, f"python = '{HOME}'", "holds a path of one machine"),
        (PINS, f"thing @ {HOST}", "is not a plain pin"),
        (PINS, "--index-url somewhere", "is not a plain pin"),
        (Path("frontend/package-lock.json"), '"resolved": "x"', "records a download address"),
    ],
)
def test_planted_machine_facts_are_found(
    tree: ModuleType, path: Path, line: str, problem: str
) -> None:
    assert problem in list(tree.check(path, line, set()))


@pytest.mark.parametrize(
    "line",
    [
        "http://127.0.0.1:8000/shop/",
        "redis://redis:6379/0",
        "https://docs.djangoproject.com/en/6.0/topics/tasks/",
        "postgresql://{USER}:{self.password}@{LOOPBACK}:{self.port}/x",
        "https://shop.example.com/",
        "GET /shop/orders/",
    ],
)
def test_ordinary_addresses_and_paths_pass(tree: ModuleType, line: str) -> None:
    assert list(tree.check(SOURCE, line, {"djangoproject.com"})) == []


@pytest.mark.parametrize(("covered", "status"), [(95, 0), (94, 1)])
def test_coverage_gate_looks_at_lines_only(tmp_path: Path, covered: int, status: int) -> None:
    totals = {
        "covered_lines": covered,
        "num_statements": 100,
        "covered_branches": 0,
        "num_branches": 10,
    }
    report = tmp_path / "report.json"
    report.write_text(json.dumps({"totals": totals}))
    assert coverage_gate.main(str(report)) == status
