"""The files in docker/ agree with the project: no engine runs here, so they are read."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.management import load_command_class

from project.gateway.__main__ import parse_arguments

ROOT = Path(__file__).parent.parent.parent
DOCKERFILE = (ROOT / "docker/Dockerfile").read_text()
SERVICES: dict[str, Any] = yaml.safe_load((ROOT / "docker/compose.yaml").read_text())["services"]
OURS = [name for name, service in SERVICES.items() if "build" in service]
COMMANDS = ["worker", "scheduler", "reaper"]


def test_compose_has_every_part_and_three_workers() -> None:
    assert {"postgres", "redis", "web", "worker", "scheduler", "reaper"} <= set(SERVICES)
    assert SERVICES["worker"]["deploy"]["replicas"] == 3


def test_ports_are_published_on_loopback_only() -> None:
    published = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert published
    assert all(port.startswith("127.0.0.1:") for port in published)


def test_services_that_others_wait_for_say_whether_they_are_healthy() -> None:
    for name in ["postgres", "redis", "web", "worker"]:
        assert SERVICES[name]["healthcheck"]["test"][0] == "CMD", name


def test_our_containers_cannot_gain_rights_or_change_their_code() -> None:
    for name in OURS:
        assert SERVICES[name]["read_only"], name
        assert SERVICES[name]["cap_drop"] == ["ALL"], name
        assert "no-new-privileges:true" in SERVICES[name]["security_opt"], name


def test_entry_points_have_exec_form() -> None:
    instructions = re.findall(r"^(?:ENTRYPOINT|CMD) (.*)$", DOCKERFILE, re.M)
    assert len(instructions) == 4
    for instruction in instructions:
        assert all(isinstance(word, str) for word in json.loads(instruction))


def test_images_do_not_run_as_root() -> None:
    users = re.findall(r"^USER (.*)$", DOCKERFILE, re.M)
    assert users
    assert not {"0", "root"} & set(users)


def test_what_the_image_copies_exists_and_is_not_ignored() -> None:
    ignored = (ROOT / "docker/Dockerfile.dockerignore").read_text().splitlines()
    copies = re.findall(r"^COPY (?!--from)(.*)$", DOCKERFILE, re.M)
    for source in [source for line in copies for source in line.split()[:-1]]:
        assert (ROOT / source).exists(), source
        assert f"!{source}" in ignored, source


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_take_the_arguments_that_compose_gives_them(name: str) -> None:
    command, *arguments = SERVICES[name]["command"]
    load_command_class("jobqueue", command).create_parser("manage.py", command).parse_args(
        arguments
    )


def test_gateway_takes_the_arguments_that_compose_gives_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.argv", ["gateway", *SERVICES["gateway"]["command"]])
    assert parse_arguments().port == 8100
