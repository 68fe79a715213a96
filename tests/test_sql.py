"""Every SQL file is one SELECT that states its order, and reads what its rule gives it."""

import json
from pathlib import Path

import duckdb
import pytest

from curated import SQL

FILES = sorted(SQL.rglob("*.sql"))


def parsed(file: Path) -> dict:
    """The syntax tree of the file's statements."""
    with duckdb.connect() as connection:
        query = connection.execute("SELECT json_serialize_sql($1)", [file.read_text()])
        return json.loads(query.fetchall()[0][0])


def of_kind(node: object, key: str) -> list:
    """The values of a key anywhere in a tree."""
    if isinstance(node, list):
        return [found for item in node for found in of_kind(item, key)]
    if isinstance(node, dict):
        here = [node[key]] if key in node else []
        return here + [found for value in node.values() for found in of_kind(value, key)]
    return []


def test_the_files_are_found() -> None:
    assert len(FILES) >= 6


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_one_select_with_a_stated_order(file: Path) -> None:
    tree = parsed(file)
    assert not tree["error"], tree.get("error_message")
    (statement,) = tree["statements"]
    kinds = [modifier["type"] for modifier in statement["node"]["modifiers"]]
    assert "ORDER_MODIFIER" in kinds


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_what_is_read_are_relations_never_files(file: Path) -> None:
    names = set(of_kind(parsed(file), "table_name")) - {""}
    assert names
    assert all(name.isidentifier() for name in names)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_no_decision_by_a_part_of_a_name(file: Path) -> None:
    """Only the reference's own rule is a substring test, in the report that compares with it."""
    called = {name.lower() for name in of_kind(parsed(file), "function_name")}
    tests = {"contains", "like", "~~", "!~~", "~~*", "regexp_matches", "prefix", "suffix", "instr"}
    tests |= {"starts_with", "ends_with", "strpos", "position", "like_escape", "regexp_full_match"}
    expected = {"contains"} if file.name == "policy_differences.sql" else set()
    assert called & tests == expected
