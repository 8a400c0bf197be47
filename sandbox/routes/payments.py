"""Payment links, and requests to put a payment method on file.

Here: what each operation reads and writes. Not here: permission and answers (desk).
"""

from datetime import timedelta
from http import HTTPStatus

from fastapi import APIRouter
from starlette.responses import Response

from sandbox.data.listing import Listing
from sandbox.merchant.beginnings import PAGES
from sandbox.merchant.bodies import AppliedLinkBody, MethodRequestBody, UnappliedLinkBody
from sandbox.merchant.book import JSON
from sandbox.merchant.office import minor, moment, money
from sandbox.merchant.written import new_id
from sandbox.problem import ProblemError
from sandbox.routes.desk import Desk, Visit, answer, created, present


def add_payments(desk: Desk, router: APIRouter) -> None:
    """Add the routes of payment links and payment method requests."""
    desk.add_list(router, "payment_method_requests", payment_method_requests)
    for handle in (
        *(create_unapplied_link, unapplied_link, create_applied_link, applied_link),
        *(create_payment_method_request, payment_method_request),
    ):
        desk.add(router, handle.__name__, handle)


def _times(visit: Visit, days: int) -> JSON:
    now = visit.now()
    return {"createdAt": moment(now), "expiresAt": moment(now + timedelta(days=days))}


async def create_unapplied_link(visit: Visit) -> Response:
    """Create a payment link of any amount, towards no invoice."""
    body = await visit.body(UnappliedLinkBody)
    visit.customer(body.customer_id)
    terms = {"customerId": body.customer_id, "invoiceIds": [], "amount": body.amount}
    return _link(visit, "unapplied", body, terms)


async def create_applied_link(visit: Visit) -> Response:
    """Create a payment link over what is due of invoices of one customer."""
    body = await visit.body(AppliedLinkBody)
    invoices = [present(visit.book.invoice(one), "invoice") for one in body.invoice_ids]
    if len({one["customerId"] for one in invoices}) > 1:
        raise ProblemError(HTTPStatus.CONFLICT, "The invoices are of several customers.")
    due = [minor(one["amountDue"]) for one in invoices]
    if not all(due):
        raise ProblemError(HTTPStatus.CONFLICT, "Nothing is due of one of the invoices.")
    terms = {"customerId": invoices[0]["customerId"], "invoiceIds": body.invoice_ids}
    return _link(visit, "applied", body, terms | {"amount": money(sum(due))})


def _link(
    visit: Visit, kind: str, body: UnappliedLinkBody | AppliedLinkBody, terms: JSON
) -> Response:
    link_id = new_id()
    record: JSON = {"paymentLinkId": link_id, "kind": kind, **terms}
    record |= {
        "currency": visit.book.currency,
        "description": body.description,
        "url": f"{PAGES}/{link_id}",
        "status": "open",
        **_times(visit, body.expires_in_days),
    }
    owner = {"organization": visit.organization, "kind": kind}
    visit.written.payment_links.create(link_id, record, **owner)
    return created(record, f"{visit.request.url.path}/{link_id}")


async def unapplied_link(visit: Visit) -> Response:
    """Answer a payment link towards no invoice."""
    return _found(visit, "unapplied")


async def applied_link(visit: Visit) -> Response:
    """Answer a payment link towards invoices."""
    return _found(visit, "applied")


def _found(visit: Visit, kind: str) -> Response:
    owner = {"organization": visit.organization, "kind": kind}
    found = visit.written.payment_links.get(visit.part("paymentLinkId"), **owner)
    return answer(present(found, "payment link"))


def payment_method_requests(visit: Visit) -> Listing:
    """List the requests to put a payment method on file."""
    return visit.written.payment_method_requests.listing(organization=visit.organization)


async def create_payment_method_request(visit: Visit) -> Response:
    """Ask a customer to put a payment method on file."""
    body = await visit.body(MethodRequestBody)
    visit.customer(body.customer_id)
    request_id = new_id()
    record: JSON = {
        "paymentMethodRequestId": request_id,
        "customerId": body.customer_id,
        "kinds": body.kinds,
        "message": body.message,
        "status": "pending",
        **_times(visit, body.expires_in_days),
    }
    owner = {"organization": visit.organization}
    visit.written.payment_method_requests.create(request_id, record, **owner)
    return created(record, f"{visit.request.url.path}/{request_id}")


async def payment_method_request(visit: Visit) -> Response:
    """Answer one request to put a payment method on file."""
    request_id = visit.part("paymentMethodRequestId")
    requests = visit.written.payment_method_requests
    found = requests.get(request_id, organization=visit.organization)
    return answer(present(found, "payment method request"))
