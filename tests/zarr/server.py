"""A local HTTP server with byte ranges that counts what is asked of it."""

from __future__ import annotations

import http.server
import os
import re
import threading
from contextlib import contextmanager
from functools import partial


class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_HEAD(self):
        self.server.requests.append(("HEAD", self.path, None))
        super().do_HEAD()

    def do_GET(self):
        wanted = self.headers.get("Range")
        self.server.requests.append(("GET", self.path, wanted))
        path = self.translate_path(self.path)
        if wanted is None or not os.path.isfile(path) or not self.server.ranges:
            super().do_GET()
            return
        size = os.path.getsize(path)
        first, last = (int(n) for n in re.fullmatch(r"bytes=(\d+)-(\d+)", wanted).groups())
        last = min(last, size - 1)
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {first}-{last}/{size}")
        self.send_header("Content-Length", str(last - first + 1))
        self.end_headers()
        with open(path, "rb") as file:
            file.seek(first)
            self.wfile.write(file.read(last - first + 1))


@contextmanager
def serve(folder, ranges=True):
    """(the URL of a folder, the list of requests)."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder)))
    server.daemon_threads = True
    server.requests, server.ranges = [], ranges
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", server.requests
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
