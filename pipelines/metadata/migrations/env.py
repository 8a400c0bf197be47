"""Alembic's entry point: migrates the connection that the caller gives, in its transaction."""

from alembic import context

from pipelines.metadata.tables import Base

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=Base.metadata, render_as_batch=True)
context.run_migrations()
