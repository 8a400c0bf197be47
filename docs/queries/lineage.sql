-- From which row of which page does a number come? Here: the largest amount used.
-- Rows are counted from 0; whoever runs the sync can read the page: zstd -dc FILE
SELECT
    usage_id,
    amount,
    'archive/pages/' || left(_page, 2) || '/' || _page || '.json.zst' AS page_file,
    _row AS row_in_page,
    _run AS run
FROM current.usage
ORDER BY amount DESC, usage_id
LIMIT 1;
