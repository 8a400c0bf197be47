"""What a sync costs as the lists grow, with the sandbox's rate limit off."""

from benchmarks.machine import table
from benchmarks.syncing import served, synced

SIZES = (1_000, 20_000, 1_000_000)


def measure() -> str:
    """Sync three sizes twice (a first night and a second); return a table."""
    rows = [row for size in SIZES for row in _rows(size)]
    columns = ["usage rows", "billing rows", "night", "wall", "CPU", "rows a CPU second", "peak"]
    return table(columns, rows)


def _rows(size: int) -> list[list[object]]:
    billing = size // 10
    sizes = (f"--usage={size}", f"--billing={billing}", "--partners=250", "--rate=0")
    rows: list[list[object]] = []
    with served(*sizes, environment={"PARTNER_SYNC_WINDOW": "0"}) as service:
        for night in ("first", "second"):
            cost = synced(service)
            pace = (size + billing) / cost.cpu
            rows.append(
                [
                    f"{size:,}",
                    f"{billing:,}",
                    night,
                    f"{cost.wall:.1f} s",
                    f"{cost.cpu:.1f} s",
                    f"{pace:,.0f}",
                    f"{cost.peak:.0f} MB",
                ]
            )
    return rows
