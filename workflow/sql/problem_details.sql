-- Everything that is known of every case: inspected and measured columns pass as they are, then
-- what it is worth.
WITH measured AS (
    SELECT uuid AS measured_uuid, reason AS measured_reason, * EXCLUDE (uuid, status, reason)
    FROM measurements
),

seen AS (
    SELECT uuid AS inspected_uuid, * EXCLUDE (uuid, op_name, args)
    FROM inspected
)

SELECT
    cases.uuid,
    cases.op_name,
    cases.args,
    tags.status,
    CASE WHEN tags.status = 'invalid' THEN seen.meta_reason ELSE measured.measured_reason
    END AS reason,
    tags.runs,
    seen.* EXCLUDE (inspected_uuid),
    measured.* EXCLUDE (measured_uuid, measured_reason),
    worth.* EXCLUDE (uuid)
FROM cases
LEFT JOIN tags USING (uuid)
LEFT JOIN seen ON cases.uuid = seen.inspected_uuid
LEFT JOIN measured ON cases.uuid = measured.measured_uuid
LEFT JOIN worth ON cases.uuid = worth.uuid
ORDER BY cases.uuid
