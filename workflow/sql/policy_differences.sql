-- Where our reasons differ from those of the reference's rules, operator by operator, and by what.
--
-- The reference leaves a problem out where an entry of its lists is a part of the operator's name;
-- that is the only substring test in this project, and it is here because it is theirs. Both sides
-- take the same facts: which problems run, and which are synthetic.
WITH operators AS (
    SELECT DISTINCT op_name FROM cases
),

matched AS (
    SELECT
        op_name,
        reason,
        arg_min(entry, (NOT list_contains(meant, op_name), entry)) AS entry,
        bool_or(list_contains(meant, op_name)) AS meant
    FROM operators
    INNER JOIN reference ON contains(op_name, entry)
    GROUP BY ALL
),

glued AS (
    SELECT op_name, reason, min(entry) AS entry
    FROM operators
    INNER JOIN reference ON list_contains(meant, op_name) AND NOT contains(op_name, entry)
    GROUP BY ALL
),

ours AS (
    SELECT cases.uuid, cases.op_name, exclusions.reason, exclusions.why
    FROM cases
    INNER JOIN exclusions USING (op_name)
    UNION ALL
    SELECT uuid, op_name, 'random' AS reason, NULL AS why
    FROM inspected
    WHERE is_random
),

theirs AS (
    SELECT cases.uuid, cases.op_name, matched.reason, matched.entry, matched.meant
    FROM cases
    INNER JOIN matched USING (op_name)
),

differences AS (
    SELECT
        uuid,
        op_name,
        reason,
        CASE
            WHEN theirs.meant THEN 'not listed here'
            WHEN theirs.entry IS NOT NULL THEN 'part of a name'
            WHEN glued.entry IS NOT NULL THEN 'glued'
            WHEN reason = 'random' THEN 'tag'
            ELSE 'listed here only'
        END AS cause,
        coalesce(theirs.entry, glued.entry) AS entry,
        ours.why
    FROM (SELECT *, true AS here FROM ours) AS ours
    FULL JOIN theirs USING (uuid, op_name, reason)
    LEFT JOIN glued USING (op_name, reason)
    WHERE ours.here IS NULL OR theirs.entry IS NULL
    UNION ALL
    SELECT uuid, op_name, 'synthetic', 'synthetic', NULL, NULL
    FROM cases
    INNER JOIN tags USING (uuid)
    WHERE is_synthetic AND runnable
),

flags AS (
    SELECT
        cases.uuid,
        tags.runnable,
        tags.included_in_benchmark AS included,
        tags.runs AND inspected.reader_understands AND NOT cases.is_synthetic
        AND NOT coalesce(theirs.cannot_run, false) AS reference_runnable,
        reference_runnable AND theirs.uuid IS NULL AS reference_included
    FROM cases
    INNER JOIN tags USING (uuid)
    INNER JOIN inspected USING (uuid)
    LEFT JOIN (
        SELECT uuid, bool_or(reason = 'cannot_run') AS cannot_run
        FROM theirs
        GROUP BY ALL
    ) AS theirs USING (uuid)
)

SELECT
    op_name,
    reason,
    cause,
    entry,
    why,
    count(*) AS problems,
    count(*) FILTER (reference_included) AS reference_included,
    count(*) FILTER (included) AS included,
    count(*) FILTER (reference_runnable) AS reference_runnable,
    count(*) FILTER (runnable) AS runnable
FROM differences
INNER JOIN flags USING (uuid)
GROUP BY ALL
UNION ALL
SELECT
    exclusions.op_name,
    exclusions.reason,
    'inherited' AS cause,
    NULL AS entry,
    exclusions.why,
    count(cases.uuid) AS problems,
    0 AS reference_included,
    0 AS included,
    0 AS reference_runnable,
    0 AS runnable
FROM exclusions
LEFT JOIN cases USING (op_name)
WHERE exclusions.inherited
GROUP BY ALL
ORDER BY op_name, reason, cause
