-- How measuring ended.
SELECT status AS "status", reason AS "reason", count(*) AS "problems"
FROM (
    SELECT status, regexp_replace(reason, '[0-9][0-9.e+-]*', '…', 'g') AS reason
    FROM details
)
GROUP BY ALL
ORDER BY count(*) DESC, status, reason
