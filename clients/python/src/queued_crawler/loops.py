"""The loops over many URLs and results. Each is a generator; `stop` ends it from another thread."""

from __future__ import annotations

import itertools
import queue
import threading
import time
import uuid
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Callable, Deque, Dict, Generator, Iterable, Iterator, List, Optional, Set, Tuple

from .errors import CallError
from .models import Pushed, PushError, StoredPage, UrlToPush, item_to_json, stored_page
from .transport import Stop, Transport, foreign_reply, stopped

MAX_BATCH_ITEMS = 1_000
#: Of 64 characters of a `request_id`; the rest numbers batches and rounds.
MAX_RUN_ID = 40
#: The service's limit of one bulk read, and `rid`s that are waited for at a time.
MAX_RIDS, WINDOW = 100, 1_000
FIRST_POLL, LONGEST_POLL = 0.1, 2.0
#: Results that are acknowledged by one call.
ACKNOWLEDGED_TOGETHER = 100
#: The service sends a message every 20 s at least.
STREAM_SILENCE = 60.0
FIRST_RECONNECT, LONGEST_RECONNECT = 0.2, 10.0

OnWait = Callable[[PushError, float], None]


def push_urls(
    transport: Transport,
    crawler: str,
    urls: Iterable[UrlToPush],
    stop: Stop,
    *,
    batch_size: int,
    concurrency: int,
    run_id: Optional[str],
    patience: float,
    on_wait: Optional[OnWait],
) -> Generator[Pushed, None, None]:
    _assert_within("batch_size", batch_size, MAX_BATCH_ITEMS)
    _assert_within("concurrency", concurrency, 100)
    run = str(uuid.uuid4()) if run_id is None else run_id
    _assert_within("the length of run_id", len(run), MAX_RUN_ID)
    pusher = _BatchPusher(transport, crawler, run, stop, patience, on_wait)
    in_flight: Deque["Future[_Outcome]"] = deque()
    pool = ThreadPoolExecutor(concurrency, thread_name_prefix="queued-crawler-push")
    failure: Optional[Exception] = None

    def oldest() -> List[Pushed]:
        nonlocal failure
        done, error = in_flight.popleft().result()
        failure = failure or error
        return done

    try:
        index = 0
        chunks = _chunks(urls, batch_size)
        for number in itertools.count():
            try:
                items = next(chunks, None)
            except Exception as error:  # It is raised once the caller has what was accepted.
                failure = error
                break
            if items is None:
                break
            in_flight.append(pool.submit(pusher.push, items, index, number))
            index += len(items)
            if len(in_flight) >= concurrency:
                yield from oldest()
                if failure is not None:
                    break
        while in_flight:
            yield from oldest()
        if failure is not None:
            raise failure
    finally:
        stop.set()
        pool.shutdown(wait=True)


#: What became of the items of a batch, and what ended it before each of them had a result.
_Outcome = Tuple[List[Pushed], Optional[Exception]]


class _BatchPusher:
    """Pushes batches, each as often as it takes for all its items to be accepted or refused for good."""

    def __init__(
        self,
        transport: Transport,
        crawler: str,
        run: str,
        stop: Stop,
        patience: float,
        on_wait: Optional[OnWait],
    ) -> None:
        self._transport = transport
        self._crawler = crawler
        self._run = run
        self._stop = stop
        self._patience = patience
        self._on_wait = on_wait
        # When the first refusal came since one was accepted.
        self._refused_at: Optional[float] = None
        # All batches share the service's limits, so all of them wait.
        self._paused_until = 0.0
        self._has_failed = False

    def push(self, items: List[UrlToPush], first: int, batch: int) -> _Outcome:
        done: List[Pushed] = []
        error: Optional[Exception] = None
        try:
            self._push(items, first, batch, done)
        except Exception as failure:
            # The others end with their present call.
            self._has_failed = True
            error = failure
        return sorted(done, key=lambda each: each.index), error

    def _push(self, items: List[UrlToPush], first: int, batch: int, done: List[Pushed]) -> None:
        """Adds to `done` what has a result."""
        waiting: List[Tuple[int, UrlToPush]] = [(first + at, item) for at, item in enumerate(items)]
        # How many are worth sending: few when few were accepted before.
        width = len(waiting)
        number = 0
        while waiting and not self._has_failed:
            sent = waiting[:width]
            request = {
                "crawler": self._crawler,
                "items": [item_to_json(item) for _, item in sent],
                "request_id": f"{self._run}:{batch}:{number}",
            }
            reply = self._transport.call("PushService.PushBatch", request, stop=self._stop)
            results = reply.get("results", [])
            if not isinstance(results, list) or [type(each) for each in results] != [dict] * len(sent):
                raise foreign_reply()
            again: List[Tuple[int, UrlToPush]] = []
            settled: List[Pushed] = []
            accepted = 0
            refusal: Optional[PushError] = None
            for (index, item), result in zip(sent, results):
                error = _push_error(result)
                if error is None:
                    self._refused_at = None
                    accepted += 1
                    duplicate = result.get("duplicate", False)
                    settled.append(Pushed(index, item, rid=result.get("rid", ""), duplicate=duplicate))
                elif error.retry_after > 0 and self._is_patient():
                    refusal = error
                    again.append((index, item))
                else:
                    settled.append(Pushed(index, item, error=error))
            # The service keeps no reply to a call that queued nothing. So the same call is made
            # again, or a repeated run would send other items under its name.
            if refusal is None or accepted > 0:
                done += settled
                width = max(1, 2 * len(settled))
                waiting = again + waiting[len(sent) :]
                number += 1
            if refusal is not None:
                self._pause(refusal)

    def _is_patient(self) -> bool:
        now = time.monotonic()
        since = self._refused_at
        if since is None:
            self._refused_at = since = now
        return now - since < self._patience

    def _pause(self, error: PushError) -> None:
        now = time.monotonic()
        self._paused_until = max(self._paused_until, now + error.retry_after)
        delay = self._paused_until - now
        if self._on_wait is not None:
            self._on_wait(error, delay)
        self._stop.sleep(delay)


def _push_error(result: Dict[str, object]) -> Optional[PushError]:
    error = result.get("error")
    if not isinstance(error, dict):
        return None
    return PushError(
        code=error.get("code", ""),
        message=error.get("message", ""),
        field=error.get("field"),
        retry_after=error.get("retryAfterMs", 0) / 1_000,
    )


def wait_for_results(
    transport: Transport, rids: Iterable[str], stop: Stop, *, remove: bool, patience: float
) -> Generator[StoredPage, None, None]:
    source = _Source(rids, stop)
    pending: Dict[str, None] = {}
    removed: Set[str] = set()
    # When the first look found nothing since a result came.
    missed_at: Optional[float] = None
    delay = FIRST_POLL
    try:
        while source.fill(pending, removed):
            asked = list(pending)
            came = False
            while asked:
                part, asked = asked[:MAX_RIDS], asked[MAX_RIDS:]
                reply = transport.call("StorageService.BulkGetResults", {"rids": part}, stop=stop)
                asked = list(reply.get("deferredRids", [])) + asked
                taken: List[str] = []
                for result in reply.get("results", []):
                    came, delay = True, FIRST_POLL
                    page = stored_page(result)
                    yield page
                    pending.pop(page.rid, None)
                    taken.append(page.rid)
                if remove and taken:
                    transport.call("StorageService.BulkDeleteResults", {"rids": taken}, stop=stop)
                    removed.update(taken)
            if not pending:
                missed_at = None
                continue
            if came:
                missed_at = None
            elif missed_at is None:
                missed_at = time.monotonic()
            elif time.monotonic() - missed_at > patience:
                message = f"no result came in {patience} s; {len(pending)} are missing"
                raise CallError("deadline_exceeded", message) from source.failure
            stop.sleep(delay)
            delay = min(delay * 2, LONGEST_POLL)
    finally:
        stop.set()


class _Source:
    """Reads an iterable in a thread, at most a window ahead: it may be a push in progress."""

    def __init__(self, rids: Iterable[str], stop: Stop) -> None:
        self._queue: "queue.Queue[Optional[str]]" = queue.Queue(WINDOW)
        self._stop = stop
        #: What the iterable raised.
        self.failure: Optional[BaseException] = None
        self._is_done = False
        thread = threading.Thread(target=self._read, args=(iter(rids),), daemon=True)
        thread.start()

    def _read(self, rids: Iterator[str]) -> None:
        try:
            for rid in rids:
                if not self._put(rid):
                    break
        except BaseException as error:  # It is raised where the loop is used.
            self.failure = error
        self._put(None)

    def _put(self, rid: Optional[str]) -> bool:
        while not self._stop.is_set:
            try:
                self._queue.put(rid, timeout=0.2)
                return True
            except queue.Full:
                continue
        return False

    def fill(self, pending: Dict[str, None], removed: Set[str]) -> bool:
        """Adds what was read and not removed, waits while nothing is pending, and says whether anything is."""
        while not self._is_done and len(pending) < WINDOW:
            try:
                rid = self._queue.get(timeout=0.2) if not pending else self._queue.get_nowait()
            except queue.Empty:
                if pending:
                    break
                if self._stop.is_set:
                    raise stopped() from None
                continue
            if rid is None:
                self._is_done = True
            elif rid not in removed:
                pending[rid] = None
        if not pending and self.failure is not None:
            raise self.failure
        return len(pending) > 0


def every_result(
    transport: Transport,
    stop: Stop,
    *,
    crawler: str,
    resume_token: str,
    follow: bool,
    acknowledge: bool,
    patience: float,
) -> Generator[StoredPage, None, None]:
    token = resume_token
    unacknowledged = 0
    # When the connection was lost or refused first since a message came.
    lost_at: Optional[float] = None
    delay = FIRST_RECONNECT

    def confirm() -> None:
        nonlocal unacknowledged
        if acknowledge and unacknowledged > 0:
            request = {"crawler": crawler, "resume_token": token}
            transport.call("StorageService.AcknowledgeResults", request)
            unacknowledged = 0

    failed = False
    try:
        while True:
            request = {"crawler": crawler, "follow": follow, "resume_token": token}
            messages = transport.stream("StorageService.StreamResults", request, stop, STREAM_SILENCE)
            try:
                for message in messages:
                    lost_at, delay = None, FIRST_RECONNECT
                    result = message.get("result")
                    position = message.get("resumeToken", token)
                    if result is not None:
                        yield stored_page(result, position)
                        unacknowledged += 1
                    token = position
                    if result is None or unacknowledged >= ACKNOWLEDGED_TOGETHER:
                        confirm()
                return
            except CallError as error:
                now = time.monotonic()
                lost_at = now if lost_at is None else lost_at
                refused = error.code == "resource_exhausted" and error.retry_after is not None
                if stop.is_set or not (error.is_lost or refused) or now - lost_at > patience:
                    raise
                stop.sleep(max(delay, error.retry_after or 0.0))
                delay = min(delay * 2, LONGEST_RECONNECT)
    except Exception:
        failed = True
        raise
    finally:
        # Also when the caller leaves its loop; the result that it had last counts as not taken.
        if not failed:
            confirm()
        stop.set()


def _chunks(source: Iterable[UrlToPush], size: int) -> Iterator[List[UrlToPush]]:
    chunk: List[UrlToPush] = []
    for item in source:
        chunk.append(item)
        if len(chunk) == size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _assert_within(what: str, value: int, most: int) -> None:
    if not 1 <= value <= most:
        raise ValueError(f"{what} must be from 1 to {most}")
