"""The step of an entry that is recorded: its inputs, what it does with the model, its loss."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from atenbench.arguments import ArgumentError, Tensor, parse
from atenbench.errors import UserError
from atenbench.known_values import KnownValues
from atenbench.libraries import DTYPES
from atenbench.models import Entry

_TORCH_DTYPES = {**DTYPES, "i64": torch.int64, "i32": torch.int32, "b8": torch.bool}

_LONG = torch.int64

# Below and above these stand the special tokens of the usual vocabularies.
_FIRST_WORD, _WORDS = 10, 80


@dataclass(frozen=True, slots=True)
class Inputs:
    """What the model is called with; labels that it does not take itself are kept apart."""

    positional: tuple[torch.Tensor, ...]
    keywords: Mapping[str, Any]
    target: torch.Tensor | None = None


def step(entry: Entry, model: torch.nn.Module, known: KnownValues) -> Callable[[], object]:
    """The step to record, after whatever must go before it unrecorded has been done.

    Raises:
        UserError: the entry lacks what its kind of input or its mode needs.
    """
    inputs = make_inputs(entry, known)
    if entry.mode == "train":
        model.train(entry.training)
        return lambda: _train(entry, model, inputs)
    model.eval()
    if entry.mode == "eval":
        return lambda: _forward(model, inputs)
    if entry.mode == "prefill":
        return lambda: _cached(model, inputs)
    return _decode(entry, model, inputs)


def _train(entry: Entry, model: torch.nn.Module, inputs: Inputs) -> None:
    output = model(*inputs.positional, **inputs.keywords)
    loss_of(output, inputs.target).backward()  # type: ignore[no-untyped-call]


def _forward(model: torch.nn.Module, inputs: Inputs) -> object:
    with torch.no_grad():
        return model(*inputs.positional, **inputs.keywords)


def _cached(model: torch.nn.Module, inputs: Inputs, **more: Any) -> Any:
    """A forward that keeps a cache and, as generating does, scores the last position alone."""
    with torch.no_grad():
        return model(**inputs.keywords, use_cache=True, logits_to_keep=1, **more)


def _decode(entry: Entry, model: torch.nn.Module, inputs: Inputs) -> Callable[[], object]:
    cache = _cached(model, inputs).past_key_values
    token = torch.empty(entry.batch, 1, dtype=_LONG, device="meta")
    one = Inputs((), {"input_ids": token})
    return lambda: _cached(model, one, past_key_values=cache)


def loss_of(output: Any, target: torch.Tensor | None) -> torch.Tensor:
    """The scalar to differentiate: the model's own loss, cross entropy, or the outputs' mean."""
    own = getattr(output, "loss", None)
    if isinstance(own, torch.Tensor):
        return own if own.dim() == 0 else own.mean()
    if target is not None:
        scores = output if isinstance(output, torch.Tensor) else output[0]
        return torch.nn.functional.cross_entropy(scores, target)
    return _mean(output)


def _mean(output: Any) -> torch.Tensor:
    if isinstance(output, torch.Tensor):
        return output.sum() / output.numel()
    means = [_mean(part) for part in _parts(output)]
    return means[0] if len(means) == 1 else sum(means[1:], means[0]) / len(means)


def _parts(output: Any) -> list[Any]:
    """The differentiable parts of an output that is a mapping, a sequence or a record."""
    logits = getattr(output, "logits", None)
    if logits is not None:
        return [logits]
    items = output.values() if isinstance(output, Mapping) else output
    return [item for item in items if _differentiable(item)]


def _differentiable(item: Any) -> bool:
    if isinstance(item, torch.Tensor):
        return item.requires_grad
    return isinstance(item, list | tuple | Mapping) and bool(_parts(item))


def make_inputs(entry: Entry, known: KnownValues) -> Inputs:
    """The inputs on meta tensors; where the entry gives values, they are known.

    Raises:
        UserError: a key that the kind of input needs is missing, or an input is no tensor.
    """
    make: dict[str, Callable[[Entry, KnownValues], Inputs]] = {
        "tokens": _tokens,
        "pairs": _pairs,
        "image": _image,
        "waveform": _waveform,
        "spectrogram": _spectrogram,
        "custom": _custom,
    }
    made = make[entry.input](entry, known)
    further = {name: _given(entry, name, value, known) for name, value in entry.inputs.items()}
    return Inputs(made.positional, {**made.keywords, **further}, made.target)


def _tokens(entry: Entry, known: KnownValues) -> Inputs:
    shape = entry.batch, _sequence(entry)
    return Inputs((), {"input_ids": _text(shape, known)} | _labels(entry, shape, "tokens"))


def _pairs(entry: Entry, known: KnownValues) -> Inputs:
    shape = entry.batch, _sequence(entry)
    keywords = {"input_ids": _text(shape, known), "decoder_input_ids": _text(shape, known)}
    return Inputs((), keywords | _labels(entry, shape, "tokens"))


def _text(shape: tuple[int, int], known: KnownValues) -> torch.Tensor:
    """Tokens with known ids: models look for padding, of which there is none here."""
    count = shape[0] * shape[1]
    ids = (_FIRST_WORD + torch.arange(count) % _WORDS).reshape(shape)
    tokens = ids.to("meta")
    known.give(tokens, ids)
    return tokens


def _image(entry: Entry, known: KnownValues) -> Inputs:
    if entry.size is None:
        raise _missing(entry, "size")
    image = _empty((entry.batch, 3, *entry.size), DTYPES[entry.dtype])
    if entry.library in ("transformers", "diffusers"):
        return Inputs((), {"pixel_values": image} | _labels(entry, (entry.batch,), "none"))
    learns = entry.mode == "train" and entry.labels in (None, "classes")
    return Inputs((image,), {}, _empty((entry.batch,), _LONG) if learns else None)


def _waveform(entry: Entry, known: KnownValues) -> Inputs:
    shape = entry.batch, _sequence(entry)
    sound = {"input_values": _empty(shape, DTYPES[entry.dtype])}
    return Inputs((), sound | _labels(entry, shape, "none"))


def _spectrogram(entry: Entry, known: KnownValues) -> Inputs:
    # Whisper and its kin: mel bins are fixed by the model, the decoder starts from one text.
    bins = entry.config.get("num_mel_bins", 80)
    features = _empty((entry.batch, bins, _sequence(entry)), DTYPES[entry.dtype])
    return Inputs((), {"input_features": features} | _labels(entry, (), "none"))


def _custom(entry: Entry, known: KnownValues) -> Inputs:
    return Inputs((), {})


def _labels(entry: Entry, tokens: tuple[int, ...], usual: str) -> dict[str, torch.Tensor]:
    """What a model that computes its own loss is given for it."""
    kind = entry.labels or usual
    if entry.mode != "train" or kind == "none":
        return {}
    if kind.startswith("T("):
        return {"labels": _declared(entry, "labels", kind)}
    one_each = (entry.batch,)
    if kind == "spans":
        return {name: _empty(one_each, _LONG) for name in ("start_positions", "end_positions")}
    return {"labels": _empty(tokens if kind == "tokens" else one_each, _LONG)}


def _given(entry: Entry, name: str, value: Any, known: KnownValues) -> Any:
    """A declared input: a tensor's text, numbers that become a tensor, a value, or a mapping."""
    if isinstance(value, dict):
        return {key: _given(entry, f"{name}.{key}", item, known) for key, item in value.items()}
    if isinstance(value, str):
        return _declared(entry, name, value)
    if not isinstance(value, list):
        return value
    real = torch.tensor(value)
    tensor = real.to("meta")
    known.give(tensor, real)
    return tensor


def _declared(entry: Entry, name: str, value: Any) -> Any:
    """An input declared as a trace spells a tensor, on meta."""
    try:
        (spec,) = parse(f"(({value},), {{}})").args
    except ArgumentError as error:
        raise UserError(f"{entry.suite}/{entry.name}: inputs.{name}: {error}") from None
    if not isinstance(spec, Tensor) or spec.dtype not in _TORCH_DTYPES:
        raise UserError(f"{entry.suite}/{entry.name}: inputs.{name}: not a tensor: {value}")
    return _empty(spec.shape, _TORCH_DTYPES[spec.dtype])


def _empty(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    return torch.empty(shape, dtype=dtype, device="meta")


def _sequence(entry: Entry) -> int:
    if entry.sequence is None:
        raise _missing(entry, "sequence")
    return entry.sequence


def _missing(entry: Entry, key: str) -> UserError:
    return UserError(f"{entry.suite}/{entry.name}: {key}: needed where input is {entry.input}")
