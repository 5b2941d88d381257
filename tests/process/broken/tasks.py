"""Raises when it is imported, as a module with a typo does."""

raise RuntimeError("this module is broken on purpose")
