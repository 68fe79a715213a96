-- How many problems have which relative runtime: 20 bins a decade, one of whose edges is the
-- threshold.
SELECT
    floor((log10(relative_runtime_to_kernel_launch) - log10($threshold::DOUBLE)) * 20)::BIGINT
        AS bin,
    $threshold * 10 ** (bin / 20) AS low,
    $threshold * 10 ** ((bin + 1) / 20) AS high,
    bin < 0 AS is_overhead,
    count(*) AS problems
FROM problems
WHERE relative_runtime_to_kernel_launch > 0
GROUP BY ALL
ORDER BY bin
