"""What the helpers of webhooks make of requests that are signed here."""

import base64
import gzip
import hashlib
import hmac
import json
import time
from typing import Dict

from queued_crawler import WebhookError, receive_deliveries, receive_delivery

KEY = b"0123456789abcdef01234567"
SECRET = "whsec_" + base64.b64encode(KEY).decode()
RID = "0123456789abcdef01234567"


def signed(body: bytes, key: bytes = KEY, **headers: str) -> Dict[str, str]:
    sent_at = str(int(time.time()))
    digest = hmac.new(key, f"id.{sent_at}.".encode() + body, hashlib.sha256).digest()
    own = {
        "Webhook-Id": "id",
        "Webhook-Timestamp": sent_at,
        "Webhook-Signature": "v1," + base64.b64encode(digest).decode(),
    }
    return {**own, **{name.replace("_", "-"): value for name, value in headers.items()}}


def together() -> None:
    lines = [
        {"callback_headers": {"order": "1"}, "cb_status": 200, "original_status": 200, "rid": "a", "url": "http://a/"},
        {"cb_status": 602, "rid": "b", "url": "http://b/", "failure": "timeout", "metadata": '{"n":2}', "body": "é\u2028"},
    ]
    body = gzip.compress("".join(json.dumps(each, ensure_ascii=False) + "\n" for each in lines).encode())
    headers = signed(body, Content_Encoding="gzip", Content_Type="application/x-ndjson", Webhook_Results="2")
    first, second = receive_deliveries(headers, body, SECRET)
    assert (first.rid, first.cb_status, first.original_status, first.url) == ("a", 200, 200, "http://a/")
    assert not first.is_probe and not first.is_test and first.event is None and first.metadata is None
    assert (second.rid, second.cb_status, second.failure, second.metadata) == ("b", 602, "timeout", '{"n":2}')
    assert second.content_type == "application/json" and json.loads(second.body) == lines[1]
    try:
        receive_delivery(headers, body, SECRET)
    except ValueError as error:
        assert "receive_deliveries" in str(error)
    else:
        raise AssertionError("several results were read as one")
    for receive in (receive_delivery, receive_deliveries):
        try:
            receive({**headers, "Webhook-Signature": "v1,forged"}, body, SECRET)
        except WebhookError:
            continue
        raise AssertionError("a forged request was read")


def alone() -> None:
    headers = {**signed(b"page"), "rid": RID, "cb_status": "200", "metadata": '{"n":1}', "Content-Type": "text/plain"}
    result = receive_delivery(headers, b"page", SECRET)
    assert (result.rid, result.cb_status, result.metadata, result.body) == (RID, 200, '{"n":1}', b"page")
    assert not result.is_probe and result.event is None
    assert receive_deliveries(headers, b"page", SECRET) == [result]

    body = b'{"type": "batch.completed"}'
    event = receive_delivery({**signed(body, Webhook_Event="batch.completed"), "rid": RID}, body, SECRET)
    assert event.event == "batch.completed" and event.rid == RID and not event.is_probe

    [probe] = receive_deliveries(signed(b'{"monitor": true}'), b'{"monitor": true}', SECRET)
    assert probe.is_probe and not probe.is_test and probe.event is None


def secrets() -> None:
    # A receiver whose secret is missing must not take what anybody signs with the empty key.
    for secret in ("", "whsec_", "whsec_***", "whsec_" + base64.b64encode(KEY[:23]).decode(), SECRET + "*"):
        key = KEY[:23] if len(secret) > len("whsec_***") else b""
        try:
            receive_deliveries(signed(b"forged", key), b"forged", secret)
        except ValueError:
            continue
        raise AssertionError(f"the secret {secret!r} was used")
    receive_deliveries(signed(b"genuine"), b"genuine", SECRET[len("whsec_") :])


together()
alone()
secrets()
print("webhook: ok")
