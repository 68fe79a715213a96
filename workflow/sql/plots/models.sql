-- Which operators a model spends its time in; its calls, where nothing was measured.
WITH uses AS (
    SELECT
        details.op_name,
        unnest(details.share_by_model, recursive := true)
    FROM details
    WHERE details.share_by_model IS NOT NULL
),

by_operator AS (
    SELECT model, op_name, sum(share) AS share
    FROM uses
    GROUP BY ALL
),

operators AS (
    SELECT
        op_name,
        row_number() OVER (ORDER BY sum(share) DESC, op_name) AS operator_place,
        count(*) OVER () AS operators
    FROM by_operator
    GROUP BY op_name
),

models AS (
    SELECT
        model,
        row_number() OVER (ORDER BY sum(calls) DESC, model) AS model_place,
        count(*) OVER () AS models
    FROM uses
    GROUP BY model
)

SELECT model, op_name, operator_place, operators, models, round(share, 6) AS share
FROM by_operator
INNER JOIN operators USING (op_name)
INNER JOIN models USING (model)
WHERE operator_place <= $most_operators AND model_place <= $most_models
ORDER BY model, operator_place
