"""Pictures of the admin for the documentation, taken of a shop in the middle of an incident."""

USER, PASSWORD = "demo", "demo"
