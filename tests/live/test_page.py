"""The page's document: for staff only, without anything inline, with what the page must know."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import AsyncClient, Client

from jobqueue.live import manifest, page

MANIFEST = {
    "src/main.tsx": {
        "file": "assets/main-1a2b.js",
        "isEntry": True,
        "imports": ["_shared.js"],
        "dynamicImports": ["src/late.tsx"],
        "css": ["assets/main-3c4d.css"],
    },
    "_shared.js": {
        "file": "assets/shared-5e6f.js",
        "imports": ["src/main.tsx"],  # a circle
        "css": ["assets/shared-7a8b.css", "assets/main-3c4d.css"],
    },
    "src/late.tsx": {"file": "assets/late-9c0d.js"},
}


@pytest.fixture
def staff(client: Client, db: None) -> Client:
    user = get_user_model().objects.create_user("kim<", is_staff=True)
    client.force_login(user)
    return client


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the page is built into, and is not yet."""
    monkeypatch.setattr(page, "assets", lambda: manifest.assets(tmp_path))
    return tmp_path


@pytest.fixture
def built(folder: Path) -> Path:
    (folder / "manifest.json").write_text(json.dumps(MANIFEST))
    return folder


def facts(html: str) -> dict[str, str]:
    return dict(re.findall(r'<meta name="jobqueue-(\w+)" content="([^"]*)">', html))


def test_the_document_names_the_hashed_files(staff: Client, built: Path) -> None:
    html = staff.get("/jobqueue/").content.decode()
    assert '<script type="module" src="/static/jobqueue/live/assets/main-1a2b.js">' in html
    assert html.count("shared-5e6f.js") == html.count("main-1a2b.js") == 1
    assert html.count("main-3c4d.css") == html.count("shared-7a8b.css") == 1
    assert "late-9c0d" not in html


def test_the_policy_lets_nothing_inline_run(staff: Client, built: Path) -> None:
    response = staff.get("/jobqueue/")
    policy = dict(rule.split(" ", 1) for rule in response["Content-Security-Policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["connect-src"] == "'self'"
    nonce = re.fullmatch(r"'self' 'nonce-([\w-]+)'", policy["style-src"])
    assert nonce is not None
    html = response.content.decode()
    assert f'content="{nonce[1]}"' in html
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\son\w+=|javascript:", html)
    assert nonce[1] not in staff.get("/jobqueue/").content.decode()


def test_every_address_of_the_page_is_the_same_document(staff: Client, built: Path) -> None:
    for path in ("", "jobs/01890a5d-ac96-774b-bcce-b302099a8057", "errors/?q=state:dead"):
        assert staff.get(f"/jobqueue/{path}").status_code == 200
    assert staff.get("/jobqueue/api/v2/").status_code == 404
    assert staff.get("/jobqueue/api/v1/nothing/").json()["code"] == "not-found"
    assert staff.post("/jobqueue/").status_code == 405
    assert staff.get("/jobqueue/ws/").status_code == 426


def test_it_says_what_the_page_must_know(staff: Client, built: Path) -> None:
    found = facts(staff.get("/jobqueue/").content.decode())
    assert found.pop("csrf")
    assert found == {
        "base": "/jobqueue/",
        "api": "/jobqueue/api/v1/",
        "socket": "",  # Django's test client is a WSGI server
        "admin": "/admin/jobqueue/",
        "login": "/admin/login/",
        "user": "kim&lt;",
        "zone": "UTC",
    }


@pytest.mark.django_db(transaction=True)
def test_under_asgi_it_names_the_websocket(built: Path) -> None:
    from asgiref.sync import async_to_sync

    user = get_user_model().objects.create_user("kim", is_staff=True)

    async def get() -> Any:
        client = AsyncClient()
        await client.aforce_login(user)
        return await client.get("/jobqueue/")

    found = facts(async_to_sync(get)().content.decode())
    assert found["socket"] == "/jobqueue/ws/"


def test_a_page_that_was_not_built_says_how(staff: Client, folder: Path) -> None:
    response = staff.get("/jobqueue/")
    assert response.status_code == 503
    assert manifest.BUILD in response.content.decode()
    for broken in ("", "{", "[]", "{}", '{"x": {"isEntry": true}}', '{"x": 1}'):
        (folder / "manifest.json").write_text(broken)
        assert staff.get("/jobqueue/").status_code == 503
    (folder / "manifest.json").write_text(json.dumps(MANIFEST))
    assert staff.get("/jobqueue/").status_code == 200


def test_only_staff_get_it(client: Client, built: Path, db: None) -> None:
    answer = client.get("/jobqueue/jobs/?q=state:dead")
    assert answer.status_code == 302
    assert answer["Location"] == "/admin/login/?next=/jobqueue/jobs/%3Fq%3Dstate%3Adead"
    client.force_login(get_user_model().objects.create_user("visitor"))
    refused = client.get("/jobqueue/")
    assert refused.status_code == 403
    assert "main-1a2b" not in refused.content.decode()
