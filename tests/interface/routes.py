"""What the interface document shows of routes, as tables: the expectation of these tests.

Here: groups, lists and their bounds, the operations that scopes imply. Copied from the document by
hand and never from the sandbox; paths that it does not show are the sandbox's, found in its
description. Not here: calling them (calling).
"""

# "What the service does": the route groups, and one safe read of each.
MERCHANT_GROUPS = {
    "Gateways": "/v2/gateways",
    "Invoices": "/v2/invoices",
    "Customers": "/v2/customers",
    "Customer notes": "/v2/customers/{customerId}/notes",
    "Payment methods": "/v2/payment-methods",
    "Payment links": "/v2/payment-links/unapplied/{paymentLinkId}",
    "Payment method requests": "/v2/payment-method-requests",
    "Settings": "/v2/settings",
    "Transactions": "/v2/transactions",
    "Users": "/v2/users",
    "Emails": "/v2/emails",
    "Autoprocessing forecast": "/v2/autoprocessing/forecast",
    "Profile": "/v2/profile",
}
PARTNER_GROUPS = {
    "Whoami": "/v2/whoami",
    "Plans": "/v2/plans",
    "Partners": "/v2/partners",
    "Organizations": "/v2/organizations",
    "Usage": "/v2/usage",
    "Billing": "/v2/billing",
}
PARTNER_READS = [*PARTNER_GROUPS.values()]
MERCHANT_READS = [path for path in MERCHANT_GROUPS.values() if "{" not in path]
READS = PARTNER_READS + MERCHANT_READS
PARTNER_LISTS = [path for path in PARTNER_READS if path != "/v2/whoami"]
MERCHANT_LISTS = [path for path in MERCHANT_READS if path not in ("/v2/settings", "/v2/profile")]
LISTS = PARTNER_LISTS + MERCHANT_LISTS
# "Endpoints", the table: what is shown; everything else is assumed.
SHOWN = {"/v2/gateways", "/v2/invoices", "/v2/whoami", "/v2/partners", "/v2/usage", "/v2/billing"}
SHOWN |= {"/healthz", "/readiness", "/oauth/token"}
# "Paging limits": the default and the most.
OWN_BOUNDS = {"/v2/usage": (100, 500), "/v2/billing": (50, 100)}
GENERAL_BOUNDS = (20, 100)
EXEMPT = ["/healthz", "/readiness", "/docs/", "/docs/openapi.json", "/docs/nothing/here"]


def bounds(path: str) -> tuple[int, int]:
    """Give the default and the largest limit of a list."""
    return OWN_BOUNDS.get(path, GENERAL_BOUNDS)
