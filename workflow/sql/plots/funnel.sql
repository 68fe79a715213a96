-- From trace lines to the benchmark: what each step keeps (`kept`) or takes away (`lost`).
--
-- A problem with several reasons is counted under the first; reasons stand in their published
-- order, so that is where the policy stops looking.
WITH lines AS (
    SELECT
        (SELECT count(*) FROM calls) AS read,
        (SELECT count(*) FROM rejects) AS rejected,
        (SELECT count(*) FROM problems) AS problems
),

reasons AS (
    SELECT why_excluded[1] AS reason, count(*) AS problems
    FROM problems
    WHERE len(why_excluded) > 0
    GROUP BY ALL
),

included AS (
    SELECT
        count(*) FILTER (is_overhead_dominated_op) AS overhead,
        count(*) FILTER (runtime_ms IS NULL) AS unmeasured,
        count(*) AS problems
    FROM problems
    WHERE included_in_benchmark
)

SELECT 0 AS step, 'trace lines' AS stage, 'kept' AS kind, read + rejected AS count
FROM lines
UNION ALL
SELECT 1, 'not readable', 'lost', rejected
FROM lines
WHERE rejected > 0
UNION ALL
SELECT 2, 'the same call once more', 'lost', read - problems
FROM lines
UNION ALL
SELECT 3, 'different problems', 'kept', problems
FROM lines
UNION ALL
SELECT 3 + row_number() OVER (ORDER BY problems DESC, reason), reason, 'lost', problems
FROM reasons
UNION ALL
SELECT 1000, 'in the benchmark', 'included', problems
FROM included
UNION ALL
SELECT 1001, 'of these, launch overhead', 'overhead', overhead
FROM included
UNION ALL
SELECT 1002, 'of these, not measured', 'unmeasured', unmeasured
FROM included
WHERE unmeasured > 0
ORDER BY step
