"""The demo project: a small shop whose orders are worked off by jobqueue."""
