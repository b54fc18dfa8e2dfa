"""Creates a crawler, pushes URLs in one batch and waits for their results, over gRPC."""

import gzip
import os
import re
import sys
import time
import uuid

import grpc
from google.rpc import error_details_pb2, status_pb2
from queuedcrawler.v1 import (
    crawler_service_pb2,
    crawler_service_pb2_grpc,
    push_service_pb2,
    push_service_pb2_grpc,
    storage_service_pb2,
    storage_service_pb2_grpc,
)

ADDRESS = os.environ.get("ADDRESS", "127.0.0.1:8080")
TOKEN = os.environ.get("TOKEN", "example-normal-token")
AUTHORIZATION = (("authorization", f"Bearer {TOKEN}"),)
CRAWLER = "example-grpc-python"


def reason_of(error):
    """Returns the stable reason of a failed call; empty when it has none."""
    for key, value in error.trailing_metadata():
        if key == "grpc-status-details-bin":
            for detail in status_pb2.Status.FromString(value).details:
                info = error_details_pb2.ErrorInfo()
                if detail.Unpack(info):
                    return info.reason
    return ""


def result_of(storage, rid, timeout_seconds=60):
    """Waits for a result by asking for it. A webhook saves the asking."""
    give_up_at = time.monotonic() + timeout_seconds
    while time.monotonic() < give_up_at:
        try:
            request = storage_service_pb2.GetResultRequest(rid=rid)
            return storage.GetResult(request, metadata=AUTHORIZATION, timeout=30).result
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.NOT_FOUND:
                raise
        time.sleep(0.25)
    raise TimeoutError(f"{rid} has no result after {timeout_seconds} s.")


def main():
    targets = sys.argv[1:] or ["https://example.com/", "https://example.org/"]
    # Pages are up to 10 MiB, the library's own limit is 4 MB.
    options = [("grpc.max_receive_message_length", 20 * 1024 * 1024)]
    with grpc.insecure_channel(ADDRESS, options) as channel:
        crawlers = crawler_service_pb2_grpc.CrawlerServiceStub(channel)
        pushes = push_service_pb2_grpc.PushServiceStub(channel)
        storage = storage_service_pb2_grpc.StorageServiceStub(channel)

        # Creating it again with the same values is allowed.
        crawlers.CreateCrawler(
            crawler_service_pb2.CreateCrawlerRequest(name=CRAWLER, concurrency=5),
            metadata=AUTHORIZATION,
            timeout=30,
        )

        # Sent again with the same request_id after a failure, a batch is queued once.
        batch = push_service_pb2.PushBatchRequest(
            crawler=CRAWLER,
            request_id=str(uuid.uuid4()),
            items=[push_service_pb2.PushItem(url=target) for target in targets],
        )
        results = pushes.PushBatch(batch, metadata=AUTHORIZATION, timeout=30).results
        rids = []
        for target, result in zip(targets, results):
            if result.HasField("error"):
                print(f"refused {target}: {result.error.code}")
            else:
                print(f"pushed {target} as {result.rid}")
                rids.append(result.rid)

        for rid in rids:
            result = result_of(storage, rid)
            # Stored pages are gzip-compressed.
            page = gzip.decompress(result.body).decode("utf-8", "replace")
            title = re.search(r"<title>(.*?)</title>", page, re.DOTALL)
            print(f"crawled: cb_status {result.cb_status}, title: {title and title[1]}")

        # An error's reason is for programs, its message for people.
        try:
            request = push_service_pb2.PushRequest(crawler="no-such-crawler", url="https://example.com/")
            pushes.Push(request, metadata=AUTHORIZATION, timeout=30)
        except grpc.RpcError as error:
            print(f"expected error: {error.code().name}, reason {reason_of(error)}")


main()
