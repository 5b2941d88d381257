"""The words of the engine as people read them, in their language: states, verbs, outcomes.

Whatever is not known here (a state of a later release, say) is shown as it is stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from jobqueue.states import State

STATES: Mapping[str, Any] = {
    State.SCHEDULED: _("scheduled"),
    State.READY: _("ready"),
    State.BLOCKED: _("blocked"),
    State.RUNNING: _("running"),
    State.SUCCEEDED: _("succeeded"),
    State.RETRYING: _("retrying"),
    State.DEAD: _("dead"),
    State.CANCELLED: _("cancelled"),
    # attempts
    "failed": _("failed"),
    "timed_out": _("timed out"),
    "lost": _("interrupted"),
    "snoozed": _("snoozed"),
    # bulk operations
    "stopped": _("stopped"),
    "finished": _("finished"),
    # schedules
    "ticking": _("ticking"),
    "late": _("late"),
    "over": _("over"),
    "disabled": _("disabled"),
    "failing": _("failing"),
    "undeclared": _("no longer in the code"),
    "enqueued": _("enqueued"),
    "overlap": _("skipped: the last run had not ended"),
    "missed": _("skipped: too late"),
    "crowded": _("skipped: too many wait"),
    "twin": _("skipped: its unique key waits already"),
    # workers and queues
    "alive": _("alive"),
    "draining": _("draining"),
    "expired": _("lease ran out"),
    "paused": _("paused"),
    "active": _("active"),
    # findings
    "error": _("error"),
    "warning": _("warning"),
    "info": _("note"),
}
ICONS: Mapping[str, str] = {
    "scheduled": "◷",
    "ready": "○",
    "blocked": "▣",
    "running": "▶",
    "succeeded": "✓",
    "retrying": "↻",
    "dead": "✕",
    "cancelled": "⊘",
    "failed": "✕",
    "timed_out": "◔",
    "lost": "↯",
    "snoozed": "◷",
    "stopped": "■",
    "finished": "✓",
    "ticking": "✓",
    "late": "!",
    "over": "■",
    "disabled": "‖",
    "failing": "✕",
    "undeclared": "⊘",
    "enqueued": "✓",
    "alive": "✓",
    "draining": "↓",
    "expired": "?",
    "paused": "‖",
    "active": "▶",
    "error": "✕",
    "warning": "!",
    "info": "i",
}
TONES: Mapping[str, str] = {
    "running": "busy",
    "succeeded": "good",
    "finished": "good",
    "ticking": "good",
    "enqueued": "good",
    "alive": "good",
    "active": "good",
    "retrying": "warn",
    "blocked": "warn",
    "draining": "warn",
    "paused": "warn",
    "stopped": "warn",
    "warning": "warn",
    "lost": "warn",
    "timed_out": "bad",
    "failed": "bad",
    "failing": "bad",
    "late": "bad",
    "dead": "bad",
    "expired": "bad",
    "error": "bad",
}
"""Which color a word has, beside its icon; all others have none."""

VERBS: Mapping[str, Any] = {
    "requeue": _("Requeue"),
    "cancel": _("Cancel"),
    "discard": _("Discard"),
    "run_now": _("Run now"),
    "reschedule": _("Run at another time"),
    "reprioritize": _("Change priority"),
    "move": _("Move to another queue"),
    "run_again": _("Run as a new job"),
    "enqueue": _("Submit"),
    "pause": _("Pause"),
    "resume": _("Resume"),
    "drain": _("Drain"),
    "set_limit": _("Set limit"),
    "lift_limit": _("Lift limit"),
    "reset_limit": _("Reset limit"),
    "create_schedule": _("Add schedule"),
    "update_schedule": _("Change schedule"),
    "delete_schedule": _("Delete schedule"),
    "enable_schedule": _("Enable schedule"),
    "disable_schedule": _("Disable schedule"),
    "run_schedule": _("Run schedule now"),
    "prune": _("Prune"),
    "stop bulk": _("Stop bulk operation"),
    "resume bulk": _("Resume bulk operation"),
}
GIVES_UP = frozenset({"cancel", "discard"})
"""Verbs after which a job does not run any more."""
MEANINGS: Mapping[str, Any] = {
    "requeue": _("The same job gets a new budget of attempts. Its recorded steps are kept."),
    "cancel": _(
        "A job that waits ends at once and will not run. One that runs is asked to stop, and may "
        "still succeed. Only Requeue brings a cancelled job back, due at once and with a new "
        "budget of attempts, while its row is there."
    ),
    "discard": _(
        "The job is given up and will not run: it is a cancelled job from then on, no dead letter. "
        "Only Requeue brings it back, while its row is there."
    ),
    "run_now": _("It is due now, instead of at its time."),
    "run_again": _(
        "Makes a second job with the same task and arguments. What this one has done, such as a "
        "charge or a mail, can happen twice."
    ),
}
"""What a verb means for the job, where its name does not say it."""
NOTES: Mapping[str, Any] = {
    "backend": _("(alias in TASKS)"),
    "fence": _("(number of the claim: only the newest may finish the job)"),
    "slots": _("(jobs that it runs at once)"),
    "suspicions": _("(workers that died while they ran it)"),
}
"""What names of ours mean."""
DONE: Mapping[str, Any] = {
    "requeued": _("requeued"),
    "cancelled": _("cancelled"),
    "asked": _("asked to stop"),
    "discarded": _("discarded"),
    "rescheduled": _("rescheduled"),
    "made due now": _("made due now"),
    "reprioritized": _("given another priority"),
    "moved": _("moved"),
    "copied": _("copied"),
    "superseded": _("superseded by a job of its unique key"),
    "locked": _("locked by a transaction, try again"),
    "not found": _("not found"),
    "not offered": _("not offered to staff"),
    "unreadable": _("skipped: its arguments cannot be read"),
    "has a twin": _("skipped: another job holds its unique key"),
    "paused": _("paused"),
    "resumed": _("resumed"),
    "set": _("set"),
    "lifted": _("lifted"),
    "reset": _("reset"),
    "enabled": _("enabled"),
    "disabled": _("disabled"),
    "deleted": _("deleted"),
    "started": _("started"),
    "told to drain": _("told to drain"),
    "already paused": _("already paused"),
    "already resumed": _("not paused"),
    "already enabled": _("already enabled"),
    "already disabled": _("already disabled"),
    "already draining": _("already draining"),
    "nothing to change": _("nothing to change"),
    "an earlier run has not ended": _("an earlier run has not ended"),
    "a job with its unique key waits": _("a job with its unique key waits"),
}
SURFACES: Mapping[str, Any] = {
    "shell": _("shell"),
    "admin": _("admin"),
    "api": _("API"),
    "page": _("live page"),
}


def state(name: str) -> str:
    """Return the word for a state, or for how an attempt ended."""
    return str(STATES.get(name, name))


def surface(name: str) -> str:
    """Return the words for where somebody acted from."""
    return str(SURFACES.get(name, name))


def verb(name: str) -> str:
    """Return the word for what is done to a job; "bulk requeue" has two parts."""
    if name in VERBS:
        return str(VERBS[name])
    inner = name.removeprefix("bulk ")
    if inner != name:
        return gettext("Bulk: %(verb)s") % {"verb": verb(inner)}
    return name


def tone_of(verb: str) -> str:
    """Return the class of a button for a verb, "" for that of others."""
    return "jq-bad" if verb in GIVES_UP else ""


def done(what: str) -> str:
    """Return the words for what became of a job, such as "skipped: running"."""
    if what in DONE:
        return str(DONE[what])
    inner = what.removeprefix("skipped: ")
    if inner == what:
        return what
    return gettext("skipped: %(why)s") % {"why": str(STATES.get(inner) or DONE.get(inner, inner))}


def counts(counted: Mapping[str, int]) -> str:
    """Return for example "12 requeued, 3 skipped: running"."""
    parts = (
        gettext("%(count)s %(what)s") % {"count": f"{n:,}", "what": done(what)}
        for what, n in counted.items()
    )
    return gettext(", ").join(parts)
