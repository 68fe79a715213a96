-- What the set holds, in numbers.
WITH reasons AS (
    SELECT reason, count(*) AS problems
    FROM (SELECT unnest(why_excluded) AS reason FROM problems)
    GROUP BY reason
),

suites AS (
    SELECT
        split_part(model, '/', 1) AS suite,
        count(DISTINCT model) AS models,
        count(DISTINCT uuid) AS problems
    FROM (SELECT uuid, unnest(in_models) AS model FROM problems)
    GROUP BY suite
)

SELECT
    (SELECT count(*) FROM calls) + (SELECT count(*) FROM rejects) AS lines,
    (SELECT count(*) FROM rejects) AS rejected,
    count(*) AS pairs,
    count(DISTINCT op_name) AS operators,
    (SELECT coalesce(sum(models), 0)::BIGINT FROM suites) AS models,
    count(*) FILTER (is_synthetic) AS synthetic,
    count(*) FILTER (runnable) AS runnable,
    count(*) FILTER (included_in_benchmark) AS included,
    count(*) FILTER (runtime_ms IS NOT NULL) AS measured,
    count(*) FILTER (is_overhead_dominated_op) AS overhead_dominated,
    (SELECT list(reasons ORDER BY problems DESC, reason) FROM reasons) AS reasons,
    (SELECT list(suites ORDER BY suite) FROM suites) AS suites
FROM problems
ORDER BY pairs
