"""Creates a crawler that keeps its results in storage, pushes a URL and waits for the result."""

import json
import os
import re
import sys
import time
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

BASE = os.environ.get("BASE", "http://127.0.0.1:8080")
TOKEN = os.environ.get("TOKEN", "example-normal-token")
CRAWLER = "example-python"


def call(method, path, body=None, expected=()):
    """Returns status and reply. Raises when the API refuses, but for the statuses in `expected`."""
    request = Request(
        BASE + path,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        # A token in the header, unlike one in the path or query, is not written to the logs of proxies.
        headers={"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"},
    )
    try:
        with urlopen(request, timeout=30) as response:
            return response.status, json.load(response)
    except HTTPError as error:
        reply = json.load(error)
        if error.code in expected:
            return error.code, reply
        raise RuntimeError(f"{error.code} {reply['code']}: {reply['error']}") from error


def result_of(rid, timeout_seconds=60):
    give_up_at = time.monotonic() + timeout_seconds
    while time.monotonic() < give_up_at:
        status, reply = call("GET", f"/storage?rid={rid}&format=json", expected=(404,))
        if status == 200:
            return reply
        time.sleep(0.25)
    raise TimeoutError(f"{rid} has no result after {timeout_seconds} s.")


def main():
    target = sys.argv[1] if len(sys.argv) > 1 else "https://example.com/"
    # Creating it again with the same values is allowed.
    call("POST", f"/crawler/{TOKEN}", {"name": CRAWLER, "concurrency": 5})
    query = urlencode({"callback": "true", "crawler": CRAWLER, "url": target})
    _, pushed = call("GET", f"/?{query}")
    print(f"pushed {target} as {pushed['rid']}")
    result = result_of(pushed["rid"])
    title = re.search(r"<title>(.*?)</title>", result["body"], re.DOTALL)
    print(f"crawled: cb_status {result['cb_status']}, original_status {result['original_status']}")
    print(f"title: {title and title[1]}")


main()
