"""Storage: the only place with SQL. `storage_for` picks the class by the database."""

from jobqueue.storage.protocol import Storage, storage_for

__all__ = ["Storage", "storage_for"]
