"""The error of a source of own books that was not read whole."""


class NotRead(Exception):
    """A source was not read whole; the text says why, without a full stop."""
