"""Metadata as Dagster shows it: counts and aggregates, never rows (its log keeps them for ever)."""

from collections.abc import Mapping, Sequence

import dagster as dg

from pipelines.warehouse import frames


def preview(rows: Sequence[Mapping[str, object]]) -> dg.MarkdownMetadataValue:
    """Return records of ours as a table in Markdown."""
    return dg.MetadataValue.md(frames.from_rows(rows).to_markdown(index=False))
