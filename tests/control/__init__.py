"""What operators may do: `jobqueue.control` on the real database, with real competitors."""
