"""What goes in and comes out."""

from __future__ import annotations

import base64
import gzip
from dataclasses import dataclass, field
from typing import Any, Dict, Mapping, Optional, TypedDict, Union


class _ItemUrl(TypedDict):
    url: str


class PushItem(_ItemUrl, total=False):
    """A URL with what belongs to it; docs/parameters.md lists the parameters."""

    parameters: Dict[str, Any]
    callback_headers: str
    queue_timeout: int
    method: str
    #: Sent to the target, with POST and PUT.
    body: bytes
    post_content_type: str
    #: A JSON text that comes back with the result.
    metadata: str
    #: When the URL may be crawled at the earliest, ISO 8601.
    not_before: str
    #: The same as seconds from now.
    delay: int
    #: 0 to 9, 5 when absent.
    priority: int
    #: Accept the URL once.
    unique: bool
    #: What makes it the same; default the URL in a normal form.
    unique_key: str
    #: Seconds for which the key holds; 0 while the URL waits or is crawled.
    unique_for: int
    #: The batch that the URL belongs to.
    batch: str


#: A URL, or a URL with its parameters.
UrlToPush = Union[str, PushItem]


@dataclass(frozen=True)
class PushError:
    """Why one URL was refused."""

    #: A stable word for programs, as docs/errors.md lists them.
    code: str
    message: str
    field: Optional[str] = None
    #: Seconds after which a repetition can help; 0 when it does not.
    retry_after: float = 0.0


@dataclass(frozen=True)
class Pushed:
    """What became of one URL: `rid`, or `error`."""

    #: Its place in the source, from 0.
    index: int
    item: UrlToPush
    rid: Optional[str] = None
    error: Optional[PushError] = None
    #: Whether `rid` is that of an earlier push with the same `unique_key`, and nothing was queued.
    duplicate: bool = False


@dataclass(frozen=True)
class CrawledPage:
    """The result of a crawl."""

    url: str
    pushed_url: str
    #: The status given by the service; 200 when the crawl ended well.
    cb_status: int
    #: The status of the target, 0 when it gave none.
    original_status: int
    #: The bytes of the page: UTF-8 when it is text.
    body: bytes
    content_type: str
    rid: Optional[str] = None
    #: Why the crawl failed, such as "timeout".
    failure: Optional[str] = None
    screenshot_url: Optional[str] = None
    original_headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The page as text."""
        return self.body.decode("utf-8", "replace")


@dataclass(frozen=True)
class StoredPage(CrawledPage):
    """A result in storage."""

    rid: str = ""
    #: ISO 8601.
    stored_at: str = ""
    #: In `every_result`: continues behind this result.
    resume_token: str = ""
    #: The `metadata` of the push, a JSON text.
    metadata: Optional[str] = None
    #: The batch of the push.
    batch: Optional[str] = None


def item_to_json(item: UrlToPush) -> Dict[str, Any]:
    """A URL to push as the service reads it."""
    if isinstance(item, str):
        return {"url": item}
    plain: Dict[str, Any] = dict(item)
    if "body" in item:
        plain["body"] = base64.b64encode(item["body"]).decode()
    if "parameters" in item:
        plain["parameters"] = parameters_to_json(item["parameters"])
    return plain


#: Words of REST, and the names that the messages have for them.
_ENUMS = {"format": "FORMAT", "device": "DEVICE", "mode": "SCREENSHOT_MODE"}


def parameters_to_json(parameters: Mapping[str, Any]) -> Dict[str, Any]:
    """Crawl parameters in the words of docs/parameters.md as the service reads them."""
    return {
        name: f"{_ENUMS[name]}_{value.upper()}" if name in _ENUMS and isinstance(value, str) else value
        for name, value in parameters.items()
    }


def crawled_page(reply: Mapping[str, Any]) -> CrawledPage:
    """The reply of Crawl."""
    return CrawledPage(**_common(reply), body=_bytes(reply), rid=reply.get("rid"))


def stored_page(reply: Mapping[str, Any], resume_token: str = "") -> StoredPage:
    """A message StoredResult; its page is compressed."""
    packed = _bytes(reply)
    return StoredPage(
        **_common(reply),
        body=gzip.decompress(packed) if packed else b"",
        rid=reply["rid"],
        stored_at=reply.get("storedAt", ""),
        resume_token=resume_token,
        metadata=reply.get("metadata"),
        batch=reply.get("batch"),
    )


def _bytes(reply: Mapping[str, Any]) -> bytes:
    return base64.b64decode(reply.get("body", ""))


def _common(reply: Mapping[str, Any]) -> Dict[str, Any]:
    return {
        "url": reply.get("url", ""),
        "pushed_url": reply.get("pushedUrl", ""),
        "cb_status": reply.get("cbStatus", 0),
        "original_status": reply.get("originalStatus", 0),
        "content_type": reply.get("contentType", ""),
        "failure": reply.get("failure"),
        "screenshot_url": reply.get("screenshotUrl"),
        "original_headers": reply.get("originalHeaders", {}),
    }
