-- One row per operator and arguments: calls summed, models gathered, spellings merged.
--
-- Arguments that mean the same are one case, under the spelling that was called most often.
-- Calls counted 0 are made-up problems: they add a case, and no model.
WITH names AS (
    SELECT list_sort(list(DISTINCT suite || '/' || model)) AS names
    FROM (SELECT DISTINCT suite, model FROM calls WHERE count > 0)
),

-- A model is gathered by its number, a tenth of its name's size; the numbers sort like the names.
models AS (
    SELECT suite, model, list_position(names, suite || '/' || model)::INTEGER AS number
    FROM (SELECT DISTINCT suite, model FROM calls WHERE count > 0)
    CROSS JOIN names
),

merged AS (
    SELECT
        op_name,
        coalesce(canonical, args) AS meaning,
        sum(count) AS count,
        list(number) FILTER (count > 0) AS numbers
    FROM calls
    LEFT JOIN models USING (suite, model)
    GROUP BY ALL
),

-- Few cases have more than one spelling, so only those are ranked.
respelled AS (
    SELECT DISTINCT op_name, canonical AS meaning
    FROM calls
    WHERE canonical IS NOT NULL
),

spellings AS (
    SELECT op_name, meaning, args, sum(count) AS count
    FROM (SELECT op_name, coalesce(canonical, args) AS meaning, args, count FROM calls)
    SEMI JOIN respelled USING (op_name, meaning)
    GROUP BY ALL
),

preferred AS (
    SELECT op_name, meaning, first(args ORDER BY count DESC, args) AS args
    FROM spellings
    GROUP BY ALL
),

cases AS (
    SELECT
        op_name,
        coalesce(args, meaning) AS args,
        count,
        list_transform(
            list_sort(list_distinct(coalesce(numbers, []))), lambda number: names[number]
        ) AS in_models
    FROM merged
    LEFT JOIN preferred USING (op_name, meaning)
    CROSS JOIN names
)

SELECT
    sha256(args || op_name) AS uuid,
    op_name,
    args,
    CASE
        WHEN count <= 9223372036854775807 THEN count::BIGINT
        ELSE error(
            'UserError: ' || op_name || ': the calls with ' || args[:200] || ' add up to '
            || count || ', more than 64 bits hold; lower the cnt of their lines in the traces'
        )
    END AS count,
    in_models,
    len(in_models) AS in_models_count,
    count = 0 AS is_synthetic
FROM cases
ORDER BY op_name, args
