-- Where the measured time goes: the operators that take most of it.
WITH operators AS (
    SELECT
        problems.op_name,
        sum(details.share_of_time) AS share,
        sum(details.share_of_time) FILTER (problems.is_overhead_dominated_op) AS overhead,
        count(*) AS problems
    FROM problems
    INNER JOIN details USING (uuid)
    WHERE details.share_of_time IS NOT NULL
    GROUP BY ALL
),

calls AS (
    SELECT sum(count) FILTER (runtime_ms IS NOT NULL) / sum(count) AS measured_calls
    FROM problems
)

SELECT
    op_name,
    row_number() OVER (ORDER BY share DESC, op_name) AS place,
    round(share, 6) AS share,
    round(coalesce(overhead, 0), 6) AS overhead,
    problems,
    count(*) OVER () AS operators,
    measured_calls
FROM operators
CROSS JOIN calls
QUALIFY place <= $most
ORDER BY place
