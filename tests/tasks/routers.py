"""A router of these tests."""


class EverythingElsewhere:
    def db_for_read(self, model, **hints):
        return "other"

    def db_for_write(self, model, **hints):
        return "other"
