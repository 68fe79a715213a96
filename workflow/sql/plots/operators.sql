-- The operators with the most problems, and what becomes of those problems.
WITH judged AS (
    SELECT
        op_name,
        CASE
            WHEN NOT included_in_benchmark THEN 'left out'
            WHEN runtime_ms IS NULL THEN 'not measured'
            WHEN is_overhead_dominated_op THEN 'launch overhead'
            ELSE 'computes'
        END AS fate
    FROM problems
),

sizes AS (
    SELECT
        op_name,
        count(*) AS in_all,
        row_number() OVER (ORDER BY count(*) DESC, op_name) AS place,
        count(*) OVER () AS operators,
        sum(count(*)) OVER ()::BIGINT AS problems_of_all
    FROM judged
    GROUP BY op_name
)

SELECT op_name, place, in_all, operators, problems_of_all, fate, count(*) AS problems
FROM judged
INNER JOIN sizes USING (op_name)
WHERE place <= $most
GROUP BY ALL
ORDER BY place, fate
