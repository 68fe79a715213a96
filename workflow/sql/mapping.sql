-- Which model calls which operator with which arguments, in the spelling that the cases keep.
SELECT
    op_name AS "operator name",
    unnest(in_models) AS "used in model",
    args
FROM cases
ORDER BY ALL
