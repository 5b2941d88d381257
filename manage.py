#!/usr/bin/env python
"""Run Django's commands with the demo project's settings."""

import os
import sys


def main() -> None:
    """Run the command named on the command line; Ctrl-C while Django starts is no error."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
    try:
        from django.core.management import execute_from_command_line

        execute_from_command_line(sys.argv)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
