"""Settings of the site that pictures are taken of: the demo's, and a clock that stands still."""

from project.pictures.clock import stop
from project.settings import *  # noqa: F403

ROOT_URLCONF = "project.pictures.urls"

stop()
