"""`WorkQueue`: work of requests in threads, with a bounded number of waiting requests."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from calibrant.monitor.service.problems import Problem

__all__ = ["WorkQueue"]

T = TypeVar("T")


class WorkQueue:
    """Threads for one kind of work.

    Parameters
    ----------
    name : str
        Name of the threads and of the metrics.
    n_threads : int
    most : int
        Most calls that wait or run; a further one is a problem 503, which tells the client to come back.
    """

    def __init__(self, name: str, n_threads: int, most: int) -> None:
        self.name, self.most = name, most
        self.n_inside = self.n_refused = 0
        self._threads = ThreadPoolExecutor(n_threads, thread_name_prefix=f"calibrant-{name}")

    async def run(self, function: Callable[..., T], *args: Any, **options: Any) -> T:
        """Run a function in a thread. It goes on when the client is gone: its effect does not depend on that."""
        if self.n_inside >= self.most:
            self.n_refused += 1
            raise Problem(
                503,
                f"The service must have fewer than {self.most:,} waiting requests of this kind; repeat this one later.",
                headers={"Retry-After": "1"},
            )
        self.n_inside += 1
        future = asyncio.get_running_loop().run_in_executor(self._threads, lambda: function(*args, **options))
        future.add_done_callback(self._leave)
        return await asyncio.shield(future)

    def _leave(self, future: "asyncio.Future[Any]") -> None:
        self.n_inside -= 1
        if not future.cancelled():
            future.exception()  # is known, also if the client is gone

    def close(self) -> None:
        """Finish the work that runs or waits."""
        self._threads.shutdown(wait=True)
