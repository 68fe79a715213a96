"""Constructs the model of an entry from the library that has it, without weights or network."""

from __future__ import annotations

import contextlib
import difflib
import importlib
import inspect
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch

from atenbench.cuda_calls import attention_backend
from atenbench.errors import UserError
from atenbench.known_values import KnownValues
from atenbench.meta_build import build
from atenbench.models import Entry

DTYPES = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}

_ALSO_RECORDED = {"timm": ("torchvision",), "diffusers": ("transformers",)}


def versions(entry: Entry) -> dict[str, str]:
    """The versions of what made the trace: torch, the entry's library and what that builds on."""
    names = ["torch"]
    if entry.library != "python":
        names += [entry.library, *_ALSO_RECORDED.get(entry.library, ())]
    return {name: importlib.import_module(name).__version__ for name in names}


def construct(entry: Entry, known: KnownValues) -> torch.nn.Module:
    """The entry's model on meta tensors, in the entry's dtype; its buffers' values are known.

    Raises:
        UserError: the library is not installed, does not know the model, or refuses its config.
    """
    make = {
        "timm": _timm,
        "torchvision": _torchvision,
        "transformers": _transformers,
        "diffusers": _diffusers,
        "python": _python,
    }[entry.library]
    with _faults_named(entry):
        model = make(entry, known)
    if not isinstance(model, torch.nn.Module):
        raise UserError(f"{_key(entry)} gave a {type(model).__name__}, not a torch.nn.Module")
    return model


@contextlib.contextmanager
def kernels(entry: Entry) -> Iterator[None]:
    """Within it, attention is called as the entry says."""
    with attention_backend("math" if entry.attention == "eager" else entry.attention):
        yield


def _key(entry: Entry) -> str:
    return f"{entry.suite}/{entry.name}: model: {entry.library} {entry.model!r}"


@contextlib.contextmanager
def _faults_named(entry: Entry) -> Iterator[None]:
    try:
        yield
    except UserError:
        raise
    except ModuleNotFoundError as error:
        raise UserError(f"{_key(entry)}: no module {error.name!r} in this environment") from None
    except (TypeError, ValueError, AttributeError) as error:
        name = type(error).__name__
        raise UserError(f"{_key(entry)} could not be built: {name}: {error}") from error


def _unknown(entry: Entry, known: Iterable[str]) -> UserError:
    close = difflib.get_close_matches(entry.model, list(known), n=3)
    hint = f"; close to it: {', '.join(close)}" if close else ""
    return UserError(f"{_key(entry)} does not exist in {_release(entry)}{hint}")


def _release(entry: Entry) -> str:
    return f"{entry.library} {importlib.import_module(entry.library).__version__}"


def _timm(entry: Entry, known: KnownValues) -> torch.nn.Module:
    timm = importlib.import_module("timm")
    layers = importlib.import_module("timm.layers")
    if not timm.is_model(entry.model):
        raise _unknown(entry, timm.list_models())
    layers.set_fused_attn(entry.attention != "eager")
    model = build(lambda: timm.create_model(entry.model, pretrained=False, **entry.config), known)
    return model.to(DTYPES[entry.dtype])


def _torchvision(entry: Entry, known: KnownValues) -> torch.nn.Module:
    models = importlib.import_module("torchvision.models")
    if entry.model not in models.list_models():
        raise _unknown(entry, models.list_models())
    keywords = {"weights": None, **entry.config}
    model = build(lambda: models.get_model(entry.model, **keywords), known)
    return model.to(DTYPES[entry.dtype])


def _transformers(entry: Entry, known: KnownValues) -> torch.nn.Module:
    transformers = importlib.import_module("transformers")
    if entry.model not in dir(transformers):
        raise _unknown(entry, dir(transformers))
    cls = getattr(transformers, entry.model)
    if getattr(cls, "config_class", None) is None:
        raise UserError(f"{_key(entry)} is no model class with a configuration of its own")
    config = _configure(cls, entry)
    if entry.mode in ("train", "eval"):
        config.use_cache = False
    dtype = DTYPES[entry.dtype]
    choices: dict[str, Any] = {"dtype": dtype}
    if entry.attention == "eager":
        choices["attn_implementation"] = "eager"
    if cls._can_set_experts_implementation():
        # One grouped product for all experts, as by default on CUDA; a loop over the experts that
        # were chosen would depend on the weights.
        choices["experts_implementation"] = "grouped_mm"
    model = build(lambda: cls._from_config(config, **choices), known)
    _cast_parameters(model, dtype)
    return model


def _cast_parameters(model: torch.nn.Module, dtype: torch.dtype) -> None:
    """As loading a checkpoint does: parameters but not buffers, and not what must stay float."""
    kept = set(getattr(model, "_keep_in_fp32_modules_strict", None) or ())
    if dtype is torch.float16:
        kept |= set(getattr(model, "_keep_in_fp32_modules", None) or ())
    for name, parameter in model.named_parameters():
        if parameter.is_floating_point() and kept.isdisjoint(name.split(".")):
            parameter.data = parameter.data.to(dtype)


def _configure(cls: Any, entry: Entry) -> Any:
    config_class = cls.config_class
    # transformers keeps any unknown keyword as an attribute: a typo would trace another model.
    plain = config_class()
    fields = set(plain.to_dict()) | set(config_class.attribute_map)
    for name in entry.config:
        if name not in fields and not hasattr(plain, name) and not _reads(cls, name):
            close = difflib.get_close_matches(name, fields, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise UserError(
                f"{entry.suite}/{entry.name}: config.{name}: "
                f"{config_class.__name__} has no such field{hint}"
            )
    return config_class(**entry.config)


def _reads(cls: Any, name: str) -> bool:
    """Whether the model's code asks for a field that its configuration does not declare."""
    source = inspect.getsource(importlib.import_module(cls.__module__))
    return (
        re.search(rf"config, \"{re.escape(name)}\"|config\.{re.escape(name)}\b", source) is not None
    )


def _diffusers(entry: Entry, known: KnownValues) -> torch.nn.Module:
    diffusers = importlib.import_module("diffusers")
    if entry.model not in dir(diffusers):
        raise _unknown(entry, dir(diffusers))
    cls = getattr(diffusers, entry.model)
    model = build(lambda: cls.from_config(dict(entry.config)), known)
    return model.to(DTYPES[entry.dtype])


def _python(entry: Entry, known: KnownValues) -> torch.nn.Module:
    module_name, _, function_name = entry.model.partition(":")
    if not function_name:
        raise UserError(f"{_key(entry)} must be module:function")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    module = importlib.import_module(module_name)
    function = getattr(module, function_name, None)
    if not callable(function):
        raise _unknown_function(entry, vars(module))
    return build(lambda: function(**entry.config), known).to(DTYPES[entry.dtype])


def _unknown_function(entry: Entry, known: Iterable[str]) -> UserError:
    close = difflib.get_close_matches(entry.model.partition(":")[2], list(known), n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    return UserError(f"{_key(entry)}: the module has no such callable{hint}")
