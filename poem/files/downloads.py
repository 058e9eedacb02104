"""Fetch a file whole or not at all, and go on where an earlier try stopped."""

import hashlib
import http.client
import urllib.error
import urllib.request
from pathlib import Path

from poem.errors import DownloadError
from poem.progress import Progress

CHUNK = 1 << 16
TRIES = 3


def download(
    url: str, target: Path, *, sha256: str | None = None, progress: bool = False, timeout: float = 30.0
) -> Path:
    """Fetch ``url`` into ``target``.

    What has arrived is kept in ``target.part``, so that the next call resumes; ``target`` itself
    appears only when the file is whole and its checksum, if one is known, is right.
    """
    part = target.with_name(target.name + ".part")
    target.parent.mkdir(parents=True, exist_ok=True)
    for attempt in range(1, TRIES + 1):
        try:
            _fetch(url, part, progress, timeout)
            break
        except urllib.error.HTTPError as error:
            part.unlink(missing_ok=True)
            raise DownloadError(
                f"{url} answered {error.code} {error.reason}. Check the address, or get the file by hand."
            ) from error
        except (urllib.error.URLError, http.client.HTTPException, OSError) as error:
            if attempt == TRIES:
                raise DownloadError(
                    f"could not fetch {url}: {getattr(error, 'reason', None) or error}. If you are offline, get the "
                    f"file by hand and put it into {target.parent}; else call again, and it resumes where it stopped."
                ) from error
    _check_sum(part, url, sha256)
    return part.replace(target)


def _fetch(url: str, part: Path, progress: bool, timeout: float) -> None:
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        response = urllib.request.urlopen(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        if error.code != 416 or not have:
            raise
        part.unlink()  # more than the whole file: what is there is of another one
        return _fetch(url, part, progress, timeout)
    with response:
        resumed = response.status == 206
        length = int(response.headers.get("Content-Length", 0))
        total = length + (have if resumed else 0)
        with part.open("ab" if resumed else "wb") as file, Progress(part.stem, total // 1024, progress, "kB") as line:
            while chunk := response.read(CHUNK):
                file.write(chunk)
                line.reached(file.tell() // 1024)
    if length and part.stat().st_size != total:
        raise http.client.IncompleteRead(b"", total - part.stat().st_size)
    return None


def _check_sum(part: Path, url: str, expected: str | None) -> None:
    if expected is None:
        return
    with part.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != expected:
        part.unlink()
        raise DownloadError(
            f"{url} has the checksum {found}, not {expected}: the file was changed or damaged. "
            "It was deleted; call again, or get the file by hand."
        )
