-- What each threshold would do: the problems below it, and those whose interval it cuts, which
-- another measurement could put on the other side.
WITH measured AS (
    SELECT relative_runtime_to_kernel_launch AS ratio, ratio_low, ratio_high
    FROM details
    WHERE relative_runtime_to_kernel_launch > 0
),

thresholds AS (
    SELECT unnest(range(80, 221, 2)) / 100 AS threshold
    UNION
    SELECT $threshold::DOUBLE
)

SELECT
    threshold,
    count(*) FILTER (ratio < threshold) AS below,
    count(*) FILTER (ratio_low < threshold AND ratio_high >= threshold) AS unsure,
    count(*) AS problems
FROM thresholds
CROSS JOIN measured
GROUP BY threshold
ORDER BY threshold
