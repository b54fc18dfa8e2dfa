"""Verifies and reads what a webhook crawler delivers."""

from __future__ import annotations

import base64
import gzip
import hashlib
import hmac
import json
import time
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional


#: The least of Standard Webhooks.
MIN_KEY_BYTES = 24


class WebhookError(Exception):
    """A request is not a genuine delivery of this secret: answer it with 401."""


def verify_webhook(
    headers: Mapping[str, str],
    body: bytes,
    secret: str,
    *,
    tolerance: float = 300.0,
    now: Optional[float] = None,
) -> None:
    """
    Raises WebhookError unless one of the signatures is made with `secret` over these bytes, at most
    `tolerance` seconds ago. `body` is as it was received, before any decoding. Header names may have
    any case. Raises ValueError when `secret` is not base64 of at least 24 bytes.
    """
    key = _key(secret)
    given = _lower(headers)
    sent_at = given.get("webhook-timestamp", "")
    if not (sent_at.isascii() and sent_at.isdigit() and len(sent_at) <= 12):
        raise WebhookError("webhook-timestamp is missing or no number")
    # An old delivery may have been recorded and sent again by somebody else.
    if abs((time.time() if now is None else now) - int(sent_at)) > tolerance:
        raise WebhookError("webhook-timestamp is too old or too new")
    signed = f"{given.get('webhook-id', '')}.{sent_at}.".encode() + body
    expected = b"v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest())
    signatures = given.get("webhook-signature", "").split(" ")
    if not any(hmac.compare_digest(expected, each.encode()) for each in signatures):
        raise WebhookError("no signature fits")


def _key(secret: str) -> bytes:
    encoded = secret[len("whsec_") :] if secret.startswith("whsec_") else secret
    try:
        key = base64.b64decode(encoded, validate=True)
    except ValueError as error:
        raise ValueError("the secret is not base64") from error
    if len(key) < MIN_KEY_BYTES:
        raise ValueError(f"the secret has fewer than {MIN_KEY_BYTES} bytes")
    return key


#: No crawl has it.
_TEST_RID = "0" * 24
#: The number of results in a request that has several.
_RESULTS = "webhook-results"


@dataclass(frozen=True)
class Delivery:
    """A result, an event or a probe in a verified request of the service."""

    #: A probe of monitoring has no result: answer it with 204 and do nothing.
    is_probe: bool
    #: A test delivery has a made-up page: answer it with 204 and do not keep it.
    is_test: bool
    #: The same for every attempt: drop what was seen before. Of an event it is the id of the batch.
    rid: str
    url: str
    cb_status: int
    original_status: int
    #: "application/json" when the result came together with others.
    content_type: str
    failure: Optional[str]
    #: Decompressed. A result that came together with others has its JSON envelope as the body.
    body: bytes
    #: The `metadata` of the push, a JSON text; None when it had none.
    metadata: Optional[str] = None
    #: "batch.completed" when this is an event and no result; then `body` is JSON.
    event: Optional[str] = None


def receive_deliveries(
    headers: Mapping[str, str], body: bytes, secret: str, *, tolerance: float = 300.0
) -> List[Delivery]:
    """
    Verifies a request as `verify_webhook` does, and reads its results. They are several with
    `deliver_batch`; otherwise the list has one item.
    """
    verify_webhook(headers, body, secret, tolerance=tolerance)
    given = _lower(headers)
    content = gzip.decompress(body) if given.get("content-encoding") == "gzip" else body
    if _RESULTS not in given:
        return [_delivery(given, content, given.get("content-type", ""))]
    lines = content.rstrip(b"\n").split(b"\n")
    return [_delivery(json.loads(line), line, "application/json") for line in lines]


def receive_delivery(
    headers: Mapping[str, str], body: bytes, secret: str, *, tolerance: float = 300.0
) -> Delivery:
    """
    Reads a request of a crawler without `deliver_batch` as `receive_deliveries` does. Raises
    ValueError for a request with several results.
    """
    if _RESULTS in _lower(headers):
        verify_webhook(headers, body, secret, tolerance=tolerance)
        raise ValueError("the crawler has deliver_batch: read its requests by receive_deliveries")
    return receive_deliveries(headers, body, secret, tolerance=tolerance)[0]


def _delivery(fields: Mapping[str, Any], body: bytes, content_type: str) -> Delivery:
    """Reads the fields of a result, from headers or from its JSON envelope."""
    rid = fields.get("rid", "")
    return Delivery(
        is_probe=rid == "",
        is_test=rid == _TEST_RID,
        rid=rid,
        url=fields.get("url", ""),
        cb_status=_number(fields.get("cb_status")),
        original_status=_number(fields.get("original_status")),
        content_type=content_type,
        failure=fields.get("failure"),
        body=body,
        metadata=fields.get("metadata"),
        event=fields.get("webhook-event"),
    )


def _lower(headers: Mapping[str, str]) -> Dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _number(value: Any) -> int:
    return int(value) if str(value).isdigit() else 0
