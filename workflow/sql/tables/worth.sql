-- Where to work first: the problems that take most of the operator time.
SELECT
    rank_by_time AS "place",
    problems.op_name AS "operator",
    problems.args[:200] AS "arguments",
    problems.count AS "calls",
    problems.runtime_ms AS "runtime (ms)",
    round(100 * share_of_time, 3) AS "% of the time",
    round(100 * cumulative_share, 2) AS "% with all before",
    problems.relative_runtime_to_kernel_launch AS "launches",
    CASE WHEN problems.included_in_benchmark THEN 'in' ELSE problems.why_excluded[1] END
        AS "benchmark"
FROM problems
INNER JOIN details USING (uuid)
WHERE rank_by_time <= 200
ORDER BY rank_by_time
