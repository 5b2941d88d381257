"""Mail as jobs: in the caller's transaction, whole, and recognizable when it is sent again."""

import logging
from datetime import UTC, datetime
from email import message_from_bytes
from email.message import EmailMessage as Part

import django
import pytest
from django.core.mail import EmailMessage, EmailMultiAlternatives, send_mail
from django.db import transaction
from django.utils.translation import gettext_lazy

from jobqueue.backend import JobQueueBackend
from jobqueue.checks import check_backend
from jobqueue.conf import options_for
from jobqueue.email import EmailBackend, send_message
from jobqueue.email.messages import as_document, as_message
from jobqueue.email.tasks import real_backend
from jobqueue.engine import mail_settings
from jobqueue.exceptions import InvalidArgument, InvalidOptions, PayloadTooLarge, UnsupportedType
from jobqueue.models import Job
from jobqueue.testing import enqueued, run_due
from tests.mail import backends
from tests.mail.conftest import HAS_MAILERS, OURS, OUTBOX

with_mailers = pytest.mark.skipif(not HAS_MAILERS, reason="MAILERS came with Django 6.1")


def message(**changes) -> EmailMessage:
    values = {
        "subject": "Your order",
        "body": "Thank you.",
        "from_email": "shop@example.com",
        "to": ["kim@example.com"],
    }
    return EmailMessage(**values | changes)


# --- a job of the caller's transaction ----------------------------------------


def test_a_message_is_a_job_and_is_sent_by_a_worker(outbox):
    assert message().send() == 1
    assert outbox == []
    (job,) = enqueued(send_message)
    report = run_due()
    (sent,) = outbox
    assert (sent.subject, sent.body, sent.to) == ("Your order", "Thank you.", ["kim@example.com"])
    assert sent.extra_headers["Message-ID"] == f"<{job.id}@example.com>"
    assert report.jobs[0].return_value == {
        "message_id": f"<{job.id}@example.com>",
        "recipients": 1,
    }


def test_a_message_of_a_transaction_that_rolls_back_is_never_sent(outbox):
    with transaction.atomic():
        message().send()
        transaction.set_rollback(True)
    assert not Job.objects.exists()


def test_functions_of_django_make_jobs_too(settings, outbox):
    send_mail("Hello", "text", "a@example.com", ["b@example.com"], html_message="<p>text</p>")
    run_due()
    (sent,) = outbox
    assert sent.alternatives[0].content == "<p>text</p>"


def test_many_messages_are_one_statement_and_all_or_none(django_assert_max_num_queries):
    messages = [message(to=[f"{n}@example.com"]) for n in range(50)]
    with django_assert_max_num_queries(4):  # one insert, inside a savepoint
        assert connection().send_messages(messages) == 50
    assert Job.objects.count() == 50
    with pytest.raises(PayloadTooLarge):
        connection().send_messages([message(), message(body="x" * 2_000_000)])
    assert Job.objects.count() == 50


def test_nothing_is_enqueued_for_nobody():
    assert message(to=[]).send() == 0
    assert connection().send_messages([message(to=[]), message(to=[""])]) == 0
    assert connection().send_messages(None) == 0
    assert not Job.objects.exists()


def test_jobs_are_of_the_queue_that_is_named(configure):
    configure(EMAIL_QUEUE="mail")
    message().send()
    assert Job.objects.get().queue == "mail"


@with_mailers
def test_jobs_are_of_the_alias_that_is_named(settings):
    settings.TASKS = settings.TASKS | {"second": settings.TASKS["default"]}
    settings.MAILERS = settings.MAILERS | {
        "default": {"BACKEND": OURS, "OPTIONS": {"task_backend": "second"}}
    }
    message().send()
    assert Job.objects.get().backend == "second"
    assert mail_settings.mail_aliases() == {"second"}


def connection(**options) -> EmailBackend:
    return EmailBackend(**options)


# --- what travels ----------------------------------------


def test_everything_about_a_message_travels():
    original = EmailMultiAlternatives(
        subject=gettext_lazy("Größe 🙂"),
        body="text with ünïcode\nand lines",
        from_email="Shop <shop@example.com>",
        to=["Kim <kim@example.com>", "lee@example.com"],
        cc=["cc@example.com"],
        bcc=["bcc@example.com"],
        reply_to=["reply@example.com"],
        headers={"X-Order": "42", "Date": "Mon, 01 Jan 2026 00:00:00 -0000", "Message-ID": "<1@x>"},
    )
    original.attach_alternative("<p>html</p>", "text/html")
    original.attach("note.txt", "a note ✓", "text/plain")
    original.attach("data.bin", bytes(range(256)), "application/octet-stream")
    original.attach("inner.eml", message(subject="inner"), "message/rfc822")
    part = Part()
    part.set_content("a part of its own", subtype="calendar")
    if django.VERSION >= (6, 0):
        original.attach(part)
    travelled = as_message(as_document(original))
    assert travelled.recipients() == original.recipients()
    assert shape(travelled) == shape(original)


def shape(of: EmailMessage) -> list:
    """Return headers and parts, without the random boundaries and ids."""
    parsed = message_from_bytes(of.message().as_bytes())
    headers = [(k, v) for k, v in parsed.items() if k != "Content-Type"]
    parts = [
        (p.get_content_type(), p.get_filename(), p.get_payload(decode=True))
        for p in parsed.walk()
        if not p.is_multipart()
    ]
    return [headers, parts]


@pytest.mark.skipif(django.VERSION >= (6, 0), reason="deprecated there")
def test_a_part_of_the_older_kind_travels():
    from email.mime.image import MIMEImage

    original = message(headers={"Date": "x", "Message-ID": "<1@x>"})
    image = MIMEImage(b"\x89PNG\r\n\x1a\n0000", "png")
    image.add_header("Content-ID", "<logo>")
    original.attach(image)
    assert shape(as_message(as_document(original))) == shape(original)


def test_what_a_provider_reads_from_the_message_travels():
    original = message()
    original.tags = ["receipt"]
    original.metadata = {"order": 42}
    original.content_subtype = "html"
    travelled = as_message(as_document(original))
    assert (travelled.tags, travelled.metadata) == (["receipt"], {"order": 42})
    assert travelled.content_subtype == "html"


def test_what_json_cannot_hold_is_refused_by_its_name():
    original = message()
    original.send_at = datetime.now(UTC)
    with pytest.raises(UnsupportedType, match=r"message\.send_at cannot travel"):
        original.send()
    assert not Job.objects.exists()


def test_a_message_that_makes_its_own_mime_form_is_refused():
    class Signed(EmailMessage):
        def message(self, **kwargs):
            return super().message(**kwargs)

    with pytest.raises(UnsupportedType, match="makes its MIME form itself"):
        Signed("subject", "body", "a@example.com", ["b@example.com"]).send()


def test_a_message_that_is_too_large_is_refused_with_the_way_out():
    large = message(subject="Your report")
    large.attach("report.pdf", b"\x00" * 900_000, "application/pdf")
    with pytest.raises(PayloadTooLarge) as raised:
        large.send()
    assert "'Your report' takes 1,200,3" in str(raised.value)
    assert "1 attachment(s)" in str(raised.value)
    assert "Mail a link" in str(raised.value)


def test_silently_means_logged_and_left_out(caplog):
    broken = message()
    broken.send_at = datetime.now(UTC)
    with caplog.at_level(logging.ERROR, "jobqueue"):
        assert connection(fail_silently=True).send_messages([broken, message()]) == 1
    assert "is left out" in caplog.text
    assert Job.objects.count() == 1


@pytest.mark.parametrize("given", [{"username": "shop"}, {"password": "secret"}])
def test_credentials_are_never_stored_in_a_job(given):
    with pytest.raises(InvalidArgument, match="cannot bring credentials") as raised:
        connection(**given)
    assert "secret" not in str(raised.value)


# --- sending ----------------------------------------


def test_it_is_sent_again_with_the_same_id_until_it_was_sent(configure):
    configure("tests.mail.backends.Moody", RETRY={"base": 0, "jitter": 0})
    message().send()
    runs = run_due().jobs
    assert [run.job_state for run in runs] == ["retrying", "retrying", "succeeded"]
    ids = {sent.extra_headers["Message-ID"] for sent in backends.given}
    assert ids == {f"<{Job.objects.get().pk}@example.com>"}
    errors = [error.exception_class_path for error in runs[2].errors]
    assert errors == ["builtins.OSError", "jobqueue.exceptions.MailNotSent"]


@pytest.mark.parametrize(
    ("sender", "domain"),
    [
        ("Shop <shop@bücher.example>", "xn--bcher-kva.example"),
        ("webmaster@localhost", "localhost"),
        ("nobody", "localhost"),
        ("a@b_c", "localhost"),
    ],
)
def test_its_id_is_of_the_senders_domain_whatever_host_sends(configure, sender, domain):
    configure("tests.mail.backends.Lenient")
    message(from_email=sender).send()
    report = run_due()
    assert report.jobs[0].return_value["message_id"].endswith(f"@{domain}>")


def test_an_id_that_the_caller_gave_is_kept(outbox):
    message(headers={"Message-Id": "<order-42@shop>"}).send()
    run_due()
    assert [v for k, v in outbox[0].extra_headers.items() if k.lower() == "message-id"] == [
        "<order-42@shop>"
    ]


def test_a_real_backend_that_is_ours_would_never_end(configure):
    configure(real=OURS)
    message().send()
    (job,) = run_due().failed
    assert "another job for ever" in job.errors[0].traceback
    assert Job.objects.count() == 1


@with_mailers
def test_smtp_is_reached_through_its_mailer(settings):
    smtp = {"BACKEND": "django.core.mail.backends.smtp.EmailBackend", "OPTIONS": {"host": "mx"}}
    settings.MAILERS = settings.MAILERS | {"real": smtp}
    assert real_backend(options_for("default")).host == "mx"


def test_a_worker_knows_the_task_where_mail_is_sent_by_jobs(configure, monkeypatch):
    from jobqueue.engine import registry

    imported = []
    monkeypatch.setattr(registry.importlib, "import_module", imported.append)
    registry.autodiscover(options_for("default"))
    assert "jobqueue.email.tasks" in imported
    configure(path=OUTBOX)
    imported.clear()
    registry.autodiscover(options_for("default"))
    assert "jobqueue.email.tasks" not in imported


# --- checks ----------------------------------------


@pytest.fixture
def problems(settings):
    """What the checks say of the TASKS alias."""

    def ids() -> list[str]:
        backend = JobQueueBackend("default", settings.TASKS["default"])
        return [found.id for found in check_backend(backend)]

    return ids


@pytest.mark.parametrize(
    ("real", "options", "expected"),
    [
        (OUTBOX, {}, []),
        (OUTBOX, {"EMAIL_QUEUE": "mail"}, []),
        (OUTBOX, {"EMAIL_QUEUE": "nowhere"}, ["jobqueue.E013"]),
        (OURS, {}, ["jobqueue.E013"]),
        (OUTBOX, {"EMAIL_BACKEND": "no.such.Backend"}, ["jobqueue.E013"]),
    ],
)
def test_settings_that_cannot_work_are_named(configure, problems, real, options, expected):
    configure(real, **options)
    assert problems() == expected


def test_who_sends_mail_otherwise_is_not_asked(configure, problems):
    configure(path=OUTBOX, EMAIL_BACKEND="no.such.Backend", EMAIL_QUEUE="nowhere")
    assert problems() == []


def test_an_option_that_cannot_be_used_is_named_when_a_message_is_to_be_sent(configure):
    configure(EMAIL_BACKEND="no.such.Backend")
    with pytest.raises(InvalidOptions, match=r"EMAIL_BACKEND is 'no\.such\.Backend'"):
        real_backend(options_for("default"))
