"""What the client makes of faults: a server of its own answers as the service does, or does not."""

import base64
import contextlib
import gzip
import http.server
import json
import struct
import threading
import time
from typing import Any, Callable, Dict, Iterator, List, Tuple, Union

from queued_crawler import CallError, Client

#: A reply: its status and JSON, or its bytes. None closes the connection without one.
Reply = Union[None, Tuple[int, Any], bytes]
Answer = Callable[[str, Dict[str, Any]], Reply]


@contextlib.contextmanager
def serving(answer: Answer, **options: Any) -> Iterator[Client]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            is_stream = self.headers["content-type"] == "application/connect+json"
            reply = answer(self.path.rsplit("/", 1)[1], json.loads(body[5:] if is_stream else body))
            if reply is None:
                self.close_connection = True
                return
            status, content = (200, reply) if isinstance(reply, bytes) else reply
            sent = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            is_html = sent.startswith(b"<html>")
            self.send_header("content-type", "text/html" if is_html else self.headers["content-type"])
            self.send_header("content-length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        def log_message(self, format: str, *args: object) -> None:
            """Keeps the output to what failed."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        with Client(f"http://127.0.0.1:{server.server_port}", "token", **options) as client:
            yield client
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def result(rid: str) -> Dict[str, Any]:
    return {"rid": rid, "cbStatus": 200, "body": base64.b64encode(gzip.compress(b"page")).decode()}


class Storage:
    """Answers bulk reads and deletions of results as the service does."""

    def __init__(self, *rids: str) -> None:
        self.stored = set(rids)
        self.deletions: List[List[str]] = []

    def __call__(self, method: str, request: Dict[str, Any]) -> Reply:
        asked: List[str] = request["rids"]
        if method == "BulkGetResults":
            return 200, {"results": [result(rid) for rid in asked if rid in self.stored]}
        self.deletions.append(asked)
        self.stored -= set(asked)
        return 200, {}


def frame(message: Dict[str, Any], flags: int = 0) -> bytes:
    sent = json.dumps(message).encode()
    return struct.pack(">BI", flags, len(sent)) + sent


def refused(delay: str) -> Dict[str, Any]:
    debug = {"retryDelay": delay}
    return {"code": "resource_exhausted", "details": [{"type": "google.rpc.RetryInfo", "debug": debug}]}


def error_of(call: Callable[[], object]) -> CallError:
    try:
        found = call()
    except CallError as error:
        return error
    raise AssertionError(f"no CallError, but {found}")


def repeated_rids() -> None:
    """A `rid` that comes again after its result was removed is not waited for."""
    storage = Storage("a", "b")

    def rids() -> Iterator[str]:
        yield "a"
        while "a" in storage.stored:
            time.sleep(0.01)
        yield "a"
        yield "b"

    with serving(storage) as client:
        pages = client.results(rids(), remove=True, patience=1)
        assert [page.rid for page in pages] == ["a", "b"]


def slow_consumers() -> None:
    """The time that a consumer takes does not count as waiting."""
    storage = Storage("a")

    def late(method: str, request: Dict[str, Any]) -> Reply:
        reply = storage(method, request)
        if request["rids"] == ["b"]:
            storage.stored.add("b")
        return reply

    with serving(late) as client:
        pages = client.results(["a", "b"], patience=1)
        assert next(pages).rid == "a"
        time.sleep(1.5)
        assert [page.rid for page in pages] == ["b"]

    pushes: List[str] = []

    def push(method: str, request: Dict[str, Any]) -> Reply:
        [item] = request["items"]
        pushes.append(item["url"])
        if item["url"] == "b" and pushes.count("b") == 1:
            return 200, {"results": [{"error": {"code": "rate_limited", "retryAfterMs": 10}}]}
        return 200, {"results": [{"rid": item["url"]}]}

    with serving(push) as client:
        loop = client.push("name", ["a", "b"], batch_size=1, concurrency=1, patience=1)
        assert next(loop).rid == "a"
        time.sleep(1.5)
        assert [each.rid for each in loop] == ["b"]

    streams = [frame({"result": result("a"), "resumeToken": "1"}), frame({"result": result("b")}) + frame({}, 2)]
    with serving(lambda method, request: streams.pop(0)) as client:
        stream = client.every_result(patience=1)
        assert next(stream).rid == "a"
        time.sleep(1.5)
        assert [page.rid for page in stream] == ["b"]


def failing_sources() -> None:
    """What was accepted, and its results, come before the failure of the source."""

    def urls() -> Iterator[str]:
        yield from ["a", "b", "c"]
        raise KeyError("source")

    def answer(method: str, request: Dict[str, Any]) -> Reply:
        if method == "PushBatch":
            return 200, {"results": [{"rid": item["url"]} for item in request["items"]]}
        return 200, {"results": [result(rid) for rid in request["rids"]]}

    with serving(answer) as client:
        loops: List[Callable[[], Iterator[Any]]] = [
            lambda: client.push("name", urls(), batch_size=1),
            lambda: client.results(urls()),
        ]
        for start in loops:
            rids: List[str] = []
            try:
                for each in start():
                    rids.append(each.rid)
            except KeyError:
                assert sorted(rids) == ["a", "b", "c"], rids
            else:
                raise AssertionError("the failure of the source was lost")


def failing_batches() -> None:
    """What other batches have got comes before the failure of one."""

    def answer(method: str, request: Dict[str, Any]) -> Reply:
        [item] = request["items"]
        if item["url"] == "b":
            return 403, {"code": "permission_denied"}
        return 200, {"results": [{"rid": item["url"]}]}

    with serving(answer) as client:
        rids: List[Any] = []

        def push() -> None:
            for each in client.push("name", ["a", "b", "c"], batch_size=1):
                rids.append(each.rid)

        assert error_of(push).code == "permission_denied"
        # The last one may not have been sent any more.
        assert rids in (["a"], ["a", "c"]), rids


def foreign_replies() -> None:
    """Replies that are not of the service raise CallError."""
    pushes: List[Dict[str, Any]] = [{"message": "Sign in"}, {"results": []}, {"results": "none"}, {"results": ["a"]}]
    for content in pushes:
        with serving(lambda method, request: (200, content), attempts=1) as client:
            assert error_of(lambda: list(client.push("name", ["a"]))).code == "unknown", content
    replies: List[Reply] = [
        b"<html>Sign in</html>",
        b"",
        b"[]",
        b"\xff",
        (500, {"code": "internal", "details": None}),
        (500, {"code": "internal", "details": 7}),
        (500, {"code": "internal", "details": [None, {"type": "google.rpc.RetryInfo", "debug": "x"}]}),
        (500, refused("soon")),
        (500, {"code": "internal", "details": [{"type": "google.rpc.BadRequest", "debug": {"fieldViolations": [1]}}]}),
        (500, []),
    ]
    for reply in replies:
        with serving(lambda method, request: reply, attempts=1) as client:
            error = error_of(lambda: client.call("StorageService.CountResults"))
            assert error.code in ("unknown", "internal", "resource_exhausted"), (reply, error.code)
    streams: List[Reply] = [
        b"<html>Sign in</html>",
        frame({"error": {"code": "internal", "details": None}}, 2),
        frame({"error": None}, 2),
        frame({"error": "x"}, 2),
        struct.pack(">BI", 0, 2) + b"[]",
        struct.pack(">BI", 0, 2) + b"{x",
        (500, {"code": "internal", "details": None}),
    ]
    for reply in streams:
        with serving(lambda method, request: reply) as client:
            error = error_of(lambda: list(client.every_result(patience=0)))
            assert error.code in ("unknown", "internal"), (reply, error.code)


def lost_deletions() -> None:
    """A deletion whose reply is lost is repeated."""
    storage = Storage("a")

    def answer(method: str, request: Dict[str, Any]) -> Reply:
        reply = storage(method, request)
        return None if len(storage.deletions) == 1 else reply

    with serving(answer) as client:
        assert [page.rid for page in client.results(["a"], remove=True)] == ["a"]
    assert storage.deletions == [["a"], ["a"]]


def refused_streams() -> None:
    """A stream that is refused for now is opened again after the time that the service names."""
    streams: List[Reply] = [
        frame({"result": result("a"), "resumeToken": "1"}),
        (429, refused("0.1s")),
        frame({"error": refused("0.1s")}, 2),
        frame({"result": result("b")}) + frame({}, 2),
    ]
    with serving(lambda method, request: streams.pop(0)) as client:
        assert [page.rid for page in client.every_result()] == ["a", "b"]
    with serving(lambda method, request: (429, {"code": "resource_exhausted"})) as client:
        assert error_of(lambda: list(client.every_result())).code == "resource_exhausted"


CASES = [repeated_rids, slow_consumers, failing_sources, failing_batches, foreign_replies, lost_deletions, refused_streams]
for case in CASES:
    case()
print("faults: ok")
