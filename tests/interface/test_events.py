"""Chapter 6 of the interface, "Events": not shown, and so there are none."""

from tests.interface.calling import Surfaces


def test_6_1_there_are_no_events_callbacks_or_notifications(whole: Surfaces) -> None:
    document = whole.described()
    assert "webhooks" not in document
    operations = [one for path in document["paths"].values() for one in path.values()]
    assert not [one for one in operations if "callbacks" in one]
    assert not [path for path in document["paths"] if "event" in path or "hook" in path]
