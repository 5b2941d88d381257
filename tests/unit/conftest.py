"""How long Hypothesis looks: enough here, and no failure because the machine is busy."""

from hypothesis import settings

settings.register_profile("suite", deadline=None, max_examples=50)
settings.load_profile("suite")
