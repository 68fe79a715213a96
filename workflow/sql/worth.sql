-- What each measured problem is worth: calls × runtime, of the whole set's and of each model's.
--
-- Times are added up as whole picoseconds, whose sums do not depend on the order of adding.
WITH timed AS (
    SELECT
        cases.uuid,
        cases.op_name,
        cases.args,
        cases.count::HUGEINT * (measurements.runtime_ms * 1e9)::BIGINT AS total,
        (measurements.runtime_ms * 1e9)::BIGINT AS each
    FROM cases
    INNER JOIN measurements USING (uuid)
    WHERE isfinite(measurements.runtime_ms) AND measurements.runtime_ms > 0 AND cases.count > 0
),

-- A case keeps one of the spellings; its calls are found by what they mean.
meanings AS (
    SELECT DISTINCT op_name, args, coalesce(canonical, args) AS meaning
    FROM calls
),

by_model AS (
    SELECT
        op_name,
        coalesce(canonical, args) AS meaning,
        suite || '/' || model AS model,
        sum(count)::BIGINT AS calls
    FROM calls
    WHERE count > 0 AND model IS NOT NULL
    GROUP BY ALL
),

uses AS (
    SELECT
        timed.uuid,
        by_model.model,
        by_model.calls,
        by_model.calls::HUGEINT * timed.each AS total
    FROM timed
    INNER JOIN meanings USING (op_name, args)
    INNER JOIN by_model USING (op_name, meaning)
),

shares AS (
    SELECT uuid, model, calls, total / sum(total) OVER (PARTITION BY model) AS share
    FROM uses
),

models AS (
    SELECT
        uuid,
        list({'model': model, 'calls': calls, 'share': share} ORDER BY model) AS share_by_model
    FROM shares
    GROUP BY uuid
),

whole AS (
    SELECT
        uuid,
        total / 1e9 AS total_ms,
        total / sum(total) OVER () AS share_of_time,
        row_number() OVER (ORDER BY total DESC, uuid) AS rank_by_time,
        sum(total) OVER (ORDER BY total DESC, uuid) / sum(total) OVER () AS cumulative_share
    FROM timed
)

SELECT
    whole.uuid,
    whole.total_ms,
    whole.share_of_time,
    whole.rank_by_time,
    whole.cumulative_share,
    coalesce(models.share_by_model, []) AS share_by_model
FROM whole
LEFT JOIN models USING (uuid)
ORDER BY whole.uuid
