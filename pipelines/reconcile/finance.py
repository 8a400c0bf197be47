"""Creates schema `finance`: views of reconciliation with names of partners."""

from contextlib import suppress
from importlib.resources import files

import duckdb


def create_finance_views(db: duckdb.DuckDBPyConnection) -> None:
    """Create the views in a version that is being built.

    A view is left out where a table that it shows could not be evaluated, not even as an empty one.
    """
    text = files("pipelines.reconcile").joinpath("sql/finance.sql").read_text("utf-8")
    for statement in db.extract_statements(text):
        with suppress(duckdb.CatalogException, duckdb.BinderException):
            db.execute(statement)
