"""The demo's superuser, so that the admin can be looked at."""

import secrets

from django.contrib.auth import get_user_model

USERNAME = "demo"


def create_superuser() -> str:
    """Create the superuser, or give it a new password; return the password."""
    password = secrets.token_urlsafe(9)
    user, _ = get_user_model().objects.get_or_create(
        username=USERNAME, defaults={"is_staff": True, "is_superuser": True}
    )
    user.set_password(password)
    user.save()
    return password
