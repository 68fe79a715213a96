"""The configuration, checked: a typo or a wrong type is an error that names the key.

Also the check of every other YAML file of the project against its strict schema.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from atenbench.errors import UserError

Schema = dict[str, Any]


def read_yaml(path: Path) -> Any:
    """The content of a YAML file.

    Raises:
        UserError: it cannot be read, or is not YAML; with file, line and reason.
    """
    try:
        return yaml.load(path.read_text(encoding="utf-8"), _EachKeyOnce)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: not UTF-8 text") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = f":{mark.line + 1}" if mark else ""
        raise UserError(f"{path}{line}: not YAML: {error.problem}") from None
    except yaml.YAMLError as error:
        raise UserError(f"{path}: not YAML: {error}") from None


class _EachKeyOnce(yaml.SafeLoader):
    """PyYAML's safe loader, but a key given twice is an error, where it takes the last one."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                problem = f"key {key!r} is given twice"
                raise yaml.constructor.ConstructorError(None, None, problem, key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


def checked(document: Any, schema: Schema, name: str) -> dict[str, Any]:
    """``document`` with the schema's defaults filled in; ``name`` is what messages call it.

    YAML reads a bare ``off`` as false; where the schema allows the word ``off`` it is meant.

    Raises:
        UserError: all faults at once, each with its key and what is allowed there.
    """
    document = {} if document is None else document
    if isinstance(document, dict):
        document = _with_words(document, schema)
    validator = jsonschema.Draft202012Validator(schema)
    faults = sorted(validator.iter_errors(document), key=lambda fault: list(map(str, fault.path)))
    if faults:
        raise UserError("\n".join(f"{name}: {line}" for fault in faults for line in _lines(fault)))
    assert isinstance(document, dict)
    defaults = {
        key: declared["default"]
        for key, declared in schema.get("properties", {}).items()
        if "default" in declared
    }
    return defaults | document


def _with_words(document: dict[str, Any], schema: Schema) -> dict[str, Any]:
    """YAML's false turned back into the word ``off`` wherever that word is allowed."""
    properties = schema.get("properties", {})
    return {
        key: "off" if value is False and "off" in properties.get(key, {}).get("enum", ()) else value
        for key, value in document.items()
    }


def _lines(fault: Any) -> Iterable[str]:
    """One readable line for each thing that is wrong at one place."""
    where = ".".join(str(part) for part in fault.absolute_path)
    inside = f" in {where}" if where else ""
    if fault.validator == "additionalProperties":
        allowed = sorted(fault.schema.get("properties", {}))
        for key in sorted(map(str, set(fault.instance) - set(allowed))):
            close = difflib.get_close_matches(key, allowed, n=1)
            hint = f" (did you mean {close[0]!r}?)" if close else ""
            yield f"unknown key {key!r}{inside}{hint}; allowed: {', '.join(allowed)}"
    elif fault.validator == "required":
        for key in fault.validator_value:
            if key not in fault.instance:
                yield f"key {key!r} is missing{inside}"
    else:
        yield f"{where or 'the document'} must be {_expected(fault.schema)}, not {fault.instance!r}"


_TYPES = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "null": "null",
    "number": "a number",
    "object": "a mapping",
    "string": "text",
}


def _expected(schema: Schema) -> str:
    """What a schema allows, in words."""
    if "enum" in schema:
        return "one of " + ", ".join(map(str, schema["enum"]))
    choices = schema.get("anyOf") or schema.get("oneOf")
    if choices:
        return " or ".join(map(_expected, choices))
    kind = schema.get("type", "as documented")
    kinds = kind if isinstance(kind, list) else [kind]
    words = " or ".join(_TYPES.get(one, str(one)) for one in kinds)
    if kind == "array" and "items" in schema:
        words += f", each item {_expected(schema['items'])}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        words += f", each value {_expected(schema['additionalProperties'])}"
    for keyword, sign in (
        ("exclusiveMinimum", "above"),
        ("minimum", "at least"),
        ("exclusiveMaximum", "below"),
        ("maximum", "at most"),
        ("minLength", "of a length of at least"),
        ("minItems", "of a length of at least"),
        ("pattern", "matching"),
    ):
        if keyword in schema:
            words += f" {sign} {schema[keyword]}"
    return words
