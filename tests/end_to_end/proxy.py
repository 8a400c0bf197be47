"""A proxy in front of the sandbox, in this process: a function changes each answer on its way."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx

from tests.sandbox.running import Running

Change = Callable[[httpx.Request, httpx.Response], httpx.Response]
FORWARDED = ("authorization", "x-api-key", "content-type")


@contextmanager
def changed_answers(sandbox: Running, change: Change) -> Iterator[Running]:
    """Yield the sandbox as its clients see it through the proxy."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def forward(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            headers = {name: self.headers[name] for name in FORWARDED if name in self.headers}
            request = client.build_request(self.command, self.path, headers=headers, content=body)
            answer = change(request, client.send(request))
            self.send_response_only(answer.status_code)
            for name, value in answer.headers.raw:
                if name.lower() != b"content-length":
                    self.send_header(name.decode(), value.decode("latin-1"))
            self.send_header("content-length", str(len(answer.content)))
            self.end_headers()
            self.wfile.write(answer.content)

        do_GET = do_POST = forward  # noqa: N815 - the names that the server calls

    with sandbox.client() as client, ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield replace(sandbox, url=f"http://127.0.0.1:{server.server_port}")
        server.shutdown()
        thread.join()
