"""Progress of many lists is that of one."""

from pipelines.app.results import TotalProgress

Report = tuple[str, int, int, int | None]


def test_many_lists_are_reported_as_one() -> None:
    reports = list[Report]()

    def note(name: str, rows: int, requests: int, expected_rows: int | None) -> None:
        reports.append((name, rows, requests, expected_rows))

    total = TotalProgress(note, 2)
    total("a/usage", 100, 1, 1000)
    total("b/usage", 50, 1, None)
    total("b/usage", 70, 2, 60)
    total("a/usage", 500, 5, 1000)
    assert reports == [
        ("1 of 2 lists", 100, 1, None),
        ("2 of 2 lists", 150, 2, None),
        ("2 of 2 lists", 170, 3, 1070),
        ("2 of 2 lists", 570, 7, 1070),
    ]
