"""A stand-in for the Hugging Face hub: the HTTP calls that its client makes, over data in memory.

Data sets only. Files of ``.parquet`` go through LFS as on the real hub, others inside the commit.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest


@dataclass
class Commit:
    oid: str
    title: str
    files: dict[str, bytes]


@dataclass
class Hub:
    """What the server holds, and what it was asked."""

    url: str = ""
    repos: dict[str, list[Commit]] = field(default_factory=dict)
    tags: dict[str, dict[str, str]] = field(default_factory=dict)
    uploads: dict[str, bytes] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    loses: str | None = None
    """A path whose upload the server answers with an error."""

    def commit(self, repo: str, files: dict[str, bytes], title: str = "by hand") -> str:
        """The files that a new commit of the data set holds, all of them."""
        history = self.repos.setdefault(repo, [])
        content = repr((repo, len(history), sorted(files.items()))).encode()
        history.append(Commit(hashlib.sha1(content).hexdigest(), title, files))
        return history[-1].oid

    def find(self, repo: str, revision: str) -> Commit | None:
        history = self.repos.get(repo, [])
        revision = self.tags.get(repo, {}).get(revision, revision)
        if revision == "main" and history:
            return history[-1]
        return next((commit for commit in history if commit.oid == revision), None)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Hub

    def log_message(self, *args: object) -> None:
        """Say nothing."""

    def answer(self, status: int, body: Any = b"", headers: dict[str, str] | None = None) -> None:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(content))} | (headers or {})).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") == "chunked":
            chunks = []
            while size := int(self.rfile.readline(), 16):
                chunks.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(chunks)
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def handle_any(self) -> None:
        path = unquote(urlsplit(self.path).path)
        body = self.body()
        self.hub.requests.append(f"{self.command} {path}")
        for pattern, method in _ROUTES:
            match = re.fullmatch(pattern, f"{self.command} {path}")
            if match:
                return method(self, body, **match.groupdict())
        return self.answer(404, {"error": "no such address"})

    do_GET = do_HEAD = do_POST = do_PUT = handle_any

    def missing(self, code: str) -> None:
        self.answer(404, {"error": code}, {"X-Error-Code": code})

    def info(self, body: bytes, repo: str, revision: str | None = None) -> None:
        if repo not in self.hub.repos:
            return self.missing("RepoNotFound")
        commit = self.hub.find(repo, revision or "main")
        if commit is None:
            return self.missing("RevisionNotFound")
        return self.answer(200, {"id": repo, "sha": commit.oid, "private": False, "tags": []})

    def tree(self, body: bytes, repo: str, revision: str) -> None:
        commit = self.hub.find(repo, revision)
        if commit is None:
            return self.missing("RevisionNotFound" if repo in self.hub.repos else "RepoNotFound")
        return self.answer(200, [_entry(path, data) for path, data in commit.files.items()])

    def resolve(self, body: bytes, repo: str, revision: str, file: str) -> None:
        commit = self.hub.find(repo, revision)
        if commit is None:
            return self.missing("RevisionNotFound" if repo in self.hub.repos else "RepoNotFound")
        if file not in commit.files:
            return self.missing("EntryNotFound")
        content = commit.files[file]
        etag = hashlib.sha256(content).hexdigest()
        return self.answer(200, content, {"X-Repo-Commit": commit.oid, "ETag": f'"{etag}"'})

    def preupload(self, body: bytes, repo: str, revision: str) -> None:
        files = [
            {"path": file["path"], "uploadMode": _mode(file["path"]), "shouldIgnore": False}
            for file in json.loads(body)["files"]
        ]
        self.answer(200, {"files": files})

    def batch(self, body: bytes, repo: str) -> None:
        objects = [
            {**wanted, "actions": {"upload": {"href": f"{self.hub.url}/lfs/{wanted['oid']}"}}}
            for wanted in json.loads(body)["objects"]
        ]
        self.answer(200, {"transfer": "basic", "objects": objects})

    def upload(self, body: bytes, oid: str) -> None:
        if hashlib.sha256(body).hexdigest() != oid:
            return self.answer(400, {"error": "the content is not that of its digest"})
        self.hub.uploads[oid] = body
        return self.answer(200)

    def receive(self, body: bytes, repo: str, revision: str) -> None:
        lines = [json.loads(line) for line in body.splitlines() if line]
        header = lines[0]["value"]
        head = self.hub.find(repo, revision)
        assert head is not None
        if header.get("parentCommit", head.oid) != head.oid:
            return self.answer(412, {"error": "the branch has moved on"})
        files = dict(head.files)
        for line in lines[1:]:
            value = line["value"]
            if value["path"] == self.hub.loses:
                return self.answer(400, {"error": "something is wrong with this file"})
            if line["key"] == "deletedFile":
                del files[value["path"]]
            elif line["key"] == "lfsFile":
                files[value["path"]] = self.hub.uploads[value["oid"]]
            else:
                files[value["path"]] = base64.b64decode(value["content"])
        oid = self.hub.commit(repo, files, header["summary"])
        url = f"{self.hub.url}/datasets/{repo}/commit/{oid}"
        return self.answer(200, {"success": True, "commitOid": oid, "commitUrl": url})

    def refs(self, body: bytes, repo: str) -> None:
        tags = self.hub.tags.get(repo, {}).items()
        found = [{"name": n, "ref": f"refs/tags/{n}", "targetCommit": oid} for n, oid in tags]
        self.answer(200, {"branches": [], "converts": [], "tags": found})

    def tag(self, body: bytes, repo: str, revision: str) -> None:
        commit = self.hub.find(repo, revision)
        assert commit is not None
        self.hub.tags.setdefault(repo, {})[json.loads(body)["tag"]] = commit.oid
        self.answer(200)

    def valid(self, body: bytes) -> None:
        self.answer(200, {"errors": [], "warnings": []})


def _mode(path: str) -> str:
    return "lfs" if path.endswith(".parquet") else "regular"


def _entry(path: str, content: bytes) -> dict[str, Any]:
    blob = hashlib.sha1(b"blob %d\0%s" % (len(content), content)).hexdigest()
    entry: dict[str, Any] = {"type": "file", "path": path, "size": len(content), "oid": blob}
    if _mode(path) == "lfs":
        oid = hashlib.sha256(content).hexdigest()
        entry["lfs"] = {"oid": oid, "size": len(content), "pointerSize": 130}
    return entry


_REPO = "(?P<repo>[^/]+/[^/]+)"
_REVISION = "(?P<revision>[^/]+)"
_ROUTES = [
    (rf"GET /api/datasets/{_REPO}", _Handler.info),
    (rf"GET /api/datasets/{_REPO}/revision/{_REVISION}", _Handler.info),
    (rf"GET /api/datasets/{_REPO}/tree/{_REVISION}", _Handler.tree),
    (rf"(GET|HEAD) /datasets/{_REPO}/resolve/{_REVISION}/(?P<file>.+)", _Handler.resolve),
    (rf"POST /api/datasets/{_REPO}/preupload/{_REVISION}", _Handler.preupload),
    (rf"POST /datasets/{_REPO}.git/info/lfs/objects/batch", _Handler.batch),
    (r"PUT /lfs/(?P<oid>[0-9a-f]+)", _Handler.upload),
    (rf"POST /api/datasets/{_REPO}/commit/{_REVISION}", _Handler.receive),
    (rf"GET /api/datasets/{_REPO}/refs", _Handler.refs),
    (rf"POST /api/datasets/{_REPO}/tag/{_REVISION}", _Handler.tag),
    (r"POST /api/validate-yaml", _Handler.valid),
]


@contextlib.contextmanager
def serving() -> Iterator[Hub]:
    """A hub on a port of this machine."""
    hub = Hub()
    handler = type("Handler", (_Handler,), {"hub": hub})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        hub.url = f"http://127.0.0.1:{server.server_port}"
        try:
            yield hub
        finally:
            server.shutdown()
            thread.join()


def send_client_to(hub: Hub, cache: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the hub's client in this process, and in those it starts, talk to the stand-in."""
    from huggingface_hub import constants

    settings = {"HF_ENDPOINT": hub.url, "HF_HUB_CACHE": cache, "HF_HUB_DISABLE_XET": "1"}
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HF_TOKEN", "hf_stand_in")
    monkeypatch.setattr(constants, "ENDPOINT", hub.url)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", cache)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr(
        constants,
        "HUGGINGFACE_CO_URL_TEMPLATE",
        hub.url + "/{repo_id}/resolve/{revision}/{filename}",
    )
