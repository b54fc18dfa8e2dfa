"""The client for asyncio. Its calls run in threads, so that one library serves both."""

from __future__ import annotations

import asyncio
import queue
import ssl
from concurrent.futures import ThreadPoolExecutor
from typing import (
    Any,
    AsyncGenerator,
    AsyncIterable,
    Callable,
    Dict,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Optional,
    Tuple,
    TypeVar,
    Union,
)

from . import loops
from .client import Client
from .models import CrawledPage, Pushed, StoredPage, UrlToPush
from .transport import Stop, stopped

T = TypeVar("T")
Source = Union[Iterable[T], AsyncIterable[T]]

_END: Any = object()


class AsyncClient:
    """`Client` for asyncio: the same methods with the same options, and sources may be asynchronous."""

    def __init__(
        self,
        base_url: str,
        token: str,
        *,
        timeout: float = 30.0,
        attempts: int = 7,
        context: Optional[ssl.SSLContext] = None,
        threads: int = 32,
    ) -> None:
        """See `Client`. `threads` are the calls and loops at once; further ones wait."""
        self._client = Client(base_url, token, timeout=timeout, attempts=attempts, context=context)
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="queued-crawler")

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Waits for calls in progress, and closes the connections."""
        self._client.close()
        await asyncio.get_running_loop().run_in_executor(None, self._threads.shutdown)

    async def _run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def call(
        self, method: str, request: Optional[Mapping[str, Any]] = None, *, timeout: Optional[float] = None
    ) -> Dict[str, Any]:
        """See `Client.call`."""
        return await self._run(lambda: self._client.call(method, request, timeout=timeout))

    async def create_crawler(self, name: str, **settings: Any) -> Dict[str, Any]:
        """See `Client.create_crawler`."""
        return await self._run(lambda: self._client.create_crawler(name, **settings))

    async def crawl(
        self,
        url: str,
        *,
        parameters: Optional[Mapping[str, Any]] = None,
        store: bool = False,
        timeout: float = 200.0,
    ) -> CrawledPage:
        """See `Client.crawl`."""
        return await self._run(
            lambda: self._client.crawl(url, parameters=parameters, store=store, timeout=timeout)
        )

    async def get_result(self, rid: str, *, markdown: bool = False) -> StoredPage:
        """See `Client.get_result`."""
        return await self._run(lambda: self._client.get_result(rid, markdown=markdown))

    def push(
        self,
        crawler: str,
        urls: Source[UrlToPush],
        *,
        batch_size: int = 500,
        concurrency: int = 4,
        run_id: Optional[str] = None,
        patience: float = 3_600.0,
        on_wait: Optional[loops.OnWait] = None,
    ) -> AsyncGenerator[Pushed, None]:
        """See `Client.push`. `on_wait` is called in another thread."""
        return self._loop(
            urls,
            lambda source, stop: loops.push_urls(
                self._client.transport,
                crawler,
                source,
                stop,
                batch_size=batch_size,
                concurrency=concurrency,
                run_id=run_id,
                patience=patience,
                on_wait=on_wait,
            ),
        )

    def results(
        self, rids: Source[str], *, remove: bool = False, patience: float = 600.0
    ) -> AsyncGenerator[StoredPage, None]:
        """See `Client.results`."""
        return self._loop(
            rids,
            lambda source, stop: loops.wait_for_results(
                self._client.transport, source, stop, remove=remove, patience=patience
            ),
        )

    def every_result(
        self,
        *,
        crawler: str = "",
        resume_token: str = "",
        follow: bool = False,
        acknowledge: bool = False,
        patience: float = 600.0,
    ) -> AsyncGenerator[StoredPage, None]:
        """See `Client.every_result`."""
        nothing: Iterable[str] = ()
        return self._loop(
            nothing,
            lambda _, stop: loops.every_result(
                self._client.transport,
                stop,
                crawler=crawler,
                resume_token=resume_token,
                follow=follow,
                acknowledge=acknowledge,
                patience=patience,
            ),
        )

    async def _loop(
        self, source: Source[T], start: Callable[[Iterable[T], Stop], Generator[Any, None, None]]
    ) -> AsyncGenerator[Any, None]:
        """Runs a loop of `loops` step by step in a thread."""
        stop = Stop()
        pump: Optional["asyncio.Task[None]"] = None
        items: Iterable[T]
        if isinstance(source, AsyncIterable):
            items, pump = _bridged(source, stop)
        else:
            items = source
        iterator = start(items, stop)
        step: Optional["asyncio.Future[Any]"] = None

        def advance() -> Any:
            return next(iterator, _END)

        try:
            while True:
                step = asyncio.ensure_future(self._run(advance))
                # Canceling this must not leave the thread with the iterator behind.
                item = await asyncio.shield(step)
                if item is _END:
                    return
                yield item
        finally:
            # The step that runs in a thread has to end before its generator.
            if step is not None and not step.done():
                stop.set()
                await asyncio.gather(step, return_exceptions=True)
            await self._run(iterator.close)
            if pump is not None:
                pump.cancel()
                await asyncio.gather(pump, return_exceptions=True)


def _bridged(source: AsyncIterable[T], stop: Stop) -> Tuple[Iterator[T], "asyncio.Task[None]"]:
    """Passes an asynchronous source to a thread, a few items ahead."""
    passed: "queue.Queue[Tuple[Any, Optional[BaseException]]]" = queue.Queue()
    room = asyncio.Semaphore(100)
    loop = asyncio.get_running_loop()

    async def pump() -> None:
        try:
            async for item in source:
                await room.acquire()
                passed.put((item, None))
            passed.put((_END, None))
        except BaseException as error:
            passed.put((_END, error))
            raise

    def items() -> Iterator[T]:
        while True:
            try:
                item, error = passed.get(timeout=0.2)
            except queue.Empty:
                if stop.is_set:
                    raise stopped() from None
                continue
            if error is not None:
                raise error
            if item is _END:
                return
            loop.call_soon_threadsafe(room.release)
            yield item

    return items(), asyncio.ensure_future(pump())
