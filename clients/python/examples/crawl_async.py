"""The same as crawl.py with asyncio: results are read while URLs are still pushed."""

import asyncio
import os
import sys
from typing import AsyncIterator

from queued_crawler import AsyncClient


async def main() -> None:
    base_url = os.environ.get("BASE", "http://127.0.0.1:8080")
    async with AsyncClient(base_url, os.environ.get("TOKEN", "example-normal-token")) as client:
        await client.create_crawler("example-python-client")

        async def rids() -> AsyncIterator[str]:
            async for pushed in client.push("example-python-client", sys.argv[1:]):
                if pushed.rid is not None:
                    yield pushed.rid

        async for page in client.results(rids()):
            print(f"{page.cb_status} {page.url} {len(page.text)} characters")


asyncio.run(main())
