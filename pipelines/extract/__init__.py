"""Here: how a list is read, page by page, and proven complete although it changes.

Not here: how a page is fetched (http), when (rate_limit), or kept (archive).

- `scan.py` drives: it sends requests, and gives the answers to `read_list.py`, which decides what
  is read next and when the list is complete (`Chain.is_complete`, `Agreement` where several must
  agree). `pages.py` has what the two exchange.
- `pager.py` has the pages so far, `chain.py` joins those that overlap, `agreement.py` compares
  several chains, `rows.py` selects the copies of rows
  that are loaded.
- `key.py` finds the field that identifies a row. `refusal.py` and `clocks.py` judge refused offsets
  and times.
"""
