"""A home that was synced once, a copy for each test."""

from tests.homes import synced

__all__ = ["synced"]
