"""How well our traces match public ones of the same models, pair by pair.

    python benchmarks/fidelity.py PUBLIC_FOLDER [OUR_FOLDER] [--details]

A pair is an operator with its arguments. For each model in both folders: how many of the public
pairs ours has, and has with the same count, and how many pairs only ours has. `--details` lists
missing and extra pairs by operator, with the reason. The reasons were found by reading both
traces and the libraries' code; one that is wrong for a model is a fault to report.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from atenbench.configuration import read_yaml
from atenbench.trace import Calls, LineReader, find_traces, lines_of

RENAMES = Path(__file__).parents[1] / "config" / "renames.yaml"

Pairs = Counter[tuple[str, str]]

HARNESS = "harness: the public runs copy their inputs and targets first"
FOLDED = "library version: matmul and linear fold batches otherwise in today's torch"
OTHERWISE = "library version: the model is written otherwise today"

REASONS = {
    "aten.clone.default": HARNESS,
    "aten.lift_fresh_copy.default": HARNESS,
    "aten.copy_.default": f"{HARNESS}; {FOLDED}, and no gradient is transposed",
    "aten.new_empty_strided.default": FOLDED,
    "aten._unsafe_view.default": FOLDED,
    "aten.addmm.default": FOLDED,
    "aten.bmm.default": FOLDED,
    "aten.mm.default": FOLDED,
    "aten.sum.dim_IntList": FOLDED,
    "aten.slice_backward.default": "library version: a slice of everything is no call any more",
    "aten.bernoulli_.float": "library version: rates of stochastic depth are computed otherwise",
    "aten.div_.Tensor": "library version: rates of stochastic depth are computed otherwise",
    "aten.upsample_nearest2d.vec": "decomposition: calls the overload without scale factors today",
    "aten.upsample_nearest2d_backward.vec": "decomposition: the overload is gone from torch",
    "aten.upsample_bilinear2d.vec": "decomposition: calls the overload without scale factors today",
    "aten.upsample_bilinear2d_backward.vec": "decomposition: the overload is gone from torch",
    "aten.upsample_nearest2d.default": "decomposition: today's name of the .vec overload",
    "aten.upsample_nearest2d_backward.default": "decomposition: today's name of the .vec overload",
    "aten._to_copy.default": "device: casts of masks and counters, which moved between versions",
}


@dataclass(frozen=True)
class Match:
    """One model compared."""

    model: str
    public: int
    found: int
    equal: int
    extra: int
    missing_by_operator: Counter[str]
    extra_by_operator: Counter[str]

    @property
    def share(self) -> float:
        """The share of the public pairs found with equal counts."""
        return self.equal / self.public


def compare(model: str, public: Pairs, ours: Pairs) -> Match:
    """Hold two traces of one model against each other."""
    missing = [pair for pair, count in public.items() if ours.get(pair) != count]
    extra = [pair for pair in ours if pair not in public]
    return Match(
        model=model,
        public=len(public),
        found=sum(pair in ours for pair in public),
        equal=len(public) - len(missing),
        extra=len(extra),
        missing_by_operator=Counter(operator for operator, _ in missing),
        extra_by_operator=Counter(operator for operator, _ in extra),
    )


def read(folder: Path) -> dict[str, Pairs]:
    """Every trace of a folder, by `suite/file`, with today's operator names."""
    reader = LineReader(read_yaml(RENAMES))
    traces: dict[str, Pairs] = {}
    for trace in find_traces([folder]):
        pairs: Pairs = Counter()
        for item in reader.read(lines_of(trace)):
            if isinstance(item, Calls):
                for text in item.texts:
                    pairs[item.op_name, text.args] += text.times
        traces[trace.name] = pairs
    return traces


def table(matches: list[Match]) -> str:
    """The models as a Markdown table, the closest first within their suite."""
    head = "| model | public pairs | found | with equal counts | share | extra | extra share |"
    rows = [
        f"| {match.model.removesuffix('.txt')} | {match.public} | {match.found} | {match.equal} "
        f"| {match.share:.1%} | {match.extra} | {match.extra / match.public:.1%} |"
        for match in sorted(matches, key=lambda match: (match.model.split("/")[0], -match.share))
    ]
    return "\n".join([head, "|---|--:|--:|--:|--:|--:|--:|", *rows])


def details(match: Match) -> str:
    """What one model lacks or has too much of, by operator, with the reason."""
    operators = sorted(match.missing_by_operator | match.extra_by_operator)
    rows = [
        f"| {operator} | {match.missing_by_operator[operator]} "
        f"| {match.extra_by_operator[operator]} | {REASONS.get(operator, OTHERWISE)} |"
        for operator in operators
    ]
    head = f"### {match.model.removesuffix('.txt')}\n\n| operator | missing | extra | reason |"
    return "\n".join([head, "|---|--:|--:|---|", *rows])


def main() -> None:
    """The command of this module's docstring."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("public", type=Path)
    ours_default = Path(__file__).parents[1] / "resources" / "traces"
    parser.add_argument("ours", type=Path, nargs="?", default=ours_default)
    parser.add_argument("--details", action="store_true")
    given = parser.parse_args()
    public, ours = read(given.public), read(given.ours)
    shared = sorted(public.keys() & ours.keys())
    matches = [compare(model, public[model], ours[model]) for model in shared]
    print(table(matches))
    for suite in sorted({match.model.split("/")[0] for match in matches}):
        of_suite = [match for match in matches if match.model.startswith(f"{suite}/")]
        close = sum(match.share >= 0.9 for match in of_suite)
        lean = sum(match.extra <= 0.1 * match.public for match in of_suite)
        print(
            f"\n{suite}: of {len(of_suite)} models, {close} have 90 % of the public pairs with "
            f"equal counts, and {lean} at most 10 % more pairs."
        )
    missing = sorted(public.keys() - ours.keys())
    print(f"\nNot in our zoo: {', '.join(missing) or 'none'}.")
    if given.details:
        print("\n" + "\n\n".join(map(details, matches)))


if __name__ == "__main__":
    main()
