"""What a program does with the client, against a running service: BASE, TOKEN and SITE name them."""

import asyncio
import os
import threading
from typing import AsyncIterator, Iterator, List

from queued_crawler import AsyncClient, CallError, Client, PushError, PushItem

BASE, TOKEN, SITE = os.environ["BASE"], os.environ["TOKEN"], os.environ["SITE"]


def urls(name: str, count: int) -> List[str]:
    return [f"{SITE}/page/{number}?{name}" for number in range(count)]


def threads() -> None:
    with Client(BASE, TOKEN) as client:
        crawler = client.create_crawler("python", concurrency=10)
        assert crawler["name"] == "python" and crawler["concurrency"] == 10, crawler

        # More than the rate of a second, so that the loop has to wait for the service.
        waits: List[PushError] = []
        source = urls("sync", 90) + ["ftp://refused.example/"]
        pushed = list(
            client.push(
                "python",
                source,
                batch_size=20,
                run_id="story",
                on_wait=lambda error, delay: waits.append(error),
            )
        )
        assert [each.index for each in pushed] == list(range(91))
        assert [each.item for each in pushed] == source
        assert waits and waits[0].code == "rate_limited" and waits[0].retry_after > 0, waits
        refused = pushed[-1].error
        assert refused is not None and (refused.code, refused.field) == ("invalid_url", "url")
        rids = [each.rid for each in pushed if each.rid is not None]
        assert len(set(rids)) == 90
        # The same run again queues nothing.
        again = list(client.push("python", source, batch_size=20, run_id="story"))
        assert [each.rid for each in again] == [each.rid for each in pushed]

        pages = {page.rid: page for page in client.results(iter(rids))}
        assert sorted(pages) == sorted(rids)
        assert "Page 7" in pages[rids[7]].text and pages[rids[7]].cb_status == 200
        markdown = client.get_result(rids[7], markdown=True)
        assert markdown.content_type.startswith("text/markdown") and "Page 7" in markdown.text

        # A consumer that leaves continues from its token.
        stream = client.every_result(crawler="python")
        first = [next(stream) for _ in range(30)]
        stream.close()
        rest = list(client.every_result(crawler="python", resume_token=first[-1].resume_token))
        assert len(first) + len(rest) == 90, (len(first), len(rest), len({page.url for page in first + rest}))
        assert not {page.rid for page in first} & {page.rid for page in rest}
        for _ in client.every_result(crawler="python", acknowledge=True):
            pass
        assert list(client.every_result(crawler="python")) == []

        # Fields of items, and what comes back of them.
        item: PushItem = {
            "url": f"{SITE}/page/fields",
            "metadata": '{"n": 1}',
            "unique": True,
            "unique_key": "fields",
            "unique_for": 600,
            "priority": 7,
            "delay": 0,
            "batch": "monday",
        }
        [accepted] = client.push("python", [item])
        [repeated] = client.push("python", [item])
        assert accepted.rid == repeated.rid and accepted.rid is not None, (accepted, repeated)
        assert (accepted.duplicate, repeated.duplicate) == (False, True)
        [stored] = client.results([accepted.rid])
        assert (stored.metadata, stored.batch) == ('{"n": 1}', "monday"), stored

        page = client.crawl(f"{SITE}/page/3", parameters={"format": "md"})
        assert page.cb_status == 200 and page.content_type.startswith("text/markdown")
        try:
            client.call("CrawlerService.GetCrawler", {"name": "nobody"})
        except CallError as error:
            assert (error.code, error.reason) == ("not_found", "crawler_not_found"), error
            assert error.request_id
        else:
            raise AssertionError("an unknown crawler was found")
        try:
            client.get_result(rids[0])
        except CallError as error:
            assert error.reason == "rid_not_found"

        # A source that fails, and a loop that is left, end the threads of the loop.
        def failing() -> Iterator[str]:
            yield from urls("failing", 3)
            raise KeyError("source")

        try:
            list(client.push("python", failing(), batch_size=1))
        except KeyError:
            pass
        else:
            raise AssertionError("the failure of the source was lost")
        loop = client.push("python", urls("left", 50), batch_size=1)
        next(loop)
        loop.close()

    try:
        Client("http://127.0.0.1:1", TOKEN, attempts=2).call("StatsService.GetStats")
    except CallError as error:
        assert error.code == "unavailable" and error.is_lost
    try:
        Client(BASE, "wrong-token-of-nobody").call("StatsService.GetStats")
    except CallError as error:
        assert error.code == "unauthenticated"


async def asynchronous() -> None:
    async with AsyncClient(BASE, TOKEN) as client:
        await client.create_crawler("python-async", concurrency=10)

        async def source() -> AsyncIterator[str]:
            for url in urls("async", 60):
                await asyncio.sleep(0)
                yield url

        async def rids() -> AsyncIterator[str]:
            async for pushed in client.push("python-async", source(), batch_size=10):
                assert pushed.rid is not None, pushed
                yield pushed.rid

        # Results are read while URLs are still pushed.
        read = [page.rid async for page in client.results(rids(), remove=True)]
        assert len(set(read)) == 60
        assert [page async for page in client.every_result(crawler="python-async")] == []

        # Two loops at once; the one that follows is canceled while it waits.
        async def follow(found: List[str]) -> None:
            async for page in client.every_result(crawler="python-async", follow=True):
                found.append(page.rid)

        found: List[str] = []
        following = asyncio.ensure_future(follow(found))
        pushed = [each.rid async for each in client.push("python-async", urls("followed", 5))]
        while len(found) < 5:
            await asyncio.sleep(0.05)
        assert sorted(found) == sorted(rid or "" for rid in pushed)
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
        assert following.cancelled()

        page = await client.crawl(f"{SITE}/page/4")
        assert "Page 4" in page.text
        try:
            await client.call("CrawlerService.GetCrawler", {"name": "nobody"})
        except CallError as error:
            assert error.reason == "crawler_not_found"


threads()
asyncio.run(asynchronous())
left = [each.name for each in threading.enumerate() if each is not threading.main_thread()]
assert left == [], left
print("story: ok")
