-- Every operator: its problems, what becomes of them, and its part of the time.
SELECT
    problems.op_name AS "operator",
    count(*) AS "problems",
    count(*) FILTER (included_in_benchmark) AS "in the benchmark",
    count(*) FILTER (is_overhead_dominated_op) AS "launch overhead",
    count(*) FILTER (problems.runtime_ms IS NOT NULL) AS "measured",
    sum(problems.count)::BIGINT AS "calls",
    round(100 * sum(details.share_of_time), 3) AS "% of the time"
FROM problems
INNER JOIN details USING (uuid)
GROUP BY problems.op_name
ORDER BY count(*) DESC, problems.op_name
