"""The policy file: which operators are left out of the benchmark, and why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa

from atenbench.configuration import checked, read_yaml
from atenbench.errors import UserError


@dataclass(frozen=True, slots=True)
class Exclusion:
    """One operator that the policy leaves out."""

    op_name: str
    reason: str
    why: str
    inherited: bool


_SCHEMA = pa.schema(
    [
        pa.field("op_name", pa.string(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("why", pa.string(), nullable=False),
        pa.field("inherited", pa.bool_(), nullable=False),
    ]
)


def read_exclusions(path: Path, schema: Path) -> list[Exclusion]:
    """The operators that a policy file names, checked against the schema of such files.

    Raises:
        UserError: the file is not as the schema says, or names an operator twice.
    """
    document = checked(read_yaml(path), read_yaml(schema), str(path))
    exclusions = list(_entries(document))
    seen: set[str] = set()
    for exclusion in exclusions:
        if exclusion.op_name in seen:
            raise UserError(f"{path}: {exclusion.op_name} is named twice; leave one of the two")
        seen.add(exclusion.op_name)
    return exclusions


def exclusions_table(exclusions: list[Exclusion]) -> pa.Table:
    """The policy as a relation for SQL."""
    return pa.Table.from_pylist([asdict(exclusion) for exclusion in exclusions], schema=_SCHEMA)


def _entries(document: dict[str, list[dict[str, object]]]) -> Iterator[Exclusion]:
    for entry in document["exclusions"]:
        operators = entry["operators"]
        assert isinstance(operators, list)
        for operator in operators:
            yield Exclusion(
                op_name=operator,
                reason=str(entry["reason"]),
                why=str(entry["why"]),
                inherited=bool(entry.get("inherited", False)),
            )
