"""When a process makes room for another: limits, their units, and what a process may still take."""

import os
import resource
import sys
import types
from argparse import ArgumentTypeError

import psutil
import pytest

from jobqueue.management.commands.runworker import memory_size
from jobqueue.runtime import code_files, recycling
from jobqueue.runtime.code_files import CodeFiles, wait_for_repair
from jobqueue.runtime.recycling import Recycling, memory_bytes


def test_without_limits_there_is_room_for_ever():
    free = Recycling()
    free.took(10**9)
    assert free.room(200) == 200
    assert free.why() == ""


def test_no_more_jobs_are_taken_than_allowed_and_given_back_ones_do_not_count():
    limited = Recycling(max_jobs=5)
    assert limited.room(200) == 5
    limited.took(4)
    assert (limited.room(200), limited.why()) == (1, "")
    limited.took(-2)
    assert limited.room(2) == 2
    limited.took(3)
    assert limited.room(200) == 0
    assert limited.why() == "it has taken 5 jobs"


def test_memory_is_looked_at_once_a_job_was_taken_and_not_at_every_turn(monkeypatch):
    looks = []
    monkeypatch.setattr(recycling, "memory_bytes", lambda: looks.append(1) or 300 << 20)
    limited = Recycling(max_memory_bytes=200 << 20)
    assert limited.why() == ""
    limited.took(1)
    limited._look_at = 0.0
    assert limited.why() == "it holds 300 MiB of memory"
    for _ in range(100):
        limited.why()
    assert len(looks) == 1


def test_memory_is_what_the_process_holds_in_bytes():
    assert memory_bytes() == pytest.approx(psutil.Process().memory_info().rss, rel=0.2)


@pytest.mark.parametrize(("platform", "unit"), [("linux", 1024), ("darwin", 1)])
def test_where_the_system_does_not_say_the_peak_is_taken_in_its_own_unit(
    monkeypatch, tmp_path, platform, unit
):
    monkeypatch.setattr(recycling, "_STATM", tmp_path / "missing")
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(
        resource, "getrusage", lambda who: types.SimpleNamespace(ru_maxrss=(80 << 20) // unit)
    )
    assert memory_bytes() == 80 << 20


@pytest.mark.parametrize(
    ("text", "size"),
    [("300K", 300 << 10), ("512M", 512 << 20), ("512mb", 512 << 20), ("1.5GiB", 3 << 29)],
)
def test_sizes_of_memory_are_read(text, size):
    assert memory_size(text) == size


@pytest.mark.parametrize("text", ["512", "0M", "-1M", "1e3M", "M", "", "512 bytes"])
def test_a_size_without_a_unit_is_refused(text):
    with pytest.raises(ArgumentTypeError, match="write 512M"):
        memory_size(text)


# --- code ----------------------------------------


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module that this process has imported."""
    path = tmp_path / "imported_by_a_job.py"
    path.write_text("VALUE = 1\n")
    os.utime(path, (1_000_000_000, 1_000_000_000))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "imported_by_a_job", raising=False)
    __import__("imported_by_a_job")
    yield path
    sys.modules.pop("imported_by_a_job", None)


def test_a_changed_file_of_an_imported_module_is_seen(module):
    code = CodeFiles()
    assert code.changed() is None
    os.utime(module)
    assert code.changed() == module
    assert Recycling(code=code).why() == f"{module} has changed"


def test_a_file_that_changed_while_it_was_imported_is_seen_at_once(module, monkeypatch):
    monkeypatch.setattr(code_files, "_STARTED_AT", 999_999_999)
    assert CodeFiles(others=[module]).changed() is not None


def test_a_file_that_is_gone_for_a_moment_is_no_change(module):
    code = CodeFiles()
    code.changed()
    text = module.read_text()
    module.unlink()
    assert code.changed() is None
    module.write_text(text)
    assert code.changed() == module


def test_a_process_that_cannot_start_waits_for_the_file_at_fault(tmp_path):
    path = tmp_path / "broken.py"
    path.write_text("VALUE = (\n")
    os.utime(path, (1_000_000_000, 1_000_000_000))
    reader, writer = os.pipe()
    with pytest.raises(SyntaxError) as raised:
        compile(path.read_text(), path, "exec")
    os.write(writer, b"d")  # its supervisor has other plans
    assert wait_for_repair(raised.value, reader) is False
    assert path in code_files._files_of(raised.value)
    os.close(reader)
    os.close(writer)
