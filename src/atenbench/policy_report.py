"""``results/policy_differences.md``: where our flags differ from the reference's, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from atenbench import query
from atenbench.atomic import replacing
from atenbench.exclusions import exclusions_table, read_exclusions
from atenbench.reference_policy import reference_policy

Row = Mapping[str, Any]

_REASONS = {
    "cannot_run": "cannot be run on BackendBench yet",
    "random": "random",
    "creation_or_manipulation": "creation or manipulation",
    "synthetic": "synthetic",
}
_CAUSES = {
    "part of a name": (
        "The reference takes an operator for listed where an entry is a part of its name, and "
        "`{entry}` is a part of this one. It is another operator, and nobody listed it."
    ),
    "glued": (
        "The reference means to leave it out, but a missing comma glued its entry to the next "
        "one, and `{entry}` is no operator's name. Here it is listed: {why}."
    ),
    "tag": (
        "Its result is random: torch tags the operator `nondeterministic_seeded`, and there is no "
        "dropout of 0 that would settle it. The reference goes by a list of names, which misses it."
    ),
    "listed here only": "This policy lists it and the reference does not: {why}.",
    "not listed here": "The reference lists it as `{entry}`, and this policy does not.",
    "synthetic": (
        "It was made up, which is a reason to leave it out, but it runs: policy does not change "
        "a fact. The reference calls it not runnable."
    ),
}

_INTRODUCTION = """\
# Where our flags differ from the reference's

The reference (BackendBench) decides by lists of names, and tests whether an entry is a part of an
operator's name; here exact names, torch's tags and schemas decide. This compares the two on the
same problems and the same facts (what runs, what is synthetic), under the policy `{policy}`.
Operators that are not named below have the same reasons on both sides.
"""


def write_policy_report(
    tables: Mapping[str, str], exclusions: str, schema: str, sql: str, report: str
) -> None:
    """Write the report from the ``tables`` ``cases``, ``inspected`` and ``tags``.

    Raises:
        UserError: the policy file ``exclusions`` is not as its ``schema`` says.
    """
    policy = exclusions_table(read_exclusions(Path(exclusions), Path(schema)))
    relations = {**tables, "exclusions": policy, "reference": reference_policy()}
    text = render(query.fetch(sql, relations).to_pylist(), Path(exclusions).name)
    with replacing(Path(report)) as part:
        part.write_text(text, encoding="utf-8")


def render(rows: Iterable[Row], policy: str) -> str:
    """The report as Markdown, from the rows of ``policy_differences.sql``."""
    rows = list(rows)
    differing = [row for row in rows if row["cause"] != "inherited"]
    inherited = [row for row in rows if row["cause"] == "inherited"]
    parts = [_INTRODUCTION.format(policy=policy), *_differences(differing), *_inherited(inherited)]
    return "\n".join(parts)


def _differences(rows: list[Row]) -> Iterable[str]:
    yield "## Operators that differ\n"
    if not rows:
        yield "None.\n"
        return
    yield "How many of the problems named are in the benchmark, and are runnable, by the"
    yield "reference's rules → here:\n"
    yield "| operator | problems | reason at issue | included | runnable | why ours is right |"
    yield "|---|--:|---|--:|--:|---|"
    for row in rows:
        yield (
            f"| `{row['op_name']}` | {row['problems']:,} | {_REASONS[row['reason']]} "
            f"| {row['reference_included']:,} → {row['included']:,} "
            f"| {row['reference_runnable']:,} → {row['runnable']:,} "
            f"| {_CAUSES[row['cause']].format(**row)} |"
        )
    yield ""


def _inherited(rows: list[Row]) -> Iterable[str]:
    yield "## Listed, although the reason does not hold\n"
    if not rows:
        yield "None.\n"
        return
    yield "The policy keeps these entries because the published set has them:\n"
    yield "| operator | problems | reason given | what is true |"
    yield "|---|--:|---|---|"
    for row in rows:
        reason = _REASONS[row["reason"]]
        yield f"| `{row['op_name']}` | {row['problems']:,} | {reason} | {row['why']} |"
    yield ""
