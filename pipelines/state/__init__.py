"""The ledger: what was asked, what was read, what was folded and what was published.

SQLAlchemy Core on SQLite (WAL). It holds records of the work and decisions, never data of the
service; those are in the archive and the warehouse.
"""
