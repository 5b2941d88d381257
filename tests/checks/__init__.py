"""System checks: each fault is shown to the check that must name it."""
