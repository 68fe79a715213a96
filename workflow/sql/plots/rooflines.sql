-- Runtime against what a problem must move or compute, as cells of an eighth of a decade.
WITH measured AS (
    SELECT
        unnest(
            [
                {'of': 'bytes', 'amount': details.bytes_moved},
                {'of': 'flops', 'amount': details.flops}
            ],
            recursive := true
        ),
        problems.runtime_ms,
        problems.is_overhead_dominated_op AS is_overhead
    FROM problems
    INNER JOIN details USING (uuid)
    WHERE problems.runtime_ms > 0
)

SELECT
    of,
    floor(log10(amount) * 8)::BIGINT AS x,
    floor(log10(runtime_ms) * 8)::BIGINT AS y,
    10 ** (x / 8) AS amount_low,
    10 ** ((x + 1) / 8) AS amount_high,
    10 ** (y / 8) AS ms_low,
    10 ** ((y + 1) / 8) AS ms_high,
    count(*) AS problems,
    count(*) FILTER (is_overhead) AS overhead
FROM measured
WHERE amount > 0
GROUP BY ALL
ORDER BY of, x, y
