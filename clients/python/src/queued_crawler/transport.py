"""Calls of the service: Connect's protocol with JSON, over kept connections."""

from __future__ import annotations

import http.client
import json
import queue
import random
import ssl
import struct
import threading
import time
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple
from urllib.parse import urlsplit

from .errors import CallError, error_from_json, error_from_reply

#: The service keeps unused connections for 65 s; one that is older is not trusted.
_IDLE_SECONDS = 30.0
_FIRST_DELAY = 0.2
_LONGEST_DELAY = 10.0
#: Methods that change nothing, or nothing more the second time, so that they may be repeated.
_REPEATABLE = ("Get", "List", "Find", "Count", "BulkDeleteResults")
_STREAM = "application/connect+json"
_COMPRESSED = 1
_END = 2


class Stop:
    """Ends waits and open streams of a loop, from another thread."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._closers: List[Callable[[], None]] = []

    def sleep(self, seconds: float) -> None:
        """Waits; raises a CallError when it was stopped."""
        if self._event.wait(max(seconds, 0.0)):
            raise stopped()

    @property
    def is_set(self) -> bool:
        return self._event.is_set()

    def on_stop(self, close: Callable[[], None]) -> None:
        """Has `close` called when it is stopped, at once if it has been."""
        with self._lock:
            self._closers.append(close)
        if self._event.is_set():
            close()

    def set(self) -> None:
        self._event.set()
        with self._lock:
            closers, self._closers = self._closers, []
        for close in closers:
            close()


def stopped() -> CallError:
    """What a loop raises that was ended while it waited."""
    return CallError("canceled", "the loop was ended")


class Transport:
    """Makes calls with one token. May be used by several threads at once."""

    def __init__(
        self,
        base_url: str,
        token: str,
        *,
        timeout: float,
        attempts: int,
        context: Optional[ssl.SSLContext],
    ) -> None:
        parts = urlsplit(base_url)
        if parts.scheme not in ("http", "https") or parts.hostname is None:
            raise ValueError(f"base_url must begin with http:// or https://, not {base_url!r}")
        self._is_tls = parts.scheme == "https"
        self._host = parts.hostname
        self._port = parts.port
        self._path = parts.path.rstrip("/")
        self._token = token
        self._timeout = timeout
        self._attempts = attempts
        self._context = context
        self._idle: "queue.LifoQueue[Tuple[float, http.client.HTTPConnection]]" = queue.LifoQueue()
        self._is_closed = False

    def call(
        self,
        method: str,
        request: Mapping[str, Any],
        *,
        timeout: Optional[float] = None,
        stop: Optional[Stop] = None,
    ) -> Dict[str, Any]:
        """
        Calls a method such as "CrawlerService.GetCrawler". Repeats calls that were refused for now,
        and after a lost connection those that may be repeated.
        """
        body = json.dumps(request).encode()
        is_repeatable = method.split(".")[-1].startswith(_REPEATABLE)
        may_repeat = is_repeatable or bool(request.get("request_id"))
        if method.endswith("BulkGetResults"):
            may_repeat = not request.get("auto_delete")
        attempt = 1
        while True:
            try:
                return self._once(method, body, self._timeout if timeout is None else timeout)
            except CallError as error:
                refused = error.code == "resource_exhausted" and error.retry_after is not None
                lost = error.is_lost and (may_repeat or isinstance(error.__cause__, ConnectionRefusedError))
                if attempt >= self._attempts or self._is_closed or not (refused or lost):
                    raise
                own = _FIRST_DELAY * 2 ** (attempt - 1)
                named = error.retry_after if error.retry_after is not None else own
                # Several clients that were refused at once do not come back at once.
                delay = min(named * (1 + random.random() / 4), _LONGEST_DELAY)
                if stop is None:
                    time.sleep(delay)
                else:
                    stop.sleep(delay)
                attempt += 1

    def _once(self, method: str, body: bytes, timeout: float) -> Dict[str, Any]:
        connection = self._take(timeout)
        try:
            headers = {"Content-Type": "application/json", "Connect-Timeout-Ms": str(int(timeout * 1000))}
            response = self._send(connection, method, body, headers)
            reply = response.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise _lost(error) from error
        except BaseException:
            connection.close()
            raise
        if response.will_close or self._is_closed:
            connection.close()
        else:
            self._idle.put((time.monotonic(), connection))
        if response.status != 200:
            raise error_from_reply(response.status, _headers(response), reply)
        return _object(reply)

    def stream(
        self, method: str, request: Mapping[str, Any], stop: Stop, silence: float
    ) -> Iterator[Dict[str, Any]]:
        """Yields the messages of a stream; one that is silent for `silence` seconds is lost."""
        connection = self._new(silence)
        body = json.dumps(request).encode()
        framed = struct.pack(">BI", 0, len(body)) + body
        try:
            try:
                headers = {"Content-Type": _STREAM}
                response = self._send(connection, method, framed, headers)
                socket = connection.sock
                # Another thread may be waiting in a read, which closing alone would not end.
                stop.on_stop(lambda: _shut(socket))
                if response.status != 200:
                    raise error_from_reply(response.status, _headers(response), response.read())
                if not response.getheader("content-type", "").startswith(_STREAM):
                    raise foreign_reply()
                while True:
                    flags, length = struct.unpack(">BI", _exactly(response, 5))
                    content = _exactly(response, length)
                    if flags & _COMPRESSED:
                        raise CallError("internal", "a message is compressed although none was asked for")
                    message = _object(content)
                    if flags & _END:
                        if "error" in message:
                            sent = message["error"]
                            raise error_from_json(sent if isinstance(sent, dict) else {})
                        return
                    yield message
            except (OSError, http.client.HTTPException) as error:
                raise _lost(error) from error
            except ValueError as error:
                # A TLS connection that was shut in the meantime.
                raise (stopped() if stop.is_set else error) from error
        finally:
            connection.close()

    def close(self) -> None:
        self._is_closed = True
        while True:
            try:
                self._idle.get_nowait()[1].close()
            except queue.Empty:
                return

    def _send(
        self, connection: http.client.HTTPConnection, method: str, body: bytes, headers: Mapping[str, str]
    ) -> http.client.HTTPResponse:
        path = f"{self._path}/queuedcrawler.v1.{method.replace('.', '/')}"
        own = {"Authorization": f"Bearer {self._token}", "Connect-Protocol-Version": "1"}
        connection.request("POST", path, body, {**own, **headers})
        return connection.getresponse()

    def _take(self, timeout: float) -> http.client.HTTPConnection:
        while True:
            try:
                since, connection = self._idle.get_nowait()
            except queue.Empty:
                return self._new(timeout)
            if time.monotonic() - since < _IDLE_SECONDS and connection.sock is not None:
                connection.sock.settimeout(timeout)
                return connection
            connection.close()

    def _new(self, timeout: float) -> http.client.HTTPConnection:
        if self._is_tls:
            context = self._context or ssl.create_default_context()
            return http.client.HTTPSConnection(self._host, self._port, timeout=timeout, context=context)
        return http.client.HTTPConnection(self._host, self._port, timeout=timeout)


def _exactly(response: http.client.HTTPResponse, length: int) -> bytes:
    data = response.read(length) if length > 0 else b""
    if len(data) != length:
        raise ConnectionResetError("the stream ended within a message")
    return data


def _object(text: bytes) -> Dict[str, Any]:
    try:
        parsed = json.loads(text)
    except ValueError as error:
        raise foreign_reply() from error
    if not isinstance(parsed, dict):
        raise foreign_reply()
    return parsed


def foreign_reply() -> CallError:
    """The failure of a call whose reply is not one of the service."""
    return CallError("unknown", "the reply is not one of the service; something between may have sent it")


def _headers(response: http.client.HTTPResponse) -> Dict[str, str]:
    return {name.lower(): value for name, value in response.getheaders()}


def _lost(error: Exception) -> CallError:
    if isinstance(error, ssl.SSLCertVerificationError):
        return CallError("unknown", f"the certificate of the service is not trusted: {error.verify_message}")
    return CallError("unavailable", f"the service was not reached: {error or type(error).__name__}")


def _shut(connection: Any) -> None:
    try:
        connection.shutdown(2)
    except (OSError, AttributeError):
        # It was closed already.
        pass
