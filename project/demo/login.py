"""Who may look at the demo: a superuser for the admin, and a supplier's token for the HTTP API."""

import secrets

from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from rest_framework.authtoken.models import Token

USERNAME = "demo"
SUPPLIER = "supplier"
SUPPLIER_MAY = ("enqueue_job", "cancel_job", "requeue_job", "view_job_payload")
"""All on jobs of their own: who may not view jobs sees no others."""


def create_superuser() -> str:
    """Create the superuser, or give it a new password; return the password."""
    password = secrets.token_urlsafe(9)
    user, _ = get_user_model().objects.get_or_create(
        username=USERNAME, defaults={"is_staff": True, "is_superuser": True}
    )
    user.set_password(password)
    user.save()
    return password


def create_token() -> str:
    """Create the supplier, or find it; return its token."""
    user, _ = get_user_model().objects.get_or_create(username=SUPPLIER)
    permissions = Permission.objects.filter(content_type__app_label="jobqueue")
    user.user_permissions.set(permissions.filter(codename__in=SUPPLIER_MAY))
    token, _ = Token.objects.get_or_create(user=user)
    return str(token.key)
