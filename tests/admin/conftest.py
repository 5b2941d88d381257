"""Who looks: a superuser, and members of staff with some permissions."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from tests.admin.making import staff


@pytest.fixture
def admin(db) -> Client:
    """A superuser; without a password, which would take longer than the page."""
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    return client


@pytest.fixture
def as_staff(db):
    """Return a function that signs a member of staff in, with permissions by codename."""

    def sign_in(*permissions: str, **options) -> Client:
        client = Client(**options)
        client.force_login(staff("kim", *permissions))
        return client

    return sign_in
