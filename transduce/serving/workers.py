"""Threads for what takes long, as many as there are cores, so that the event loop always
answers."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

from .limits import RefusedError

Result = TypeVar("Result")


class Workers:
    """At most `cores` pieces of work at once, and `queue` more that wait; another is refused."""

    def __init__(self, cores: int = os.cpu_count() or 1, queue: int = 64):
        self.queue, self.room = queue, threading.Semaphore(cores + queue)
        self.pool = ThreadPoolExecutor(cores, "transduce")

    async def run(self, work: Callable[[], Result]) -> Result:
        """What `work` returns, without gradients, from a thread."""
        if not self.room.acquire(blocking=False):
            raise RefusedError(
                503, f"{self.queue} requests wait already. Wait 1 s.", {"retry-after": "1"}
            )
        future = self.pool.submit(torch.inference_mode()(work))
        # Not before: cancelling the future does not stop the thread.
        future.add_done_callback(lambda _: self.room.release())
        return await asyncio.wrap_future(future)
