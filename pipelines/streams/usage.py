"""`GET /v2/usage`: Metered usage records; their fields are not documented."""

from pipelines.streams.base import Stream

USAGE = Stream(
    name="usage",
    path="/v2/usage",
    limit=500,
    singular="usage",
    description="Metered usage records; their fields are not documented.",
)
