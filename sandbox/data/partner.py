"""Partners: exactly the three fields of "Partner item".

Here: the partner records. Not here: what else is known of a partner where it pays (group).
"""

from collections.abc import Callable

from sandbox.data.digest import identifier, source
from sandbox.data.scripts import company

EXTERNAL_IDS = (
    "{:08d}",
    "CRM-{:05d}",
    "{:d}",
    "00{:x}",
)  # some with leading zeros, all of them text


def partner_record(seed: int) -> Callable[[int], bytes]:
    """Give the function from an index to the partner as JSON."""
    chance = source(seed, "partners")

    def record(index: int) -> bytes:
        external = EXTERNAL_IDS[index % len(EXTERNAL_IDS)].format(4_711 + 3 * index)
        return (
            f'{{"partnerId":"{identifier(chance(index))}","name":{company(index)}'
            f',"externalId":"{external}"}}'
        ).encode()

    return record
