"""Every word of ours can be translated, in either direction of writing."""

import re
from html.parser import HTMLParser

import pytest
from django.utils import translation
from django.utils.translation import trans_real

from tests.admin.making import everything, page

pytestmark = pytest.mark.django_db

DATA = (
    "tests.app.tasks.record", "default", "mail", "kim", "spam", "order:42", "nightly", "customer",
    "NoSuchOrder", "shop.models", "no such order", "web", "1.0", "charge", "three of ten", "shop",
    "it failed", "args", "kwargs", "out of attempts", "root", "ERROR", "UTC", "worker", "app",
    "0 6 * * *", "allow", "once", "KiB", "state:dead", "jobqueue", "fingerprint", "send_receipt",
    "order_id", "/srv/shop/tasks.py", "password", "hidden", "in", "At 06:00 every day", "queue",
    "Order.objects.get", "pk", "order", "id", "shell", "admin",
)  # fmt: skip
"""What is data, or Django's and the engine's own, on these pages."""


class Pseudo(trans_real.DjangoTranslation):
    """A language in which every text is between brackets."""

    def __init__(self) -> None:
        super().__init__("en")

    def gettext(self, message: str) -> str:
        return f"⟦{message}⟧" if message else message

    def ngettext(self, singular: str, plural: str, number: int) -> str:
        return f"⟦{singular if number == 1 else plural}⟧"

    def pgettext(self, context: str, message: str) -> str:
        return self.gettext(message)

    def npgettext(self, context: str, singular: str, plural: str, number: int) -> str:
        return self.ngettext(singular, plural, number)


class Texts(HTMLParser):
    """Collects the texts and labels of the part of a page that is ours."""

    LABELS = ("aria-label", "title", "alt", "placeholder", "data-label")

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._depth, self._quiet = 0, 0

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        if given.get("id") == "content-main" or "jq" in (given.get("class") or "").split():
            self._depth = self._depth or 1
        elif self._depth and tag not in ("input", "br", "img", "link", "meta", "rect"):
            self._depth += 1
        if tag in ("script", "style", "time", "code", "pre", "option") or given.get("lang") == "en":
            self._quiet += 1
        if self._depth and tag != "time" and "jq-code" not in (given.get("class") or ""):
            self.found += [given[name] or "" for name in self.LABELS if name in given]

    def handle_endtag(self, tag: str) -> None:
        if self._depth and tag not in ("input", "br", "img", "link", "meta", "rect"):
            self._depth -= 1
        if tag in ("script", "style", "time", "code", "pre", "option"):
            self._quiet -= 1

    def handle_data(self, data: str) -> None:
        if self._depth and not self._quiet:
            self.found.append(data)


def untranslated(text: str) -> set[str]:
    """Return the words of a page that are in no brackets and are no data."""
    reader = Texts()
    reader.feed(text)
    whole = "\n".join(reader.found)
    while "⟦" in whole:  # from the inside: a text may hold another one
        shorter = re.sub(r"⟦[^⟦⟧]*⟧", " ", whole)
        if shorter == whole:
            break
        whole = shorter
    for known in sorted(DATA, key=len, reverse=True):
        whole = whole.replace(known, " ")
    whole = re.sub(r"[0-9a-f]{6,}(?:[-…][0-9a-f]+)*", " ", whole)
    return set(re.findall(r"[A-Za-z]{3,}", whole))


@pytest.fixture
def pseudo(monkeypatch):
    language = Pseudo()
    monkeypatch.setattr(trans_real, "translation", lambda _code: language)
    monkeypatch.setattr(trans_real, "_default", language)
    # Its end activates nothing: what was active before would be looked up in this language, too.
    with translation.override("en", deactivate=True):
        yield


@pytest.mark.parametrize(
    "model",
    ["job", "deadletter", "errorgroup", "queue", "worker", "schedule", "limit", "bulkoperation",
     "action", "attempt", "jobtag"],
)  # fmt: skip
def test_every_word_of_a_page_can_be_translated(model, admin, pseudo):
    keys = everything()
    pages = [page(model)]
    if model in keys:
        pages.append(page(model, keys[model]))
    if model == "job":
        pages += [page("job", "submit"), page("job", "matching", "requeue") + "?filter=state:dead"]
    if model == "schedule":
        pages.append(page("schedule", "add"))
    for address in pages:
        text = admin.get(address).text
        assert text.count("⟦") > 10
        assert untranslated(text) == set(), address


def test_the_overview_can_be_translated_but_for_what_the_engine_finds(admin, pseudo):
    everything()
    assert untranslated(admin.get("/admin/jobqueue/").text) == set()


def test_a_word_that_nobody_can_translate_would_be_noticed():
    assert untranslated('<div id="content-main">⟦Requeue⟧ <p>forgotten</p></div>') == {"forgotten"}


@pytest.mark.parametrize("language", ["he", "ar"])
def test_pages_are_written_from_right_to_left(language, admin, settings):
    settings.LANGUAGE_CODE = language
    keys = everything()
    for address in (page("job"), page("job", keys["job"]), page("queue"), "/admin/jobqueue/"):
        text = admin.get(address).text
        assert re.search(r'<html[^>]* dir="rtl"', text)
        assert 'class="jq-code" dir="ltr"' in text or "queue" in address or "job" not in address
