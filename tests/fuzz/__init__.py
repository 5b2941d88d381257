"""Requests that the OpenAPI document allows, and that it does not, against a real site."""
