"""Organizations: a few per partner. All their fields are assumed ("organizations … not shown").

Here: the organization records. Not here: which of them used what (usage).
"""

from collections.abc import Callable

from sandbox.data.digest import ID_SIZE, identifier, source
from sandbox.data.scripts import CITIES, company

ORGANIZATIONS_PER_PARTNER = 3
STATUSES = ("active", "active", "active", "trial", "disabled")
COUNTRIES = ("CH", "PL", "GR", "UA", "JP", "KW", "IN", "BR")


def organization_record(seed: int) -> Callable[[int], bytes]:
    """Give the function from an index to the organization as JSON; two in three have an address."""
    chance, partner = source(seed, "organizations"), source(seed, "partners")

    def record(index: int) -> bytes:
        owner, branch = divmod(index, ORGANIZATIONS_PER_PARTNER)
        digest = chance(index)
        choice = digest[ID_SIZE:]
        status = STATUSES[choice[0] % len(STATUSES)]
        created = f"20{20 + choice[1] % 6}-{choice[2] % 12 + 1:02d}-{choice[3] % 28 + 1:02d}"
        return (
            f'{{"organizationId":"{identifier(digest)}","partnerId":"{identifier(partner(owner))}"'
            f',"name":{company(index)},"status":"{status}","createdAt":"{created}T08:30:00Z"'
            f"{_address(choice) if branch else ''}}}"
        ).encode()

    return record


def _address(choice: bytes) -> str:
    city = choice[4] % len(CITIES)
    line = f'"line1":"{choice[5]} / {choice[6]}","city":{CITIES[city]}'
    return f',"address":{{{line},"postalCode":"0{choice[7]:04d}","country":"{COUNTRIES[city]}"}}'
