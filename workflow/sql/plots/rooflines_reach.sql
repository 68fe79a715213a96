-- How near the measured problems come to the roofs: the least time that their bytes and FLOPs take
-- at the rates that the device reached, against the time that they took.
WITH judged AS (
    SELECT
        problems.runtime_ms,
        details.launch_ms,
        problems.is_overhead_dominated_op AS is_overhead,
        1e3 * greatest(
            details.bytes_moved / $bytes_per_s::DOUBLE,
            details.flops / CASE
                WHEN list_contains(details.dtypes, 'f32') THEN $f32::DOUBLE
                WHEN list_contains(details.dtypes, 'bf16') THEN $bf16::DOUBLE
                WHEN list_contains(details.dtypes, 'f16') THEN $f16::DOUBLE
            END
        ) AS least_ms
    FROM problems
    INNER JOIN details USING (uuid)
    WHERE problems.runtime_ms > 0
)

SELECT
    median(launch_ms) AS launch_ms,
    count(*) FILTER (NOT is_overhead AND least_ms > 0) AS problems,
    count(*) FILTER (NOT is_overhead AND least_ms > 0 AND runtime_ms <= 2 * least_ms) AS near,
    count(*) FILTER (NOT is_overhead AND least_ms > 0 AND runtime_ms > 10 * least_ms) AS far
FROM judged
ORDER BY problems
