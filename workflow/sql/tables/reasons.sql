-- Why problems are left out; one with several reasons is counted under each.
SELECT
    reason AS "left out because",
    count(*) AS "problems",
    count(DISTINCT op_name) AS "operators",
    sum(count)::BIGINT AS "calls"
FROM (SELECT unnest(why_excluded) AS reason, op_name, count FROM problems)
GROUP BY reason
ORDER BY count(*) DESC, reason
