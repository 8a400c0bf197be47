-- question: How much usage is unbilled, and how did that develop by month?
-- needs: movements usage.partner usage.period usage.amount billing.partner billing.period billing.amount
-- remedy: A difference that is not 0 is a defect of partner-sync. Report it.
WITH posted AS NOT MATERIALIZED (
    SELECT
        moves.connection, moves.partner, moves.currency,
        greatest(moves.month, date_trunc('month', if(
            moves.is_change, moves.moved_at::DATE, moves.recorded_on
        ))::DATE) AS month,
        CASE WHEN moves.is_change THEN if(moves.side = 'usage', 'restated', 'adjusted')
             WHEN moves.apart IS NOT NULL THEN 'credited'
             WHEN date_trunc('month', moves.recorded_on) > moves.month THEN 'late'
             ELSE if(moves.side = 'usage', 'rated', 'billed') END AS kind,
        if((moves.side = 'usage') <> moves.is_end, moves.amount, -moves.amount) AS signed,
        if(moves._valid_to IS NULL, signed, 0) AS held
    FROM movements AS moves
    WHERE moves.month IS NOT NULL AND (moves.apart IS NULL OR moves.apart = 'credit note')
), moved AS (
    SELECT
        posted.connection, posted.partner, posted.currency, posted.month,
        coalesce(sum(posted.signed) FILTER (posted.kind = 'rated'), 0) AS rated,
        coalesce(sum(posted.signed) FILTER (posted.kind = 'late'), 0) AS late,
        coalesce(sum(posted.signed) FILTER (posted.kind = 'restated'), 0) AS restated,
        coalesce(-sum(posted.signed) FILTER (posted.kind = 'billed'), 0) AS billed,
        coalesce(-sum(posted.signed) FILTER (posted.kind = 'credited'), 0) AS credited,
        coalesce(-sum(posted.signed) FILTER (posted.kind = 'adjusted'), 0) AS adjusted,
        sum(posted.signed) AS change, sum(posted.held) AS held
    FROM posted
    WHERE posted.signed IS NOT NULL
    GROUP BY posted.connection, posted.partner, posted.currency, posted.month
)
SELECT
    moved.connection, moved.partner, moved.currency, moved.month,
    sum(moved.change) OVER (one ORDER BY moved.month) - moved.change AS opening,
    moved.rated, moved.late, moved.restated, moved.billed, moved.credited, moved.adjusted,
    opening + moved.change AS closing,
    CASE WHEN moved.month = max(moved.month) OVER one
        THEN closing - sum(moved.held) OVER one END AS difference
FROM moved
WINDOW one AS (PARTITION BY moved.connection, moved.partner, moved.currency)
ORDER BY ALL
