"""Receives results by webhook, verifies them, and prints each once."""

import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Set

from queued_crawler import WebhookError, receive_deliveries

SECRET = os.environ["WEBHOOK_SECRET"]
seen: Set[str] = set()
lock = threading.Lock()


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        try:
            deliveries = receive_deliveries(dict(self.headers.items()), body, SECRET)
        except WebhookError:
            return self.answer(401)
        # The service waits 200 ms: answer first, work afterwards.
        self.answer(204)
        with lock:
            for delivery in deliveries:
                if delivery.is_probe or delivery.is_test or delivery.rid in seen:
                    continue
                seen.add(delivery.rid)
                if delivery.event is not None:
                    print(delivery.event, delivery.body.decode(), flush=True)
                    continue
                print(delivery.rid, delivery.cb_status, len(delivery.body), delivery.url, flush=True)

    def answer(self, status: int) -> None:
        self.send_response(status)
        self.send_header("content-length", "0")
        self.end_headers()
        self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:
        """Keeps the output to what was received."""


ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "3000"))), Receiver).serve_forever()
