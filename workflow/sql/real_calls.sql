-- What the models call, each operator's calls in a row, in the one spelling of what they mean.
SELECT DISTINCT op_name, coalesce(canonical, args) AS args
FROM calls
WHERE count > 0
ORDER BY op_name, args
