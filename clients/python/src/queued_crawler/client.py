"""The client for threads."""

from __future__ import annotations

import ssl
from typing import Any, Dict, Generator, Iterable, Mapping, Optional

from . import loops
from .models import CrawledPage, Pushed, StoredPage, UrlToPush, crawled_page, parameters_to_json, stored_page
from .transport import Stop, Transport


class Client:
    """
    The service on behalf of one token; several threads may use it at once. Close it, or use it in a
    `with` statement. Calls raise CallError.
    """

    def __init__(
        self,
        base_url: str,
        token: str,
        *,
        timeout: float = 30.0,
        attempts: int = 7,
        context: Optional[ssl.SSLContext] = None,
    ) -> None:
        """
        `token` is an account's Normal or JavaScript token. `timeout` is of one call, in seconds;
        `attempts` are calls in all when the service is away or refuses for now. `context` is for a
        certificate authority of one's own: `ssl.create_default_context(cafile=...)`.
        """
        self.transport = Transport(base_url, token, timeout=timeout, attempts=attempts, context=context)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections."""
        self.transport.close()

    def call(
        self, method: str, request: Optional[Mapping[str, Any]] = None, *, timeout: Optional[float] = None
    ) -> Dict[str, Any]:
        """
        Calls any method, such as `call("CrawlerService.GetCrawler", {"name": "news"})`. Requests have
        the fields of docs/rpc.md; replies have them in camelCase, enums by their full names, and
        64-bit numbers as text.
        """
        return self.transport.call(method, request or {}, timeout=timeout)

    def create_crawler(self, name: str, **settings: Any) -> Dict[str, Any]:
        """
        Creates a crawler and returns it, with its `webhookSecret` when it is new and has a
        `callback_url`. Creating it again with the same settings is allowed.
        """
        reply = self.call("CrawlerService.CreateCrawler", {"name": name, **settings})
        secret = {"webhookSecret": reply["webhookSecret"]} if "webhookSecret" in reply else {}
        return {**reply["crawler"], **secret}

    def crawl(
        self,
        url: str,
        *,
        parameters: Optional[Mapping[str, Any]] = None,
        store: bool = False,
        timeout: float = 200.0,
    ) -> CrawledPage:
        """Crawls one URL now, without a queue."""
        request = {"url": url, "parameters": parameters_to_json(parameters or {}), "store": store}
        return crawled_page(self.call("PushService.Crawl", request, timeout=timeout))

    def get_result(self, rid: str, *, markdown: bool = False) -> StoredPage:
        """Reads one result; raises CallError with code "not_found" until it is stored."""
        request = {"rid": rid, **({"format": "STORAGE_FORMAT_MD"} if markdown else {})}
        return stored_page(self.call("StorageService.GetResult", request)["result"])

    def push(
        self,
        crawler: str,
        urls: Iterable[UrlToPush],
        *,
        batch_size: int = 500,
        concurrency: int = 4,
        run_id: Optional[str] = None,
        patience: float = 3_600.0,
        on_wait: Optional[loops.OnWait] = None,
    ) -> Generator[Pushed, None, None]:
        """
        Pushes URLs and yields what became of each, in the order of the source. The source is read
        only as fast as the service accepts and the caller takes; refusals for rate or room are waited
        for, up to `patience` seconds without one URL accepted. A run that is repeated within 24 hours
        with the same `run_id` (up to 40 characters), source and `batch_size` gets the same `rid`s.
        """
        return loops.push_urls(
            self.transport,
            crawler,
            urls,
            Stop(),
            batch_size=batch_size,
            concurrency=concurrency,
            run_id=run_id,
            patience=patience,
            on_wait=on_wait,
        )

    def results(
        self, rids: Iterable[str], *, remove: bool = False, patience: float = 600.0
    ) -> Generator[StoredPage, None, None]:
        """
        Waits for the results of a storage crawler's `rid`s and yields each when it is there. `remove`
        removes results after the caller has taken them. Raises CallError with code
        "deadline_exceeded" when none comes for `patience` seconds.
        """
        return loops.wait_for_results(self.transport, rids, Stop(), remove=remove, patience=patience)

    def every_result(
        self,
        *,
        crawler: str = "",
        resume_token: str = "",
        follow: bool = False,
        acknowledge: bool = False,
        patience: float = 600.0,
    ) -> Generator[StoredPage, None, None]:
        """
        Yields stored results in the order in which they were stored, at least once each, and
        continues by itself after a lost connection, for up to `patience` seconds. `follow` waits for
        new ones; `acknowledge` removes results after the caller has taken them; `resume_token`
        continues behind the result that had it.
        """
        return loops.every_result(
            self.transport,
            Stop(),
            crawler=crawler,
            resume_token=resume_token,
            follow=follow,
            acknowledge=acknowledge,
            patience=patience,
        )
