"""``/schedules/``: recurring plans, what they do next, and what came of their ticks."""
