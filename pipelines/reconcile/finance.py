"""Creates schema `finance`: views of reconciliation with names of partners."""

import re
from collections.abc import Collection
from contextlib import suppress
from importlib.resources import files

import duckdb


def create_finance_views(db: duckdb.DuckDBPyConnection, failed: Collection[str] = ()) -> None:
    """Create the views in a version that is being built.

    A view of a relation that could not be evaluated is left out: an empty one would be an answer.
    """
    db.execute("DROP SCHEMA IF EXISTS finance CASCADE")
    text = files("pipelines.reconcile").joinpath("sql/finance.sql").read_text("utf-8")
    for statement in db.extract_statements(text):
        if any(re.search(rf"\b{re.escape(each)}\b", statement.query) for each in failed):
            continue
        with suppress(duckdb.CatalogException, duckdb.BinderException):
            db.execute(statement)
