-- How many problems make 50, 80 and 95 % of the time, and how many of these are launch overhead.
WITH ranked AS (
    SELECT rank_by_time AS rank, cumulative_share, is_overhead_dominated_op
    FROM problems
    INNER JOIN details USING (uuid)
    WHERE rank_by_time IS NOT NULL
),

marks AS (
    SELECT part, min(rank) AS needed
    FROM ranked
    INNER JOIN (SELECT unnest([0.5, 0.8, 0.95]::DOUBLE[]) AS part) ON cumulative_share >= part - 1e-12
    GROUP BY part
)

SELECT
    part,
    needed,
    count(*) FILTER (is_overhead_dominated_op AND rank <= needed) AS overhead,
    count(*) AS problems
FROM marks
CROSS JOIN ranked
GROUP BY part, needed
ORDER BY part
