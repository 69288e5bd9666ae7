"""Threads for what takes long, as many as there are cores, so that the event loop always answers."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

from .limits import RefusedError

Result = TypeVar("Result")


class Workers:
    """At most `cores` pieces of work at once, and `queue` more that wait; another is refused."""

    def __init__(self, cores: int = os.cpu_count() or 1, queue: int = 64):
        self.cores, self.queue, self.under_way = cores, queue, 0
        self.pool = ThreadPoolExecutor(cores, "transduce")

    async def run(self, work: Callable[[], Result]) -> Result:
        """What `work` returns, without gradients, from a thread."""
        if self.under_way >= self.cores + self.queue:
            raise RefusedError(503, f"{self.queue} requests wait already. Wait 1 s.", {"retry-after": "1"})
        self.under_way += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self.pool, torch.inference_mode()(work))
        finally:
            self.under_way -= 1
