"""The people around an organization: customers, users, and the emails sent. Fields are assumed.

Here: their seeded records. Not here: what customers owe and paid (ledger).
"""

import json
from typing import Any

from sandbox.data.scripts import CITIES, company
from sandbox.merchant.office import Office, before_epoch, moment

JSON = dict[str, Any]
CUSTOMERS = 60
USERS = 8
EMAILS = 150
COUNTRIES = ("CH", "PL", "GR", "UA", "JP", "KW", "IN", "BR")
NAMES = ("Ada Müller", "Zofia Żak", "Ελένη Ρήγα", "Олена Коваль", "佐藤 花子", "ليلى حداد")
ROLES = (("companyAdmin",), ("manageProfiles",), ("companyAdmin", "manageProfiles"), ())
SUBJECTS = {
    "invoice": "Your invoice",
    "reminder": "A payment is due",
    "receipt": "Thank you for your payment",
    "payment_link": "Pay online",
}


def customer(office: Office, index: int) -> JSON:
    """Give a customer; the address may be missing, the phone number null."""
    draw = office.draw("customers", index)
    record: JSON = {
        "customerId": draw.id,
        "name": json.loads(company(draw.number(0) % 64)),
        "email": f"accounts-{index:03d}@customer.example",
        "phone": f"+41445{draw.number(1):06d}" if draw.choices[3] % 3 else None,
        "externalId": f"{draw.number(4):08d}",
        "status": draw.of(("active", "active", "active", "archived"), 6),
        "currency": office.currency,
        "createdAt": moment(before_epoch(400 + draw.choices[7], index)),
    }
    if index % 3:
        place = draw.choices[8] % len(CITIES)
        record["address"] = {
            "line1": f"{draw.choices[9]} / {draw.choices[10]}",
            "city": json.loads(CITIES[place]),
            "postalCode": f"0{draw.choices[11]:04d}",
            "country": COUNTRIES[place],
        }
    return record


def user(office: Office, index: int) -> JSON:
    """Give a person who works for the organization; some have never signed in."""
    draw = office.draw("users", index)
    invited = not index % 5 and draw.choices[1] % 2
    return {
        "userId": draw.id,
        "name": NAMES[(index + draw.choices[0]) % len(NAMES)],
        "email": f"user-{index}@merchant.example",
        "mappings": list(ROLES[index % len(ROLES)]),
        "status": "invited" if invited else "active",
        "createdAt": moment(before_epoch(500, draw.number(2))),
        "lastSeenAt": None if invited else moment(before_epoch(draw.choices[4] % 30)),
    }


def email(office: Office, index: int) -> JSON:
    """Give an email that was sent to a customer; newer ones come first."""
    draw = office.draw("emails", index)
    to = customer(office, draw.number(0) % CUSTOMERS)
    kind = draw.of(tuple(SUBJECTS), 2)
    return {
        "emailId": draw.id,
        "customerId": to["customerId"],
        "to": to["email"],
        "kind": kind,
        "subject": SUBJECTS[kind],
        "status": draw.of(("delivered", "delivered", "sent", "bounced"), 3),
        "sentAt": moment(before_epoch(index, draw.choices[4])),
    }


def customers(office: Office) -> list[JSON]:
    """Give all customers."""
    return [customer(office, index) for index in range(CUSTOMERS)]


def users(office: Office) -> list[JSON]:
    """Give all users."""
    return [user(office, index) for index in range(USERS)]


def emails(office: Office) -> list[JSON]:
    """Give all emails."""
    return [email(office, index) for index in range(EMAILS)]
