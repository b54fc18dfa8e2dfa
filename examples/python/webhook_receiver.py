"""Receives results by webhook, verifies their signatures over the raw bytes and prints each once."""

import base64
import gzip
import hashlib
import hmac
import json
import os
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

KEY = base64.b64decode(os.environ["WEBHOOK_SECRET"].replace("whsec_", ""))
if len(KEY) < 24:  # by an empty key, as of a secret that is no base64, anybody could sign
    raise SystemExit("WEBHOOK_SECRET must be the webhook_secret of the crawler")
PORT = int(os.environ.get("PORT", "3000"))
TEST_RID = "0" * 24

seen = set()
lock = threading.Lock()


def is_genuine(headers, body):
    """Says whether one of the signatures is made with the secret over these bytes, lately."""
    sent_at = headers.get("webhook-timestamp", "")
    # An old delivery may have been recorded and sent again by somebody else.
    if not sent_at.isdigit() or abs(time.time() - int(sent_at)) > 300:
        return False
    signed = f"{headers.get('webhook-id', '')}.{sent_at}.".encode() + body
    expected = "v1," + base64.b64encode(hmac.new(KEY, signed, hashlib.sha256).digest()).decode()
    signatures = headers.get("webhook-signature", "").split(" ")
    return any(hmac.compare_digest(expected.encode(), each.encode()) for each in signatures)


def take(result, body):
    rid = result["rid"]
    # Each request has a thread of its own; the lock also keeps their lines apart.
    with lock:
        if rid == TEST_RID or rid in seen:  # a test, or seen before
            return
        seen.add(rid)
        if "webhook-event" in result:
            print(rid, result["webhook-event"], body.decode(), flush=True)
        else:
            print(rid, result["cb_status"], result["content-type"], len(body), result["url"], flush=True)


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        sent = self.rfile.read(int(self.headers.get("content-length", 0)))
        genuine = is_genuine(self.headers, sent)
        # The service waits 200 ms: answer first, work afterwards.
        self.send_response(204 if genuine else 401)
        self.send_header("content-length", "0")
        self.end_headers()
        self.wfile.flush()
        if genuine:
            self.read_results(sent)

    def read_results(self, sent):
        headers = self.headers
        body = gzip.decompress(sent) if headers.get("content-encoding") == "gzip" else sent
        if "webhook-results" in headers:
            for line in body.splitlines():
                take({"content-type": "application/json", **json.loads(line)}, line)
        elif "rid" in headers:
            take(headers, body)
        # What has neither is a probe.

    def log_message(self, *_):
        """Keeps the output to what was received."""


ThreadingHTTPServer(("127.0.0.1", PORT), Receiver).serve_forever()
