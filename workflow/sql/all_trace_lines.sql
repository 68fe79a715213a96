-- Every problem as a line of one trace that stands for all of them, synthetic ones with count 0.
SELECT op_name, args, count
FROM cases
ORDER BY op_name, count DESC, uuid
