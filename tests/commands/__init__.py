"""``manage.py jobs``, as somebody with only a shell uses it."""
