-- Every decision about every case, from the facts and the policy; order of reasons as published.
WITH facts AS (
    SELECT
        cases.uuid,
        cases.is_synthetic,
        inspected.is_random,
        inspected.meta_reason,
        CASE
            WHEN inspected.meta_status = 'failed' THEN 'invalid'
            ELSE coalesce(measurements.status, 'off')
        END AS status,
        measurements.relative_runtime_to_kernel_launch AS relative_runtime,
        coalesce(exclusions.reason = 'cannot_run', false)
        OR NOT inspected.reader_understands AS cannot_run,
        coalesce(exclusions.reason = 'creation_or_manipulation', false) AS creates
    FROM cases
    LEFT JOIN inspected USING (uuid)
    LEFT JOIN measurements USING (uuid)
    LEFT JOIN exclusions ON cases.op_name = exclusions.op_name
),

judged AS (
    SELECT
        *,
        -- Null where it runs, or is not known not to.
        CASE status
            WHEN 'ok' THEN NULL
            WHEN 'off' THEN NULL
            WHEN 'skipped' THEN NULL
            WHEN 'timeout' THEN NULL
            WHEN 'unsupported' THEN NULL
            WHEN 'invalid' THEN coalesce(meta_reason, 'raised an error')
            WHEN 'crashed' THEN 'crashed'
            WHEN 'oom' THEN 'out of memory'
            WHEN 'too_large' THEN 'too large'
            WHEN 'error' THEN 'raised an error'
            ELSE error('unknown status ' || status)
        END AS failure
    FROM facts
),

explained AS (
    SELECT
        *,
        list_filter(
            [
                CASE WHEN cannot_run THEN 'We cannot run this op on backendbench yet' END,
                CASE
                    WHEN is_random
                        THEN
                            'BackendBench does not support correctness testing for random ops yet'
                END,
                CASE
                    WHEN creates
                        THEN
                            'BackendBench does not support correctness testing for tensor '
                            || 'creation and manipulation ops yet'
                END,
                CASE
                    WHEN is_synthetic
                        THEN 'Synthetic ops are not supported in the official benchmark yet'
                END,
                'Failed to run: ' || failure
            ],
            lambda reason: reason IS NOT NULL
        ) AS why_excluded
    FROM judged
)

SELECT
    uuid,
    status,
    failure IS NULL AS runs,
    failure IS NULL AND NOT cannot_run AS runnable,
    -- Whatever is not runnable has a reason.
    len(why_excluded) = 0 AS included_in_benchmark,
    why_excluded,
    -- NaN would compare as greater than everything; it counts as not measured.
    coalesce(
        isfinite(relative_runtime) AND relative_runtime < $overhead_threshold, false
    ) AS is_overhead_dominated_op
FROM explained
ORDER BY uuid
