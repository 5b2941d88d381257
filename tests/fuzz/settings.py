"""The demo's settings without throttles (what is looked for is behind them) or a durable disk."""

from jobqueue.surfaces import DEFAULT_THROTTLES
from project.settings import *  # noqa: F403
from project.settings import TASKS

JOBQUEUE = {"API": {"THROTTLES": dict.fromkeys(DEFAULT_THROTTLES), "MAX_WAIT": 0.5}}
TASKS["default"]["OPTIONS"] |= {"ACCEPT_LOSS": True}
