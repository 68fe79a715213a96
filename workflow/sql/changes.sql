-- What became of every problem since an earlier release, one row for each kind of change.
--
-- Problems are the same where operator and meaning of the arguments are, whatever their spelling.
WITH was AS (
    -- Old files hold a problem more than once.
    SELECT
        op_name,
        meaning,
        first(uuid ORDER BY count DESC, uuid) AS uuid,
        first(args ORDER BY count DESC, args) AS args,
        sum(count)::BIGINT AS count,
        CASE
            WHEN count(in_models) > 0 THEN list_sort(list_distinct(flatten(list(in_models))))
        END AS in_models,
        bool_and(is_synthetic) AS is_synthetic,
        bool_or(runnable) AS runnable,
        bool_or(included_in_benchmark) AS included,
        first(why_excluded ORDER BY count DESC, uuid) AS why_excluded,
        bool_and(is_overhead_dominated_op) AS is_overhead
    FROM previous
    GROUP BY ALL
),

now_ AS (
    SELECT
        op_name,
        meaning,
        uuid,
        args,
        count,
        in_models,
        is_synthetic,
        runnable,
        included_in_benchmark AS included,
        why_excluded,
        is_overhead_dominated_op AS is_overhead
    FROM current
),

-- The interval of a runtime: that of its ratio to the launch, or two standard deviations between
-- visits where that is wider.
was_timed AS (
    SELECT
        uuid,
        device,
        method,
        runtime_ms,
        runtime_ms * least(ratio_low / relative_runtime_to_kernel_launch, 1 - 2 * cv) AS low_ms,
        runtime_ms * greatest(ratio_high / relative_runtime_to_kernel_launch, 1 + 2 * cv) AS high_ms
    FROM (SELECT *, coalesce(between_visit_cv, 0) AS cv FROM previous_details)
    WHERE runtime_ms IS NOT NULL AND ratio_low IS NOT NULL
),

now_timed AS (
    SELECT
        uuid,
        device,
        method,
        runtime_ms,
        runtime_ms * least(ratio_low / relative_runtime_to_kernel_launch, 1 - 2 * cv) AS low_ms,
        runtime_ms * greatest(ratio_high / relative_runtime_to_kernel_launch, 1 + 2 * cv) AS high_ms
    FROM (SELECT *, coalesce(between_visit_cv, 0) AS cv FROM current_details)
    WHERE runtime_ms IS NOT NULL AND ratio_low IS NOT NULL
),

paired AS (
    SELECT
        coalesce(now_.op_name, was.op_name) AS op_name,
        coalesce(now_.args, was.args) AS args,
        was.op_name IS NULL AS is_added,
        now_.op_name IS NULL AS is_removed,
        was.uuid AS previous_uuid,
        now_.uuid AS uuid,
        was.count AS previous_count,
        now_.count AS count,
        was.in_models AS previous_in_models,
        now_.in_models AS in_models,
        was.is_synthetic AS previous_is_synthetic,
        now_.is_synthetic AS is_synthetic,
        was.runnable AS previous_runnable,
        now_.runnable AS runnable,
        was.included AS previous_included,
        now_.included AS included,
        was.why_excluded AS previous_why_excluded,
        now_.why_excluded AS why_excluded,
        was.is_overhead AS previous_is_overhead,
        now_.is_overhead AS is_overhead,
        was_timed.runtime_ms AS previous_runtime_ms,
        now_timed.runtime_ms AS runtime_ms,
        was_timed.low_ms AS previous_low_ms,
        was_timed.high_ms AS previous_high_ms,
        now_timed.low_ms AS low_ms,
        now_timed.high_ms AS high_ms,
        coalesce(
            was_timed.device = now_timed.device AND was_timed.method = now_timed.method, false
        ) AS comparable
    FROM was
    FULL JOIN now_ ON was.op_name = now_.op_name AND was.meaning = now_.meaning
    LEFT JOIN was_timed ON was.uuid = was_timed.uuid
    LEFT JOIN now_timed ON now_.uuid = now_timed.uuid
),

-- A file with older columns says nothing of what it lacks, so nothing has changed there.
kinds AS (
    SELECT
        *,
        list_filter(
            [
                CASE WHEN is_added THEN 'added' END,
                CASE WHEN is_removed THEN 'removed' END,
                CASE
                    WHEN
                        previous_is_synthetic != is_synthetic
                        OR previous_runnable != runnable
                        OR previous_included != included
                        OR previous_why_excluded != why_excluded
                        THEN 'retagged'
                END,
                CASE
                    WHEN previous_count != count OR previous_in_models != in_models
                        THEN 'recounted'
                END,
                CASE
                    WHEN comparable AND (low_ms > previous_high_ms OR high_ms < previous_low_ms)
                        THEN 'retimed'
                END,
                CASE
                    WHEN comparable AND previous_is_overhead != is_overhead THEN 'overhead'
                END
            ],
            lambda kind: kind IS NOT NULL
        ) AS found
    FROM paired
)

SELECT
    unnest(found) AS kind,
    * EXCLUDE (found, comparable, is_added, is_removed)
FROM kinds
ORDER BY kind, op_name, args
