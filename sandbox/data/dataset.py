"""The dataset: the five lists of the partner surface as of one day.

Here: the one door through which the server reaches the data. Not here: HTTP, and anything that
changes while it is served.
"""

from dataclasses import dataclass, replace

from sandbox.data.billing import billing_record
from sandbox.data.extra import Extras
from sandbox.data.group import groups_of
from sandbox.data.listing import Pageable, each, listing
from sandbox.data.names import FieldNames, named
from sandbox.data.organization import ORGANIZATIONS_PER_PARTNER, organization_record
from sandbox.data.partner import partner_record
from sandbox.data.plan import plan_records
from sandbox.data.plant import NOTHING, Plant
from sandbox.data.sizes import Sizes
from sandbox.data.usage import usage_block, usage_record

USAGE_BLOCKS = 256  # kept: 64,000 rows of about 500 bytes
OTHER_BLOCKS = 40  # kept of each other list


@dataclass(frozen=True)
class Dataset:
    """The lists as of one day."""

    plans: Pageable
    partners: Pageable
    organizations: Pageable
    usage: Pageable
    billing: Pageable


def dataset(
    seed: int,
    sizes: Sizes,
    errors: Plant = NOTHING,
    *,
    awkward: bool = False,
    field_names: FieldNames = "usual",
) -> Dataset:
    """Make the dataset of ``seed`` and ``sizes``; nothing is written before it is asked for."""
    groups, extras = errors.calm(groups_of(seed, sizes)), Extras(awkward)
    plans = plan_records(seed)
    partners = sizes.partners_now
    organizations = each(organization_record(seed))
    usage = usage_block(groups, errors.usage(usage_record(seed, awkward=awkward)))
    bill = billing_record(
        seed,
        errors.billed(groups),
        errors.charged,
        lambda group: errors.extra_of(group) or extras.of(group),
        awkward=awkward,
    )
    billing = each(errors.billing(bill, extras))
    bills = extras.count(sizes.billing_now) + errors.bills
    return Dataset(
        plans=replace(listing(len(plans), each(plans.__getitem__), OTHER_BLOCKS), write=None),
        partners=listing(partners, each(partner_record(seed)), OTHER_BLOCKS),
        organizations=listing(partners * ORGANIZATIONS_PER_PARTNER, organizations, OTHER_BLOCKS),
        usage=listing(sizes.usage_now, named(field_names, "usage", usage), USAGE_BLOCKS),
        billing=listing(bills, named(field_names, "billing", billing), OTHER_BLOCKS),
    )
