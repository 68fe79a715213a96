"""A published file of a server → a local one: pinned, verified, and fetched only once.

A URL must say which bytes it means, by the commit of a Hugging Face data set
(``hf://datasets/OWNER/NAME@COMMIT/FILE``) or by their digest (``…#sha256=HEX``, which any URL may
carry): what is published may change, and a benchmark must not change with it unnoticed.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import shutil
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urldefrag

from httpx2 import HTTPError
from huggingface_hub import HfApi, HfUri, parse_hf_uri
from huggingface_hub.errors import HfUriError, LocalEntryNotFoundError

from atenbench.atomic import replacing
from atenbench.errors import UserError

logger = logging.getLogger(__name__)

_COMMIT = re.compile(r"[0-9a-f]{40}")
_DIGEST = re.compile(r"sha256=([0-9a-f]{64})")
_SECONDS_WITHOUT_DATA = 60.0


def fetch(url: str, output: Path, record: Path) -> None:
    """Fetch the file of a URL to ``output``, and write down where it comes from to ``record``.

    The record is a JSON object: ``url``, ``commit`` (null unless from the Hugging Face hub),
    ``sha256``, ``bytes``.

    Raises:
        UserError: the URL is malformed or not pinned, the server does not give the file, or its
            digest is not the one in the URL.
    """
    logging.getLogger("httpx2").setLevel(logging.WARNING)  # not every request to the terminal
    plain, wanted = _split(url)
    with replacing(output) as part:
        if plain.startswith("hf://"):
            commit = _from_hub(plain, wanted, part)
        else:
            commit = None
            _from_server(plain, part)
        digest = sha256(part)
        if wanted is None and commit is None:
            raise UserError(
                f"{url}: not pinned, so that its content could change unnoticed; "
                f"write {plain}#sha256={digest} for the content it has today"
            )
        if wanted is not None and digest != wanted:
            raise UserError(f"{url}: the file there has the SHA-256 {digest}, not the one named")
        size = part.stat().st_size
    facts = {"url": url, "commit": commit, "sha256": digest, "bytes": size}
    with replacing(record) as part:
        part.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    logger.info("%s: %s bytes, SHA-256 %s", url, f"{size:,}", digest)


def sha256(path: Path) -> str:
    """The SHA-256 of a file's content, in hex."""
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _split(url: str) -> tuple[str, str | None]:
    """A URL without its fragment, and the digest that the fragment names."""
    plain, fragment = urldefrag(url)
    match = _DIGEST.fullmatch(fragment)
    if fragment and not match:
        raise UserError(f"{url}: behind # must stand sha256= and 64 hexadecimal digits")
    return plain, match[1] if match else None


def _from_hub(url: str, digest: str | None, part: Path) -> str:
    """Copy a file of a hub data set out of the hub's own cache; the commit that it is of."""
    uri = _hub_uri(url)
    try:
        commit = uri.revision
        if commit is None or not _COMMIT.fullmatch(commit):
            found = HfApi().dataset_info(uri.id, revision=uri.revision).sha
            if digest is None:
                raise UserError(
                    f"{url}: not pinned, so that its content could change unnoticed; write "
                    f"hf://datasets/{uri.id}@{found}/{uri.path_in_repo} for what it is today"
                )
            assert found is not None
            commit = found
        cached = HfApi().hf_hub_download(
            uri.id, uri.path_in_repo, repo_type="dataset", revision=commit
        )
    except (HTTPError, LocalEntryNotFoundError) as error:
        words = " ".join(str(error).split())
        raise UserError(f"{url}: {words[:500] or type(error).__name__}") from None
    shutil.copyfile(cached, part)
    return commit


def _hub_uri(url: str) -> HfUri:
    try:
        uri = parse_hf_uri(url)
    except HfUriError as error:
        raise UserError(f"{url}: {error}") from None
    if uri.type != "dataset" or not uri.path_in_repo:
        raise UserError(f"{url}: must be hf://datasets/OWNER/NAME@COMMIT/FILE")
    return uri


def _from_server(url: str, part: Path) -> None:
    try:
        with (
            urllib.request.urlopen(url, timeout=_SECONDS_WITHOUT_DATA) as answer,
            part.open("wb") as file,
        ):
            shutil.copyfileobj(answer, file)
    except (urllib.error.URLError, TimeoutError) as error:
        raise UserError(f"{url}: {error}") from None
