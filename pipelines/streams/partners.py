"""`GET /v2/partners`: Partners of the distributor: identifier, name and external identifier."""

from pipelines.streams.base import Stream

PARTNERS = Stream(
    name="partners",
    path="/v2/partners",
    limit=100,
    singular="partner",
    description="Partners of the distributor: identifier, name and external identifier.",
)
