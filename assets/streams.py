"""The streams that assets are made of: the shelf's and the settings', known without a network."""

from pipelines import settings, streams

STREAMS = streams.known(settings.load())
