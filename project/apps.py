"""The project as an app of its own, so that Django finds its `demo` command."""

from django.apps import AppConfig


class ProjectConfig(AppConfig):
    name = "project"
    verbose_name = "Demo project"
