"""Facts and policy → ``tags.parquet``, every decision about every case; the rules are SQL."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from atenbench import query
from atenbench.exclusions import exclusions_table, read_exclusions

logger = logging.getLogger(__name__)

TAGS = pa.schema(
    [
        pa.field("uuid", pa.string(), nullable=False),
        pa.field("status", pa.string(), nullable=False),
        pa.field("runs", pa.bool_(), nullable=False),
        pa.field("runnable", pa.bool_(), nullable=False),
        pa.field("included_in_benchmark", pa.bool_(), nullable=False),
        pa.field("why_excluded", pa.list_(pa.string()), nullable=False),
        pa.field("is_overhead_dominated_op", pa.bool_(), nullable=False),
    ]
)


def tag(
    tables: Mapping[str, str],
    measurements: Sequence[str],
    policy: Mapping[str, str],
    sql: str,
    overhead_threshold: float,
    tags: str,
) -> None:
    """Write ``tags`` from the ``tables`` ``cases`` and ``inspected`` and all ``measurements``.

    ``policy`` holds the file of ``exclusions`` and the ``schema`` of such files.

    Raises:
        UserError: the policy file is not as its schema says.
    """
    exclusions = read_exclusions(Path(policy["exclusions"]), Path(policy["schema"]))
    query.write(
        sql,
        tags,
        {
            **tables,
            "measurements": measurements,
            "exclusions": exclusions_table(exclusions),
        },
        params={"overhead_threshold": overhead_threshold},
        schema=TAGS,
        expected_rows=pq.read_metadata(tables["cases"]).num_rows,
    )
    included = pq.read_table(tags, columns=["included_in_benchmark"]).column(0)
    logger.info(
        "%s of %s problems are in the benchmark",
        f"{included.to_pylist().count(True):,}",
        f"{len(included):,}",
    )
