"""The tests' settings with django-unfold in front of Django's admin."""

from tests.settings import *  # noqa: F403
from tests.settings import INSTALLED_APPS as APPS

INSTALLED_APPS = ["unfold", *APPS]
