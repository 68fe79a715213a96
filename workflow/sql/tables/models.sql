-- Every model: how many problems it has, and how many of these only it has.
WITH uses AS (
    SELECT unnest(in_models) AS model, in_models_count, included_in_benchmark, runtime_ms
    FROM problems
)

SELECT
    model AS "model",
    count(*) AS "problems",
    count(*) FILTER (in_models_count = 1) AS "of no other model",
    count(*) FILTER (included_in_benchmark) AS "in the benchmark",
    count(*) FILTER (runtime_ms IS NOT NULL) AS "measured"
FROM uses
GROUP BY model
ORDER BY model
