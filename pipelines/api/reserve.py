"""The reserve: requests per window that are left to other users of the same actor.

The headers show it: an answer counts more requests in its window than all our processes can have
sent. The number that one answer shows is reserved at once, but only for a few windows, because a
network delay can bunch the requests of others. A number that a second answer soon confirms is held
for a minute after the last answer that shows it. Then it shrinks by one request at a time.
"""

from dataclasses import replace

from pipelines.state.slots import Account

PEAK_WINDOWS = 3  # windows for which the number that a single answer showed is reserved
CONFIRMED_WITHIN = 20.0  # seconds within which a second answer confirms the first
HELD = 60.0  # seconds for which a confirmed reserve stays after the last answer that showed it
EASING_SECONDS = 20.0  # seconds between steps down; a step is one request per window


def current(account: Account, window: float, now: float) -> int:
    """Return the requests per window that are reserved for others now."""
    fresh = now < account.peak_at + PEAK_WINDOWS * window
    return max(_confirmed(account, now), account.peak if fresh else 0)


def _confirmed(account: Account, now: float) -> int:
    idle = now - account.reserve_at
    if idle < HELD:
        return account.reserve
    return max(0, account.reserve - 1 - int((idle - HELD) / EASING_SECONDS))


def raised(account: Account, foreign: int, window: float, now: float) -> Account:
    """Return the account after an answer that counted `foreign` requests of others in its window.

    Answers within one window of each other show the same requests and confirm nothing.
    """
    confirmed, since_peak = _confirmed(account, now), now - account.peak_at
    if 0 < foreign == confirmed:
        return replace(account, reserve=foreign, reserve_at=now)
    if foreign <= confirmed:
        return account
    recent = account.peak > confirmed and since_peak < max(CONFIRMED_WITHIN, PEAK_WINDOWS * window)
    if recent and since_peak > window:
        confirmed = min(foreign, account.peak)
        account = replace(account, reserve=confirmed, reserve_at=now)
    if not recent or foreign > account.peak:
        account = replace(account, peak=foreign, peak_at=now)
    return account
