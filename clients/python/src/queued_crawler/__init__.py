"""Client of a queued crawler, for threads and for asyncio; the standard library only."""

from .aio import AsyncClient
from .client import Client
from .errors import CallError
from .models import CrawledPage, Pushed, PushError, PushItem, StoredPage
from .webhook import Delivery, WebhookError, receive_deliveries, receive_delivery, verify_webhook

__all__ = [
    "AsyncClient",
    "CallError",
    "Client",
    "CrawledPage",
    "Delivery",
    "PushError",
    "PushItem",
    "Pushed",
    "StoredPage",
    "WebhookError",
    "receive_deliveries",
    "receive_delivery",
    "verify_webhook",
]
