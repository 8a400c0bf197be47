"""What a field with a role is usually called: words that make a candidate, the likeliest first.

Here: words alone, small and singular. Not here: whether the rows bear them out (proposing).
"""

from pipelines.run.fields import Field, words

BY_TEXT = 100  # a word of the description is worth less than any of the name
HINTS: dict[str, tuple[str, ...]] = {
    "partners.id": ("partner id", "id", "partner key", "partner code"),
    "partners.name": ("name", "display name", "legal name", "company", "title"),
    "partners.external_id": ("external id", "external", "foreign id", "crm", "erp", "reference"),
    "usage.id": ("usage id", "id", "record id", "event id"),
    "usage.partner": ("partner id", "partner", "reseller", "distributor", "account"),
    "usage.organization": ("organization", "organisation", "org", "customer", "merchant", "tenant"),
    "usage.period": (
        *("period start", "usage date", "start", "date", "day", "month", "occurred", "happened"),
        *("period", "timestamp"),
    ),
    "usage.plan": ("plan id", "plan", "product", "sku", "item", "tier", "service"),
    "usage.metric": ("metric", "meter", "measure", "dimension", "unit"),
    "usage.quantity": ("quantity", "qty", "volume", "consumed", "usage", "count", "unit"),
    "usage.price": ("unit price", "price", "rate", "unit cost"),
    "usage.amount": ("amount", "charge", "total", "cost", "fee", "value"),
    "usage.currency": ("currency", "ccy"),
    "usage.recorded": ("recorded", "ingested", "received", "reported", "created"),
    "usage.updated": ("updated", "modified", "changed", "revised"),
    "billing.id": ("billing id", "bill id", "invoice id", "id"),
    "billing.partner": ("partner id", "partner", "reseller", "distributor", "account"),
    "billing.organization": (
        *("organization", "organisation", "org", "customer", "merchant", "tenant"),
    ),
    "billing.period": (
        *("period start", "billing start", "start", "billing month", "month", "period", "date"),
    ),
    "billing.amount": ("total", "amount", "charge", "due"),
    "billing.currency": ("currency", "ccy"),
    "billing.issued": ("issued", "issue", "invoice date", "bill date", "billed", "created"),
    "billing.updated": ("updated", "modified", "changed", "revised"),
    "billing.number": ("invoice number", "bill number", "document number", "number", "reference"),
    "billing.kind": ("kind", "charge type", "line type", "type", "category"),
    "billing.line_usage": ("usage id", "usage", "record id", "event id"),
    "billing.line_plan": ("plan id", "plan", "product", "sku", "item", "tier"),
    "billing.line_quantity": ("quantity", "qty", "volume", "count", "unit"),
    "billing.line_price": ("unit price", "price", "rate", "unit cost"),
    "billing.line_amount": ("amount", "charge", "total", "cost", "fee", "value"),
}


def rank(role: str, field: Field) -> float | None:
    """Return how well a field is called for a role, 0 the best; None where nothing says so."""
    for place, phrase in enumerate(HINTS[role]):
        wanted = set(phrase.split())
        if wanted <= field.words:
            return place + len(field.words - wanted) / 100
    told = set(words(field.text))
    for place, phrase in enumerate(HINTS[role]):
        if set(phrase.split()) <= told:
            return BY_TEXT + place
    return None
