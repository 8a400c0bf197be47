"""Two people close a month: who prepares it, and another user of the machine who approves it.

With root's rights, a test runs commands as two users of the system. Without them, nobody can: there
the same decision is asked for every owner (`owners`), and that a file has its owner (`inbox`).
"""

import grp
import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pipelines.core.errors import ArchiveDamaged, ConfigurationError
from pipelines.core.person import name_of
from pipelines.finance import approvals
from pipelines.finance.approvals import take_over
from pipelines.finance.approve import approve_copy
from pipelines.finance.books import make_books
from pipelines.finance.close import (
    close_alone,
    close_month,
    list_closes,
    prepare_close,
    reopen_month,
)
from pipelines.finance.inbox import Note, Refused, read_note
from pipelines.finance.reconcile.close_copy import MANIFEST, digest_of
from pipelines.finance.report import judge, read_figures_of_books
from pipelines.finance.reports.month_verdicts import SignOff
from pipelines.finance.signing import Signing
from pipelines.metadata.tables import Close
from pipelines.versions.change import change_versions
from tests.reconcile.books import FIRST, partners, publish
from tests.reconcile.months import (
    ACCOUNTS,
    BILLS,
    OCTOBER,
    SEPTEMBER,
    TERMS,
    USAGE,
    publish_closed,
    publish_months,
    signing,
)
from tests.reports.conftest import page_text
from tests.versions.homes import Stores, goes_on_from, home_of

ACCEPT = "known since August"
OTHER = 1 if os.getuid() != 1 else 2  # a user that every system has
books = home_of(publish_months)


@pytest.fixture
def prepared(books: Stores) -> Stores:
    prepare_close(books, SEPTEMBER, Signing("as agreed", ACCEPT))
    return books


def copy_of(stores: Stores, number: int = 1) -> Path:
    return stores.home.closes / "2026-09" / f"{number:03}"


def sha256_of(stores: Stores, number: int = 1) -> str:
    rows = {row["number"]: row["manifest_sha256"] for row in list_closes(stores)}
    return str(rows[number])


def states(stores: Stores) -> list[str]:
    return [row["state"] for row in list_closes(stores)]


@pytest.mark.long
def test_a_prepared_month_is_not_closed(prepared: Stores) -> None:
    (row,) = list_closes(prepared)
    assert (row["state"], row["problem"], row["reviewer"]) == ("prepared", None, "")
    assert row["preparer"] == name_of(os.getuid())
    manifest = json.loads((copy_of(prepared) / MANIFEST).read_bytes())
    assert (manifest["approval"], manifest["accept_open"]) == ("two", ACCEPT)
    assert manifest["preparer_uid"] == os.getuid()
    prepare_close(prepared, SEPTEMBER, Signing("again", ACCEPT))
    assert states(prepared) == ["withdrawn", "prepared"]
    with prepared.metadata.transaction() as session:
        session.query(Close).filter_by(number=2).one().note = "agreed with the board"
    problems = [row["problem"] for row in list_closes(prepared)]
    assert problems[0] is None
    assert "says otherwise than the metadata database: note." in problems[1]


def test_the_report_says_that_a_month_waits_for_approval(prepared: Stores) -> None:
    with prepared.metadata.transaction() as session:
        (close,) = session.query(Close)
        said = f"prepared by user {close.preparer} on {close.closed_at:%d %b %Y} (copy {{}})."
    page = page_text(prepared)
    assert f"Waiting for approval: Sep 2026, {said.format(1)}" in page
    assert "Sep 2026 prepared, waiting for approval" in page
    figures = read_figures_of_books(prepared, with_details=True)
    (months,) = [each for each in figures.details if each.listing.name == "months"]
    shown = zip(months.columns["month"], months.columns["signed"], strict=True)
    assert {signed for month, signed in shown if month == "2026-09"} == {SignOff.PREPARED}
    (waiting,) = judge(figures).as_json()["prepared"]
    assert (waiting["month"], waiting["number"]) == (SEPTEMBER, 1)
    # The page in a copy is of what is signed with it, and not of the copy before.
    prepare_close(prepared, SEPTEMBER, Signing("again", ACCEPT))
    assert "aiting for approval" not in (copy_of(prepared, 2) / "report.html").read_text("utf-8")
    assert f"Waiting for approval: Sep 2026, {said.format(2)}" in page_text(prepared)


@pytest.mark.parametrize(
    ("owner", "refusal"),
    [
        (0, "root is nobody in particular"),
        (4_000_000_000, "uid 4000000000 is no user of this machine"),
        (os.getuid(), "root is nobody|prepared it, or owns the home"),
        (OTHER, ""),
    ],
)
def test_the_owner_of_a_file_decides(prepared: Stores, owner: int, refusal: str) -> None:
    note = Note(owner, "2026-09", 1, sha256_of(prepared))
    if refusal:
        with pytest.raises(Refused, match=refusal):
            approvals._close(prepared, note)
        assert states(prepared) == ["prepared"]
        return
    assert f"approved by {name_of(OTHER)}, is closed" in approvals._close(prepared, note)
    (row,) = list_closes(prepared)
    assert (row["reviewer"], bool(row["approved_at"])) == (name_of(OTHER), True)
    # As after a kill before the file is moved.
    assert "is closed" in approvals._close(prepared, note)


WRONG: dict[str, Callable[[Stores], Note]] = {
    "another manifest": lambda _stores: Note(OTHER, "2026-09", 1, "0" * 64),
    "no such copy": lambda stores: Note(OTHER, "2026-09", 7, sha256_of(stores)),
    "is no month": lambda stores: Note(OTHER, "../..", 1, sha256_of(stores)),
    "prepared again since": lambda stores: prepare_again(stores),  # noqa: PLW0108 - it is below
}


def prepare_again(stores: Stores) -> Note:
    prepare_close(stores, SEPTEMBER, Signing("another note", ACCEPT))
    return Note(OTHER, "2026-09", 1, sha256_of(stores))


@pytest.mark.parametrize("refusal", WRONG)
def test_a_wrong_approval_closes_nothing(prepared: Stores, refusal: str) -> None:
    with pytest.raises(Refused, match=refusal):
        approvals._close(prepared, WRONG[refusal](prepared))
    assert "closed" not in states(prepared)


@pytest.mark.long
def test_a_copy_that_changed_is_not_closed(prepared: Stores) -> None:
    note = Note(OTHER, "2026-09", 1, sha256_of(prepared))
    file = copy_of(prepared) / "summary.parquet"
    file.chmod(0o600)
    file.write_bytes(file.read_bytes() + b"x")
    with pytest.raises(ArchiveDamaged):
        approvals._close(prepared, note)
    assert states(prepared) == ["prepared"]


def test_the_inbox_takes_only_whole_files_of_their_own(prepared: Stores, tmp_path: Path) -> None:
    inbox = prepared.home.inbox
    assert oct(inbox.stat().st_mode)[-4:] == "1733"
    note = {"month": "2026-09", "number": 1, "manifest_sha256": sha256_of(prepared)}
    outside = tmp_path / "approval.json"
    outside.write_text(json.dumps(note))
    (inbox / "a.json").symlink_to(outside)
    (inbox / "b.json").hardlink_to(outside)
    os.mkfifo(inbox / "c.json")
    (inbox / "d.json").mkdir()
    (inbox / "e.json").write_text("{" * 100_000)
    (inbox / "f.json").write_text("[1]")
    (inbox / "g.json").write_text(json.dumps({**note, "number": None}))
    (inbox / ".h.json").write_text(json.dumps(note))  # it is being written
    (inbox / "i.json").write_text("[" * 10_000)
    (inbox / "j.json").write_text(json.dumps({**note, "number": float("inf")}))
    (inbox / "moved.json").write_text(json.dumps({**note, "inode": 1}))
    open_to_all = write_note(inbox / "open.json", note)
    open_to_all.chmod(0o666)
    own = write_note(inbox / "own.json", {**note, "approver": "bob", "owner": OTHER})
    assert read_note(own).owner == os.getuid()
    with pytest.raises(Refused, match="another file"):
        read_note(inbox / "moved.json")
    with pytest.raises(Refused, match="no file of its own"):
        read_note(open_to_all)
    assert take_over(prepared) == []
    assert states(prepared) == ["prepared"]
    assert sorted(file.name for file in inbox.iterdir()) == [".h.json", "d.json"]
    assert outside.exists()


def write_note(file: Path, note: dict[str, Any]) -> Path:
    """Write a file as `close approve` does: it says its own number."""
    file.touch(mode=0o644)
    file.write_text(json.dumps({**note, "inode": file.stat().st_ino}))
    return file


@pytest.mark.long
def test_only_named_users_approve_if_any_are_named(prepared: Stores) -> None:
    note = Note(OTHER, "2026-09", 1, sha256_of(prepared))
    with pytest.raises(Refused, match="is not in setting approvers"):
        approvals._close(prepared.changed(approvers=("bob",)), note)
    assert "is closed" in approvals._close(prepared.changed(approvers=(name_of(OTHER),)), note)


def test_a_passing_failure_keeps_the_approval(prepared: Stores) -> None:
    note = {"month": "2026-09", "number": 1, "manifest_sha256": sha256_of(prepared)}
    file = write_note(prepared.home.inbox / "a.json", note)
    copy = copy_of(prepared) / "summary.parquet"
    copy.rename(copy.with_suffix(".away"))
    assert take_over(prepared) == []
    assert file.exists()


def test_severe_breaks_need_an_owner_and_a_reason_or_a_word_for_all(books: Stores) -> None:
    with pytest.raises(ConfigurationError, match="no owner with a reason") as refused:
        prepare_close(books, SEPTEMBER, Signing())
    assert "--accept-open" in refused.value.remedy
    assert list_closes(books) == []


def test_one_person_is_written_down(books: Stores) -> None:
    alone = books.changed(approval="one")
    assert "is closed by one person" in close_alone(alone, SEPTEMBER, Signing("n", ACCEPT))
    me = name_of(os.getuid())
    assert f"already: {me} closed it at 20" in close_alone(alone, SEPTEMBER, Signing("n", ACCEPT))
    with pytest.raises(ConfigurationError, match=f"closed: {me} closed it at 20"):
        close_alone(alone, SEPTEMBER, Signing("another note", ACCEPT))
    manifest = json.loads((copy_of(books) / MANIFEST).read_bytes())
    assert (manifest["approval"], manifest["reviewer"]) == ("one", "")
    with pytest.raises(ConfigurationError, match="by one user: setting approval is two"):
        close_month(books.changed(approval="two"), *signing())


@goes_on_from(publish_closed)
def prepare_october(stores: Stores) -> None:
    publish(stores, mapping=TERMS + ACCOUNTS, partners=partners([FIRST]), billing=BILLS)
    prepare_close(stores, OCTOBER, Signing("", ACCEPT))


october = home_of(prepare_october)


def october_note(stores: Stores, number: int) -> Note:
    digest = digest_of(stores.home.closes / "2026-10" / f"{number:03}" / MANIFEST)
    return Note(OTHER, "2026-10", number, digest)


@pytest.mark.long
def test_a_correction_that_comes_before_the_approval_is_in_a_journal(october: Stores) -> None:
    publish(october, mapping=TERMS + ACCOUNTS, usage=[{**USAGE[0], "amount": "8.00"}, *USAGE[1:]])
    assert october.rows("SELECT strftime(posted_to, '%Y-%m') FROM finance.corrections") == [
        ("2026-10",)
    ]
    with pytest.raises(Refused, match="1 correction of earlier months changed"):
        approvals._close(october, october_note(october, 1))
    problem = list_closes(october)[-1]["problem"]
    assert "2026-10 (001) cannot be approved: since its copy was prepared" in problem
    publish(october, mapping=TERMS + ACCOUNTS, partners=partners([FIRST]), billing=BILLS)
    prepare_close(october, OCTOBER, Signing("", ACCEPT))
    assert "is closed" in approvals._close(october, october_note(october, 2))
    states_of = [row["state"] for row in list_closes(october)]
    assert states_of[1:] == ["withdrawn", None]  # of the last one, no books are made yet
    journal = (october.home.closes / "2026-10" / "002" / "journal.csv").read_text()
    assert "usage u of 2026-09" in journal


@pytest.mark.long
def test_a_copy_goes_on_from_the_month_before_as_it_is_closed(october: Stores) -> None:
    reopen_month(october, SEPTEMBER, "cid", "a bill was wrong")
    with pytest.raises(Refused, match="so its opening balances are others"):
        approvals._close(october, october_note(october, 1))
    assert "opening balances are others" in list_closes(october)[-1]["problem"]


@pytest.mark.long
def test_two_prepared_months_are_closed_with_one_mapping(prepared: Stores) -> None:
    september = Note(OTHER, "2026-09", 1, sha256_of(prepared))
    other = f'time_zone = "Asia/Tokyo"\n{TERMS}'
    publish(prepared, mapping=other, partners=partners([FIRST]), billing=BILLS)
    refusal = "since its copy was prepared, mapping.toml changed"
    with pytest.raises(Refused, match=refusal):
        approvals._close(prepared, september)
    assert refusal in list_closes(prepared)[0]["problem"]
    prepare_close(prepared, OCTOBER, Signing("", ACCEPT))
    approvals._close(prepared, october_note(prepared, 1))
    # The mapping is again as it was, and October was signed with the other one.
    publish(prepared, mapping=TERMS, partners=partners([FIRST]), billing=BILLS)
    with pytest.raises(Refused, match="2026-10 was closed with another mapping"):
        approvals._close(prepared, september)


@pytest.mark.long
def test_evidence_of_an_approval_is_looked_at_again(prepared: Stores) -> None:
    note = {"month": "2026-09", "number": 1, "manifest_sha256": sha256_of(prepared)}
    approvals._close(prepared, Note(OTHER, "2026-09", 1, sha256_of(prepared)))
    for write, problem in (
        (lambda _file: None, "cannot be read: No such file"),
        (lambda file: file.write_text("{}"), "was changed: it is no approval"),
        (lambda file: write_note(file, {**note, "number": 2}), "is of another copy"),
        (
            lambda file: write_note(file, note),
            f"is owned by {name_of(os.getuid())}, not by {name_of(OTHER)}",
        ),
    ):
        prepared.home.approvals.mkdir(exist_ok=True)
        file = prepared.home.approvals / "2026-09-001.json"
        write(file)
        (row,) = list_closes(prepared)
        assert problem in row["problem"]
    with prepared.metadata.transaction() as session:
        session.query(Close).one().reviewer = name_of(os.getuid())
    file.write_text(json.dumps({**note, "inode": 1}))  # as from a backup
    make_books(prepared)
    assert [row["problem"] for row in list_closes(prepared)] == [None]


def test_an_approval_waits_for_who_posts_corrections(prepared: Stores) -> None:
    note = {"month": "2026-09", "number": 1, "manifest_sha256": sha256_of(prepared)}
    file = write_note(prepared.home.inbox / "a.json", note)
    with change_versions(prepared):
        assert take_over(prepared) == []
    assert file.exists()
    assert take_over(prepared) == []  # it is of the user of the home
    assert not file.exists()


@pytest.mark.long
def test_one_of_several_copies_is_named(prepared: Stores) -> None:
    prepare_again(prepared)
    digest = sha256_of(prepared, 2)
    for named, said in (
        ({}, "has several copies: 001, 002"),
        ({"number": 7}, "there are 001, 002"),
        ({"number": 1, "manifest_sha256": digest}, "there are 001, 002"),
        ({"manifest_sha256": f" {digest.upper()}"}, "002 cannot be approved: root|002 cannot be"),
        ({"number": 1}, "001 cannot be approved"),
    ):
        with pytest.raises(ConfigurationError, match=said):
            approve_copy(SEPTEMBER, **named, home=prepared.home)


@dataclass(frozen=True)
class User:
    """A user of the system, who runs commands with the home of another one."""

    name: str
    python: str
    is_reader: bool = True

    @property
    def groups(self) -> list[int]:
        return [grp.getgrnam(READERS).gr_gid] if self.is_reader else []

    def run(self, home: Path, *arguments: str, **environment: str) -> Any:
        code = (
            "import sys; from pipelines.cli.start import main; sys.argv[0] = 'partner-sync'; main()"
        )
        return self.python_with(home, code, *arguments, **environment)

    def python_with(self, home: Path, code: str, *arguments: str, **environment: str) -> Any:
        """Run Python as this user; its variables name the home, and perhaps another user."""
        known = pwd.getpwnam(self.name)
        paths = [str(Path(__file__).parents[2]), *(path for path in sys.path if "site-p" in path)]
        return subprocess.run(
            [self.python, "-c", code, *arguments],
            check=False,
            capture_output=True,
            text=True,
            timeout=120,
            cwd="/",
            user=known.pw_uid,
            group=known.pw_gid,
            extra_groups=self.groups,
            env={
                "PARTNER_SYNC_HOME": str(home),
                "PYTHONPATH": os.pathsep.join(paths),
                "PYTHONDONTWRITEBYTECODE": "1",
                "PATH": os.defpath,
                "HOME": "/",
                "COLUMNS": "400",
                **environment,
            },
        )


READERS = "users"
NAMES = ("games", "daemon")  # who has the home, and who approves


def python_for_all() -> str:
    """Return a Python that both users can run with what partner-sync needs; empty without one."""
    if os.getuid() != 0:
        return ""
    for python in (sys.executable, *filter(None, map(shutil.which, ("/usr/bin/python3",)))):
        try:
            tried = [
                User(name, python).python_with(Path("/"), "import duckdb, typer, sqlalchemy")
                for name in NAMES
            ]
        except (OSError, KeyError, subprocess.SubprocessError):
            continue
        if all(each.returncode == 0 for each in tried):
            return python
    return ""


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that every user can reach."""
    with tempfile.TemporaryDirectory(prefix="partner-sync-", dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


SECRETS = """
import os, sys
home = sys.argv[1]
for path in ("config/connections.toml", "config/settings.toml", "metadata.db", "archive", "inbox"):
    path = os.path.join(home, path)
    try:
        os.listdir(path) if os.path.isdir(path) else open(path).read()
        print("READ", path)
    except PermissionError:
        pass
for folder in ("", "config", "closes", "closes/2026-09/001", "books", "versions", "approvals"):
    try:
        open(os.path.join(home, folder, "mine"), "w")
        print("WROTE", folder)
    except (PermissionError, FileNotFoundError):
        pass
import duckdb
duckdb.connect(os.path.join(home, "books.duckdb"), read_only=True)
open(os.path.join(home, "closes/2026-09/001/report.html")).read()
"""


@pytest.mark.long
def test_two_users_of_the_machine_close_a_month(shared: Path) -> None:
    stores = Stores.open(shared / "home")
    publish_months(stores)
    stores.home.settings_file.write_text(f'readers = "{READERS}"\n')
    stores.metadata.close()
    home = stores.home.root
    python = python_for_all()
    if not python:  # no user but this one: what the kernel would say is given, see above
        refuse_own_user(stores)
        return
    owner, approver = (User(name, python) for name in NAMES)
    for path in (home, *home.rglob("*")):
        os.chown(path, *pwd.getpwnam(owner.name)[2:4], follow_symlinks=False)
    done = owner.run(home, "close", "prepare", "2026-09", "--accept-open", ACCEPT)
    assert "is prepared, and waits" in done.stdout, (done.stdout, done.stderr)
    refuse_others(home, python)
    refuse_forged(home, owner)
    # The approver reads copies and books, no secret, and writes nothing.
    tried = approver.python_with(home, SECRETS, str(home))
    assert (tried.stdout, tried.stderr) == ("", "")
    done = approver.run(home, *APPROVE)
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert "daemon approves 2026-09, copy 001" in done.stdout
    (row,) = json.loads(owner.run(home, "close", "list", "--json").stdout)
    assert (row["state"], row["preparer"], row["reviewer"]) == ("closed", *NAMES)
    assert row["approved_at"]
    assert (home / "approvals" / "2026-09-001.json").owner() == approver.name
    shown = owner.run(home, "sql", "SELECT approval, preparer, reviewer FROM finance.closes")
    assert "daemon" in shown.stdout, (shown.stdout, shown.stderr)


APPROVE = ("close", "approve", "2026-09")


def refuse_others(home: Path, python: str) -> None:
    """Require that neither who prepared it, whatever LOGNAME says, nor root, nor others approve."""
    owner, approver = (User(name, python) for name in NAMES)
    refused = owner.run(home, *APPROVE, LOGNAME=approver.name, USER=approver.name)
    assert (refused.returncode, "prepared it, or owns the home" in refused.stderr) == (2, True)
    refused = User("root", python).run(home, *APPROVE, SUDO_USER=approver.name)
    assert (refused.returncode, "root is nobody in particular" in refused.stderr) == (2, True)
    refused = User(approver.name, python, is_reader=False).run(home, *APPROVE)
    assert (refused.returncode, "cannot be read" in refused.stderr) == (2, True)


def refuse_forged(home: Path, owner: User) -> None:
    """Require that approvals which root and the home's user write themselves are none."""
    note = {
        "month": "2026-09",
        "number": 1,
        "manifest_sha256": digest_of(home / "closes/2026-09/001" / MANIFEST),
    }
    for name in ("root", owner.name):
        file = home / "inbox" / f"{name}.json"
        file.write_text(json.dumps(note))
        os.chown(file, *pwd.getpwnam(name)[2:4])
    listed = owner.run(home, "close", "list")
    assert "prepared" in listed.stdout
    assert listed.stderr.count("approves nothing, and was deleted") == 2


@pytest.mark.long
def test_an_approver_refuses_a_copy_that_changed(shared: Path) -> None:
    stores = Stores.open(shared / "home")
    publish_months(stores)
    prepare_close(stores, SEPTEMBER, Signing("", ACCEPT))
    python = python_for_all()
    if not python:
        refuse_own_user(stores)
        return
    for path in (stores.home.closes, *stores.home.closes.rglob("*")):
        path.chmod(0o755)
    file = copy_of(stores) / "used.parquet"
    content = file.read_bytes()
    file.write_bytes(content + b"x")
    approver = User(NAMES[1], python)
    refused = approver.run(stores.home.root, "close", "approve", "2026-09")
    assert refused.returncode != 0
    assert "was changed after it was prepared: used.parquet" in refused.stderr
    # A manifest that was rewritten with the files verifies itself: the home knows the right one.
    manifest = json.loads((copy_of(stores) / MANIFEST).read_bytes())
    manifest["note"] = "another"
    file.write_bytes(content)
    (copy_of(stores) / MANIFEST).write_text(json.dumps(manifest))
    done = approver.run(stores.home.root, "close", "approve", "2026-09")
    assert done.returncode == 0, done.stderr
    assert take_over(stores) == []
    assert states(stores) == ["prepared"]
    assert [*stores.home.inbox.iterdir()] == []


def refuse_own_user(stores: Stores) -> None:
    """Require that this user, who has the home, cannot approve: nobody else can run anything."""
    reopened = Stores.open(stores.home.root)
    if not list_closes(reopened):
        prepare_close(reopened, SEPTEMBER, Signing("", ACCEPT))
    with pytest.raises(ConfigurationError, match="cannot be approved"):
        approve_copy(SEPTEMBER, home=reopened.home)
    assert states(reopened) == ["prepared"]
    reopened.metadata.close()
