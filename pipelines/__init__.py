"""Here: the pipeline: it reads lists of a service, and makes a warehouse and books of them.

Not here: what tells Dagster of it (assets), and a service to try it with (sandbox).

Packages, in the order in which data passes through them: `http` fetches pages when `rate_limit`
lets them, `extract` proves lists complete, `archive` keeps what was sent, `load` makes tables of
it, `versions` publishes them with `warehouse`, `finance` makes books, `checks` look at all of it.
`app` has the steps of a night, `cli` prints them. `core`, `config`, `metadata` and `files` are
below. docs/architecture.md has the layers.
"""
