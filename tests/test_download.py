"""The downloader against a real HTTP server on this machine: whole, interrupted, resumed, wrong, missing."""

import hashlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from poem.errors import DownloadError
from poem.files.downloads import download

CONTENT = np.random.default_rng(0).bytes(300_000)
SHA = hashlib.sha256(CONTENT).hexdigest()


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_GET(self):
        server = self.server
        server.ranges.append(self.headers.get("Range"))
        if self.path == "/missing":
            self.send_error(404, "Not Found")
            return
        first = 0
        asked = self.headers.get("Range")
        if asked and self.path != "/without-ranges":
            first = int(asked.removeprefix("bytes=").removesuffix("-"))
            if first >= len(CONTENT):
                self.send_error(416, "Range Not Satisfiable")
                return
        body = CONTENT[first:]
        self.send_response(206 if first else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        cut = server.cuts.pop(0) if self.path == "/cut" and server.cuts else len(body)
        self.wfile.write(body[:cut])  # a cut answer ends here, and so does its connection


@pytest.fixture
def server():
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        running.ranges, running.cuts = [], []
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def address(server, path):
    return f"http://127.0.0.1:{server.server_port}{path}"


def test_a_whole_file_arrives(server, tmp_path):
    target = download(address(server, "/file"), tmp_path / "deep" / "file", sha256=SHA)
    assert target.read_bytes() == CONTENT
    assert [path.name for path in target.parent.iterdir()] == ["file"]


def test_a_cut_connection_is_taken_up_again_where_it_broke(server, tmp_path):
    server.cuts = [100_000, 50_000]
    target = download(address(server, "/cut"), tmp_path / "file", sha256=SHA)
    assert target.read_bytes() == CONTENT
    assert server.ranges == [None, "bytes=100000-", "bytes=150000-"]


def test_a_later_call_resumes_what_an_earlier_one_left(server, tmp_path):
    server.cuts = [10_000, 10_000, 10_000]
    with pytest.raises(DownloadError, match="resumes where it stopped"):
        download(address(server, "/cut"), tmp_path / "file", sha256=SHA)
    assert not (tmp_path / "file").exists()
    assert (tmp_path / "file.part").stat().st_size == 30_000
    assert download(address(server, "/cut"), tmp_path / "file", sha256=SHA).read_bytes() == CONTENT
    assert server.ranges[-1] == "bytes=30000-"


def test_a_server_without_ranges_sends_all_of_it_again(server, tmp_path):
    (tmp_path / "file.part").write_bytes(b"what was there")
    assert download(address(server, "/without-ranges"), tmp_path / "file", sha256=SHA).read_bytes() == CONTENT


def test_a_part_longer_than_the_file_is_thrown_away(server, tmp_path):
    (tmp_path / "file.part").write_bytes(b"x" * 400_000)
    assert download(address(server, "/file"), tmp_path / "file", sha256=SHA).read_bytes() == CONTENT


def test_a_wrong_checksum_leaves_nothing_behind(server, tmp_path):
    with pytest.raises(DownloadError, match=f"has the checksum {SHA}, not {'0' * 64}.*deleted"):
        download(address(server, "/file"), tmp_path / "file", sha256="0" * 64)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_file_says_so(server, tmp_path):
    with pytest.raises(DownloadError, match="answered 404 Not Found"):
        download(address(server, "/missing"), tmp_path / "file")
    assert list(tmp_path.iterdir()) == []


def test_being_offline_says_what_to_do(tmp_path):
    with pytest.raises(DownloadError, match=r"could not fetch .*If you are offline, get the file by hand"):
        download("http://127.0.0.1:9/file", tmp_path / "file", timeout=1.0)


def test_progress_goes_to_stderr(server, tmp_path, capsys):
    download(address(server, "/file"), tmp_path / "file", progress=True)
    captured = capsys.readouterr()
    assert "file: 292/292 kB" in captured.err
    assert captured.out == ""
