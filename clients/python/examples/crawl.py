"""Creates a storage crawler, pushes URLs, and reads their results."""

import os
import sys

from queued_crawler import CallError, Client


def main() -> None:
    base_url = os.environ.get("BASE", "http://127.0.0.1:8080")
    with Client(base_url, os.environ.get("TOKEN", "example-normal-token")) as client:
        client.create_crawler("example-python-client")
        rids = []
        for pushed in client.push("example-python-client", sys.argv[1:]):
            if pushed.rid is None:
                print(f"refused: {pushed.item}: {pushed.error.message if pushed.error else ''}")
            else:
                rids.append(pushed.rid)
        for page in client.results(rids):
            print(f"{page.cb_status} {page.url} {len(page.text)} characters")


try:
    main()
except CallError as error:
    sys.exit(f"{error.reason or error.code}: {error.message}")
