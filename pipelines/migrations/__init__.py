"""How a ledger of an earlier version becomes one of this version: one file a shape, by Alembic.

To add one: change the tables (state/tables, state/judgements), raise SHAPE there, and write
`shape_<number>.py` beside these with what an existing ledger needs. The same steps serve SQLite and
PostgreSQL; a new ledger is made as it is now and takes none of them. Not here: when they are taken
(state/upgrade).
"""
