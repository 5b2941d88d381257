"""The demo's settings without throttles: what is looked for is behind them."""

from jobqueue.surfaces import DEFAULT_THROTTLES
from project.settings import *  # noqa: F403

JOBQUEUE = {"API": {"THROTTLES": dict.fromkeys(DEFAULT_THROTTLES), "MAX_WAIT": 0.5}}
