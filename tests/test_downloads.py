"""Files of a server: only what is pinned, verified, fetched once."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from atenbench.downloads import fetch
from atenbench.errors import UserError
from hub import Hub, send_client_to, serving

CONTENT = b"what a server holds"
DIGEST = hashlib.sha256(CONTENT).hexdigest()
REPO = "owner/set"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    with serving() as hub:
        send_client_to(hub, str(tmp_path / "cache"), monkeypatch)
        yield hub


def get(url: str, folder: Path) -> dict[str, object]:
    fetch(url, folder / "p.parquet", folder / "p.source")
    assert (folder / "p.parquet").read_bytes() == CONTENT
    record = json.loads((folder / "p.source").read_text())
    assert record["url"] == url
    assert record["sha256"] == DIGEST
    assert record["bytes"] == len(CONTENT)
    return dict(record)


def fetched(hub: Hub) -> list[str]:
    return [line for line in hub.requests if line.startswith("GET /datasets/")]


def test_a_commit_of_the_hub_pins_a_file_and_it_is_fetched_once(hub: Hub, tmp_path: Path) -> None:
    commit = hub.commit(REPO, {"data/p.parquet": CONTENT})
    hub.commit(REPO, {"data/p.parquet": b"something newer"})
    url = f"hf://datasets/{REPO}@{commit}/data/p.parquet"
    assert get(url, tmp_path)["commit"] == commit
    asked = fetched(hub)
    assert asked == [f"GET /datasets/{REPO}/resolve/{commit}/data/p.parquet"]
    get(url, tmp_path)
    assert fetched(hub) == asked


def test_a_digest_pins_a_file_of_a_branch_or_of_any_server(hub: Hub, tmp_path: Path) -> None:
    commit = hub.commit(REPO, {"p.parquet": CONTENT})
    got = get(f"hf://datasets/{REPO}@main/p.parquet#sha256={DIGEST}", tmp_path)
    assert got["commit"] == commit
    plain = f"{hub.url}/datasets/{REPO}/resolve/main/p.parquet#sha256={DIGEST}"
    assert get(plain, tmp_path)["commit"] is None


def test_what_is_not_pinned_is_refused_with_the_pin_to_write(hub: Hub, tmp_path: Path) -> None:
    commit = hub.commit(REPO, {"p.parquet": CONTENT})
    with pytest.raises(UserError, match=f"not pinned.*hf://datasets/{REPO}@{commit}/p.parquet"):
        get(f"hf://datasets/{REPO}/p.parquet", tmp_path)
    plain = f"{hub.url}/datasets/{REPO}/resolve/main/p.parquet"
    with pytest.raises(UserError, match=f"not pinned.*{plain}#sha256={DIGEST}"):
        get(plain, tmp_path)
    assert not list(tmp_path.glob("*p.parquet*"))


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("hf://datasets/owner/set@main/p.parquet#sha256=" + "0" * 64, "not the one named"),
        ("hf://datasets/owner/set@main/p.parquet#md5=0", "sha256= and 64 hex"),
        ("hf://datasets/owner/set@" + "0" * 40 + "/p.parquet", "404"),
        ("hf://datasets/owner/none@" + "0" * 40 + "/p.parquet", "40[14]"),
        ("hf://datasets/owner/set@gone/p.parquet", "404"),
        ("hf://owner/set/p.parquet", "must be hf://datasets/"),
        ("hf://datasets/owner", "[Ii]nvalid"),
        ("http://127.0.0.1:9/p.parquet", "refused"),
    ],
)
def test_faults_name_the_url(hub: Hub, tmp_path: Path, url: str, message: str) -> None:
    hub.commit(REPO, {"p.parquet": CONTENT})
    with pytest.raises(UserError, match=message) as caught:
        fetch(url, tmp_path / "p.parquet", tmp_path / "p.source")
    assert str(caught.value).startswith(url.partition("#")[0])
    assert not (tmp_path / "p.parquet").exists()
