-- The published record of every case. A runtime that is no finite number was not measured.
SELECT
    cases.uuid,
    cases.op_name,
    cases.args,
    tags.runnable,
    tags.included_in_benchmark,
    tags.why_excluded,
    cases.is_synthetic,
    CASE WHEN isfinite(measurements.runtime_ms) THEN measurements.runtime_ms END AS runtime_ms,
    CASE
        WHEN isfinite(measurements.relative_runtime_to_kernel_launch)
            THEN measurements.relative_runtime_to_kernel_launch
    END AS relative_runtime_to_kernel_launch,
    tags.is_overhead_dominated_op,
    cases.count,
    cases.in_models,
    cases.in_models_count
FROM cases
LEFT JOIN tags USING (uuid)
LEFT JOIN measurements USING (uuid)
ORDER BY cases.op_name, cases.count DESC, cases.uuid
