"""Facts and tags → the published files, and everything else that is known in the details table."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

import pyarrow.parquet as pq

from atenbench import query
from atenbench.problem import PROBLEM
from atenbench.record import schema, write_json

_VERSIONS = ("torch", "duckdb", "pyarrow")


def export(
    tables: Mapping[str, str],
    measurements: Sequence[str],
    sql: Mapping[str, str],
    files: Mapping[str, str],
    about: Mapping[str, str],
    out: Mapping[str, str],
) -> None:
    """Write the files that ``out`` names: ``problems``, their ``json`` and the ``details``.

    ``tables`` holds ``cases``, ``inspected``, ``tags`` and ``worth``, ``sql`` the file for
    ``problems`` and for ``details``. The metadata of both parquet files says what ``about`` says of
    the run, the device, the versions, and the digests of the tables and of further ``files``.
    """
    relations = {**tables, "measurements": measurements}
    cases = pq.read_metadata(tables["cases"]).num_rows
    metadata = {**about, **_provenance({**tables, **files}, measurements)}
    query.write(
        sql["problems"],
        out["problems"],
        relations,
        schema=schema(PROBLEM),
        metadata=metadata,
        expected_rows=cases,
    )
    query.write(sql["details"], out["details"], relations, metadata=metadata, expected_rows=cases)
    write_json(out["problems"], out["json"])


def _provenance(files: Mapping[str, str], measurements: Sequence[str]) -> dict[str, str]:
    read = {name: [path] for name, path in files.items()} | {"measurements": list(measurements)}
    return {
        "device": "; ".join(_devices(measurements)) or "off",
        **{f"version of {package}": version(package) for package in _VERSIONS},
        **{f"sha256 of {name}": _digest(paths) for name, paths in read.items() if paths},
    }


def _devices(measurements: Sequence[str]) -> list[str]:
    """The devices that the measurements name."""
    named: set[str] = set()
    for path in measurements:
        if "device" in pq.read_schema(path).names:
            found = pq.read_table(path, columns=["device"]).column(0).unique()
            named.update(filter(None, found.to_pylist()))
    return sorted(named)


def _digest(paths: Sequence[str]) -> str:
    """The SHA-256 of files one after the other."""
    digest = hashlib.sha256()
    for path in paths:
        with Path(path).open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()
