-- The calls of each model, one row per problem in the spelling that the cases keep.
WITH spellings AS (
    SELECT DISTINCT calls.op_name, coalesce(calls.canonical, calls.args) AS meaning, cases.args
    FROM calls
    INNER JOIN cases USING (op_name, args)
)

SELECT
    calls.suite,
    calls.model,
    calls.mode,
    calls.op_name,
    spellings.args,
    sum(calls.count)::BIGINT AS count
FROM calls
INNER JOIN spellings
    ON
        calls.op_name = spellings.op_name
        AND coalesce(calls.canonical, calls.args) = spellings.meaning
WHERE calls.count > 0 AND calls.model IS NOT NULL
GROUP BY ALL
ORDER BY suite, model, mode NULLS FIRST, op_name, count DESC, args
