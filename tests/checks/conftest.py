"""The same homes as in tests/publish."""

from tests.publish.conftest import empty_home, published, published_home, stores

__all__ = ["empty_home", "published", "published_home", "stores"]
