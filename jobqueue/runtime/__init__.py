"""Processes: the supervisor and its children, heartbeats, and the loops of upkeep."""
