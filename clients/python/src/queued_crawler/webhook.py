"""Verifies and reads what a webhook crawler delivers."""

from __future__ import annotations

import base64
import binascii
import gzip
import hashlib
import hmac
import time
from dataclasses import dataclass
from typing import Mapping, Optional


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
    any case.
    """
    given = {name.lower(): value for name, value in headers.items()}
    sent_at = given.get("webhook-timestamp", "")
    if not (sent_at.isascii() and sent_at.isdigit() and len(sent_at) <= 12):
        raise WebhookError("webhook-timestamp is missing or no number")
    # An old delivery may have been recorded and sent again by somebody else.
    if abs((time.time() if now is None else now) - int(sent_at)) > tolerance:
        raise WebhookError("webhook-timestamp is too old or too new")
    try:
        key = base64.b64decode(secret[len("whsec_") :] if secret.startswith("whsec_") else secret)
    except (binascii.Error, ValueError) as error:
        raise ValueError("the secret is not base64") from error
    signed = f"{given.get('webhook-id', '')}.{sent_at}.".encode() + body
    expected = b"v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest())
    signatures = given.get("webhook-signature", "").split(" ")
    if not any(hmac.compare_digest(expected, each.encode()) for each in signatures):
        raise WebhookError("no signature fits")


#: No crawl has it.
_TEST_RID = "0" * 24


@dataclass(frozen=True)
class Delivery:
    """A verified request of the service."""

    #: A probe of monitoring has no result: answer it with 204 and do nothing.
    is_probe: bool
    #: A test delivery has a made-up page: answer it with 204 and do not keep it.
    is_test: bool
    #: The same for every attempt: drop what was seen before.
    rid: str
    url: str
    cb_status: int
    original_status: int
    content_type: str
    failure: Optional[str]
    #: Decompressed.
    body: bytes


def receive_delivery(
    headers: Mapping[str, str], body: bytes, secret: str, *, tolerance: float = 300.0
) -> Delivery:
    """Verifies a request as `verify_webhook` does, and reads it."""
    verify_webhook(headers, body, secret, tolerance=tolerance)
    given = {name.lower(): value for name, value in headers.items()}
    page = gzip.decompress(body) if given.get("content-encoding") == "gzip" else body
    rid = given.get("rid", "")
    return Delivery(
        is_probe=rid == "",
        is_test=rid == _TEST_RID,
        rid=rid,
        url=given.get("url", ""),
        cb_status=_number(given.get("cb_status")),
        original_status=_number(given.get("original_status")),
        content_type=given.get("content-type", ""),
        failure=given.get("failure"),
        body=page,
    )


def _number(text: Optional[str]) -> int:
    return int(text) if text is not None and text.isdigit() else 0
