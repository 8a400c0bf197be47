"""`GET /v2/billing`: Billing records; their fields are not documented."""

from pipelines.streams.base import Stream

BILLING = Stream(
    name="billing",
    path="/v2/billing",
    limit=100,
    singular="billing",
    description="Billing records; their fields are not documented.",
)
