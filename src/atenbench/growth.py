"""How one call can be made larger: which of its sizes belong together, and how far they go.

Learned by running on meta tensors, which allocate nothing. Sizes that are equal in every call of
an operator that has the same form are taken to be one; of the calls at hand, whole groups of such
sizes are multiplied, alone or with another group (a view needs one of its input and one of its new
shape), and the operator's own checks say what fits. Equal sizes are kept together even where the
checks would let them differ: some operators check less on meta tensors than when they compute.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch

from atenbench.arguments import Arguments, render
from atenbench.input_rules import NoValidInput, tensor_inputs
from atenbench.inspection import inspect_case
from atenbench.operators import UnknownOperator, facts, resolve
from atenbench.scaling import Key, Size, form, scaled, sizes, tensors

NO_SIZE = "no tensor has a dimension, and no argument is a size"
NO_GROUP = "no sizes were found that grow together on meta tensors"
AT_LIMIT = "twice the size would go beyond the memory limit"
NOT_DECIDED = "meta tensors cannot tell whether it runs"

ENOUGH = 3.0
"""A growth in bytes with which the search for a better group ends."""

MOST_ELEMENTS = 2**31 - 1
"""Of one tensor: kernels that count elements in 32 bits are no target of a stress problem."""

MATTERS = 1.5
"""A group of sizes matters where doubling it makes the call so many times larger in bytes."""

_MOST_RUNS = 2_000  # on meta tensors, for one call: far more than any known operator needs


@dataclass(frozen=True, slots=True)
class Grown:
    """A larger call: its arguments, the factor, what was multiplied, and bytes before and after.

    Bytes are those of the tensors that go in and of those that come out.
    """

    args: str
    factor: int
    sizes: list[str]
    bytes_before: int
    bytes: int


@dataclass(frozen=True, slots=True)
class _Run:
    """What a run on meta tensors shows: bytes in and out together, and those that come out."""

    bytes: int
    output_bytes: int
    returns_its_input: bool

    def grows_beyond(self, before: _Run) -> bool:
        return self.returns_its_input or self.output_bytes > before.output_bytes


@dataclass(frozen=True, slots=True)
class _Step:
    """A set of sizes that can be doubled, and the run with all of them doubled."""

    chosen: list[Size]
    after: _Run


class Grower:
    """Makes calls of one operator larger; ``calls`` are all that are known of it."""

    def __init__(self, op_name: str, calls: Iterable[Arguments], limit: int) -> None:
        self.op_name = op_name
        self.limit = limit
        self._integers = _integer_sizes(op_name)
        self._columns: dict[Hashable, list[list[int]]] = defaultdict(list)
        for call in calls:
            self._columns[self._form(call)].append([size.value for size in self._sizes(call)])
        self._runs = 0

    def grow(self, call: Arguments) -> Grown | str:
        """The call as large as the limit (bytes) allows, or in fixed words why it stays as it is.

        Of the groups of sizes that can grow, one that makes what comes out larger too is taken
        before others: where the result stays as it is, the operator may read a part only, or not
        have looked. Among equals, the first that makes the call ENOUGH times larger, in the order
        of :meth:`_groups`; else the one that makes it largest.
        """
        self._runs = 0
        before = self._run(call)
        if isinstance(before, str):
            return before
        groups = self._groups(call)
        seeds = [group for group in groups if self._makes_larger(group)]
        if not seeds:
            return NO_SIZE
        found: list[_Step | str] = []
        for seed in seeds:
            found.append(self._doubled(call, before, seed, groups))
            # With one dimension of each tensor too large, others would be too, if they count.
            if found[-1] == AT_LIMIT and _dimensions_of_one_tensor(seed) == 1:
                break
        steps = [step for step in found if isinstance(step, _Step)]
        matters = [step for step in steps if step.after.bytes >= MATTERS * before.bytes]
        shows = [step for step in matters if step.after.grows_beyond(before)]
        # What hardly matters may stand in only where nothing that does is kept back by the limit.
        at_limit = AT_LIMIT in found
        best = self._best(call, before, shows or matters or ([] if at_limit else steps))
        return best or (AT_LIMIT if at_limit else NO_GROUP)

    def _best(self, call: Arguments, before: _Run, steps: Sequence[_Step]) -> Grown | None:
        best: Grown | None = None
        for step in steps:
            grown = self._as_far_as_it_goes(call, step.chosen, before.bytes)
            if best is None or grown.bytes > best.bytes:
                best = grown
            if best.bytes >= ENOUGH * before.bytes or ENOUGH * before.bytes > self.limit:
                break
        return best

    def _sizes(self, call: Arguments) -> list[Size]:
        return sizes(call, self._integers)

    def _form(self, call: Arguments) -> Hashable:
        return form(call, self._integers)

    def _groups(self, call: Arguments) -> list[list[Size]]:
        """The sizes of a call, those that are always equal together; the most promising first.

        These are the leading dimensions of large tensors. A dimension of 1 comes last: it may have
        been meant to be repeated.
        """
        own = self._sizes(call)
        rows = self._columns.get(self._form(call)) or [[size.value for size in own]]
        together: dict[tuple[int, ...], list[Size]] = defaultdict(list)
        for size, column in zip(own, zip(*rows, strict=True), strict=True):
            if size.value >= 1:
                together[column].append(size)
        places = tensors(call)
        creates = facts(resolve(self.op_name)).is_creation

        def nbytes(size: Size) -> int:
            return places[size.place].nbytes if size.dim is not None else -1

        def rank(group: list[Size]) -> tuple[object, ...]:
            size = min(group, key=lambda size: -nbytes(size))
            is_tensor = size.dim is not None
            # What only makes values reads no tensor: there the integers come first.
            return (
                size.value == 1,
                is_tensor if creates else not is_tensor,
                -nbytes(size),
                str(size.place),
                size.dim or 0,
            )

        return sorted(together.values(), key=rank)

    def _makes_larger(self, group: Sequence[Size]) -> bool:
        """A tensor's dimension does; an integer may mean anything, unless it makes a tensor."""
        creates = facts(resolve(self.op_name)).is_creation
        return creates or any(size.dim is not None for size in group)

    def _doubled(
        self, call: Arguments, before: _Run, seed: Sequence[Size], groups: Sequence[list[Size]]
    ) -> _Step | str:
        """A set of sizes around a group that can be doubled, or why there is none.

        A set that is only too large ends the search: a smaller one may run merely because meta
        tensors do not show what is wrong with it.
        """
        for chosen in _sets_around(seed, groups):
            if self._runs >= _MOST_RUNS:
                break
            doubled = scaled(call, chosen, 2)
            after = NO_GROUP if doubled is None else self._run(doubled)
            if after == AT_LIMIT:
                return AT_LIMIT
            if isinstance(after, _Run) and after.bytes > before.bytes:
                return _Step(chosen, after)
        return NO_GROUP

    def _as_far_as_it_goes(self, call: Arguments, chosen: list[Size], before: int) -> Grown:
        """The largest factor, found by doubling and halving, with which the call runs."""

        def size_at(factor: int) -> int | None:
            larger = scaled(call, chosen, factor)
            found = None if larger is None else self._run(larger)
            return found.bytes if isinstance(found, _Run) else None

        good, step = 2, 2
        while size_at(good + step) is not None:
            good += step
            step *= 2
        while step > 1:
            step //= 2
            if size_at(good + step) is not None:
                good += step
        larger = scaled(call, chosen, good)
        assert larger is not None
        after = size_at(good)
        assert after is not None
        names = sorted(self._named(size) for size in chosen)
        return Grown(render(larger), good, names, before, after)

    def _run(self, call: Arguments) -> _Run | str:
        """What a run on meta tensors shows, or why it is of no use."""
        given = tensors(call).values()
        total = sum(tensor.nbytes for tensor in given)
        if total > self.limit or any(tensor.numel > MOST_ELEMENTS for tensor in given):
            return AT_LIMIT
        self._runs += 1
        seen = inspect_case(self.op_name, render(call))
        if seen["meta_status"] == "failed":
            return str(seen["meta_reason"])
        if seen["meta_status"] != "ok":
            return NOT_DECIDED
        try:
            tensor_inputs(resolve(self.op_name), call)
        except NoValidInput as error:
            return str(error)
        run = _Run(
            bytes=seen["input_bytes"] + seen["output_bytes"],
            output_bytes=seen["output_bytes"],
            returns_its_input=seen["is_in_place"] or seen["is_view"],
        )
        return run if run.bytes <= self.limit else AT_LIMIT

    def _named(self, size: Size) -> str:
        """A size by the names of the schema, such as ``grad_output.0`` or ``size[1]``."""
        argument, *inside = size.place
        declared = resolve(self.op_name)._schema.arguments
        name = argument if isinstance(argument, str) else declared[argument].name
        items = "".join(f"[{position}]" for position in inside)
        return f"{name}{items}" if size.dim is None else f"{name}{items}.{size.dim}"


def _integer_sizes(op_name: str) -> frozenset[Key]:
    """The arguments whose integers the schema lets be symbolic: sizes, and numbers worked out
    from them. Others are modes, dimensions or fixed kernel sizes."""
    found: set[Key] = set()
    for position, declared in enumerate(resolve(op_name)._schema.arguments):
        kind = declared.real_type
        while isinstance(kind, torch._C.OptionalType | torch._C.ListType):
            kind = kind.getElementType()
        if isinstance(kind, torch._C.SymIntType):
            found |= {position, declared.name}
    return frozenset(found)


def knows(op_name: str) -> bool:
    """Whether this torch has the operator."""
    try:
        resolve(op_name)
    except UnknownOperator:
        return False
    return True


def _dimensions_of_one_tensor(group: Sequence[Size]) -> int:
    """The most dimensions that the group holds of any one tensor."""
    return max(Counter(size.place for size in group if size.dim is not None).values(), default=0)


def _sets_around(seed: Sequence[Size], groups: Sequence[list[Size]]) -> Iterator[list[Size]]:
    """What to multiply, likely sets first, none twice: the group, its tensors alone, all of its
    size in this call, and the group with one or two others."""
    tried: set[frozenset[Size]] = set()
    for chosen in _all_sets_around(seed, groups):
        key = frozenset(chosen)
        if key and key not in tried:
            tried.add(key)
            yield sorted(key, key=lambda size: (str(size.place), size.dim or 0))


def _all_sets_around(seed: Sequence[Size], groups: Sequence[list[Size]]) -> Iterator[list[Size]]:
    yield list(seed)
    yield [size for size in seed if size.dim is not None]
    alike = [size for group in groups for size in group if size.value == seed[0].value]
    yield alike
    yield [size for size in alike if size.dim is not None]
    others = [group for group in groups if group is not seed]
    for several in (1, 2):
        for added in itertools.combinations(others, several):
            yield [*seed, *itertools.chain.from_iterable(added)]
