"""What a failed call raises."""

from __future__ import annotations

import json
from typing import Any, Mapping, Optional


class CallError(Exception):
    """A call failed: the service refused it, or was not reached (`code` is "unavailable")."""

    #: One of gRPC's codes in lower case, such as "not_found".
    code: str
    #: For a person.
    message: str
    #: A stable word for programs, as docs/errors.md lists them; None when the service did not answer.
    reason: Optional[str]
    #: The field at fault, when it is one.
    field: Optional[str]
    #: Seconds after which a repetition can help; None when it does not.
    retry_after: Optional[float]
    #: The id of the request's line in the log of the service.
    request_id: Optional[str]

    def __init__(
        self,
        code: str,
        message: str,
        *,
        reason: Optional[str] = None,
        field: Optional[str] = None,
        retry_after: Optional[float] = None,
        request_id: Optional[str] = None,
    ) -> None:
        super().__init__(f"{message} ({reason or code})")
        self.code = code
        self.message = message
        self.reason = reason
        self.field = field
        self.retry_after = retry_after
        self.request_id = request_id

    @property
    def is_lost(self) -> bool:
        """Whether the service was away, so that what it did of the call is not known."""
        return self.code in ("unavailable", "aborted")


#: Codes of replies that come from something other than the service, such as a proxy.
_CODES = {401: "unauthenticated", 403: "permission_denied", 404: "unimplemented", 429: "resource_exhausted"}


def error_from_reply(status: int, headers: Mapping[str, str], body: bytes) -> CallError:
    """Reads the reply to a call that failed."""
    try:
        reply = json.loads(body)
        if not isinstance(reply["code"], str):
            raise TypeError("code")
    except (ValueError, KeyError, TypeError):
        code = _CODES.get(status, "unavailable" if status in (502, 503, 504) else "unknown")
        return CallError(code, f"HTTP status {status}", retry_after=_seconds(headers.get("retry-after")))
    return error_from_json(reply, _seconds(headers.get("retry-after")))


def error_from_json(reply: Mapping[str, Any], retry_after: Optional[float] = None) -> CallError:
    """Reads an error as Connect writes it, with the details that the service adds."""
    try:
        details = {each["type"]: each.get("debug") or {} for each in reply.get("details") or []}
        violations = details.get("google.rpc.BadRequest", {}).get("fieldViolations") or [{}]
        field = violations[0].get("field")
        delay = details.get("google.rpc.RetryInfo", {}).get("retryDelay")
        retry_after = retry_after if delay is None else float(delay.rstrip("s"))
        reason = details.get("google.rpc.ErrorInfo", {}).get("reason")
        request_id = details.get("google.rpc.RequestInfo", {}).get("requestId")
    except (ValueError, KeyError, TypeError, AttributeError):
        # Something other than the service made the details.
        field = reason = request_id = None
    return CallError(
        str(reply.get("code", "unknown")),
        str(reply.get("message", "")),
        reason=reason,
        field=field,
        retry_after=retry_after,
        request_id=request_id,
    )


def _seconds(text: Optional[str]) -> Optional[float]:
    # It can also be a date, which no service that matters here sends.
    return float(text) if text is not None and text.isdigit() else None
