"""Reading one list that changes meanwhile: requests out, pages in, a proof at the end."""

from collections.abc import Generator

from pipelines.core.completeness import ListMemory, ReadBudget
from pipelines.extract.key import KeySearch
from pipelines.extract.marks import StoredPage, mark_page, store_page
from pipelines.extract.pager import Pager
from pipelines.extract.pages import Ask, Page, Proof, Purpose, Stop
from pipelines.extract.passes import Reading


def read_list(
    configured_key: str | None, memory: ListMemory, budget: ReadBudget
) -> Generator[Ask, Page | Stop, Proof]:
    """Read a list until it is proven complete, or until the budget is used up.

    The same answers lead to the same requests. If the rows turn out to be identified by another
    field, reading begins again with the pages that were read already.
    """
    search = KeySearch(configured_key, memory)
    answers: list[StoredPage | Stop] = []
    while True:
        proof = yield from _read_by_key(search, answers, Reading(Pager(memory, budget)))
        if proof is not None:
            return proof


def _read_by_key(
    search: KeySearch, answers: list[StoredPage | Stop], reading: Reading
) -> Generator[Ask, Page | Stop, Proof | None]:
    """Read by the field in use; None if another field turns out to be the key."""
    steps = reading.read()
    replayed, used = len(answers), 0
    try:
        ask = next(steps)
        while True:
            if used < replayed and _answers(answers[used], ask):
                answer = answers[used]
                used += 1
            elif answers and isinstance(answers[-1], Stop):
                answer = answers[-1]
            else:
                used = replayed  # pages of before are of no use any more
                reading.pager.spent = len(answers)
                answer = yield from _ask(search, answers, ask)
                if _is_doubtful(search, ask) and search.change():
                    return None
            reading.key, reading.pager.keyed = search.key, search.key is not None
            ask = steps.send(answer if isinstance(answer, Stop) else mark_page(answer, search.key))
    except StopIteration as end:
        proof: Proof = end.value
    if not isinstance(answers[-1], Stop) and search.change():
        return None
    return proof


def _is_doubtful(search: KeySearch, ask: Ask) -> bool:
    """Return whether to look for another key: the list was read once, or pages refute this one."""
    return ask.request.purpose is Purpose.HEAD or search.is_refuted()


def _answers(answer: StoredPage | Stop, ask: Ask) -> bool:
    return isinstance(answer, StoredPage) and answer.page.request == ask.request


def _ask(
    search: KeySearch, answers: list[StoredPage | Stop], ask: Ask
) -> Generator[Ask, Page | Stop, StoredPage | Stop]:
    answer = yield ask
    if isinstance(answer, Stop):
        answers.append(answer)
        return answer
    stored = store_page(answer)
    search.learn(stored)
    answers.append(stored)
    return stored
