-- How few problems make how much of the time: the most costly first, thinned out for the eye.
SELECT
    rank_by_time AS rank,
    round(cumulative_share, 6) AS cumulative_share,
    round(share_of_time, 6) AS share,
    problems.op_name,
    problems.args[:120] AS args,
    problems.is_overhead_dominated_op AS is_overhead,
    count(*) OVER () AS ranked
FROM problems
INNER JOIN details USING (uuid)
WHERE rank_by_time IS NOT NULL
-- The first hundred, and then as many points for each tenfold.
QUALIFY rank <= 100 OR floor(ln(rank) * 40) <> floor(ln(rank - 1) * 40) OR rank = ranked
ORDER BY rank
