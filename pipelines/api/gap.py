"""The learned gap: a least distance between requests, once a 429 has proved our log insufficient.

Another algorithm than the documented one, or somebody else on the same actor. It stays with the
actor in the state database; what it is worth after a night is not less, so it eases with use only.
"""

from dataclasses import replace

from pipelines.state.slots import Account

GROWTH, MOST = 1.06, 1.35  # an incident; in all, of one window's even share (0.20 to 0.27 s)
HELD, HELD_GROWTH, HELD_MOST = 60.0, 1.5, 3600.0
EASING, EASING_SECONDS = 0.98, 20.0
OFF = 0.5  # of the even share: a gap so small shapes nothing


def raised(account: Account, share: float, now: float) -> Account:
    """Return the account after a 429; `share` is the seconds of a window for each request."""
    hold = min(account.hold * HELD_GROWTH, HELD_MOST) if account.hold else HELD
    gap = min(max(account.gap * GROWTH, share), share * MOST)
    return replace(account, gap=gap, hold=hold, ease_at=now + hold, incident_at=now)


def eased(account: Account, share: float, now: float) -> Account:
    """Return the account as it is now: one step less each 20 s of use, off in the end."""
    if not account.gap or now < account.ease_at:
        return account
    gap = account.gap * EASING
    return replace(account, gap=gap if gap > share * OFF else 0.0, ease_at=now + EASING_SECONDS)
