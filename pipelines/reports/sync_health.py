"""Sync health: how fresh and how well proven each list is, and what reading it took.

Of the sync alone: it needs no mapping and is always evaluated.
"""

from pipelines.reports.base import LAST, Chart, Column, Report, count

HEALTH = Report(
    name="sync_health",
    title="Sync health",
    question="Is everything here, how old is it, and what did reading it take?",
    needs=("meta.freshness", "meta.proofs", "meta.folds", "meta.runs", "meta.requests"),
    sql="""
        WITH called AS (
            SELECT run, stream, count(*) AS requests, count(*) FILTER (status = 429) AS refused,
                   sum(waited_ms) AS waited_ms
            FROM meta.requests GROUP BY ALL
        ), month AS (
            SELECT connection, count(*) AS runs, count(*) FILTER (outcome = 'published') AS whole
            FROM meta.runs WHERE begun_at > (SELECT max(begun_at) FROM meta.runs) - INTERVAL 30 DAY
            GROUP BY ALL
        )
        SELECT f.connection, f.stream, f.day, f.grade, f.rows, f.missing, f.quarantined,
               f.ended_at, f.published_at, date_diff('hour', f.ended_at, f.published_at) AS hours,
               coalesce(c.requests, 0)::BIGINT AS requests,
               coalesce(c.refused, 0)::BIGINT AS refused,
               coalesce(c.waited_ms // 1000, 0)::BIGINT AS seconds_waited,
               m.runs::BIGINT AS runs, m.whole::BIGINT AS runs_published, p.sentence, p.doubt,
               NULL::VARCHAR AS not_evaluated
        FROM meta.freshness AS f
        LEFT JOIN meta.proofs AS p USING (connection, stream, manifest)
        LEFT JOIN (FROM meta.folds QUALIFY row_number() OVER (
            PARTITION BY connection, stream, manifest ORDER BY number DESC) = 1
        ) AS o USING (connection, stream, manifest)
        LEFT JOIN called AS c ON c.run = o.run AND c.stream = f.stream
        LEFT JOIN month AS m ON m.connection = f.connection
        ORDER BY p.doubt IS NULL, f.connection, f.stream
    """,
    columns={
        "connection": Column("the set of credentials that read it"),
        "stream": Column("the list"),
        "day": Column("the day that was asked for (UTC)", "DATE"),
        "grade": Column("SNAPSHOT, COMPLETE, COMPLETE_BY_COUNT or PARTIAL; before 0.2 also others"),
        "rows": count("rows in current.<stream>"),
        "missing": count("of these rows, those that the last reading lacked"),
        "quarantined": count("rows set aside in quarantine.<stream>, each with its reason"),
        "ended_at": Column("when the list was read to its end", "TIMESTAMPTZ"),
        "published_at": Column("when this file was published", "TIMESTAMPTZ"),
        "hours": count("from the end of the reading to the publication"),
        "requests": count("requests that the run sent for this list"),
        "refused": count("of these, answered with 429"),
        "seconds_waited": count("that these requests waited for the request budget"),
        "runs": count("runs of the connection in the last 30 days"),
        "runs_published": count("of these, those that published every list, and are over"),
        "sentence": Column("what was proven, in words"),
        "doubt": Column("why the rows are not what they should be; empty: nothing is wrong"),
    }
    | LAST,
    grain=("connection", "stream", "day", "grade", "doubt"),
    chart=Chart("Requests of the last reading", "stream", ("requests", "refused"), "connection"),
)
