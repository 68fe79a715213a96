"""The reference's exclusion lists as a relation, to compare our policy with.

The lists are data, in ``reference_policy.yaml`` beside this file, which says what they are.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from atenbench.configuration import read_yaml

_SCHEMA = pa.schema(
    [
        pa.field("reason", pa.string(), nullable=False),
        pa.field("entry", pa.string(), nullable=False),
        pa.field("meant", pa.list_(pa.string()), nullable=False),
    ]
)


def reference_policy() -> pa.Table:
    """Each entry with its reason, and the full names of the operators that it was meant for."""
    lists = read_yaml(Path(__file__).with_suffix(".yaml"))
    rows = [
        {
            "reason": reason,
            "entry": "".join(names),
            "meant": [f"aten.{name}" for name in names],
        }
        for reason, entries in lists.items()
        for names in [*([name] for name in entries["names"]), *entries.get("glued", [])]
    ]
    return pa.Table.from_pylist(rows, schema=_SCHEMA)
