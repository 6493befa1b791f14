"""Work of requests in threads, with a bounded number of waiting requests, and writes that share a transaction."""

import asyncio
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from calibrant._support.errors import InputError
from calibrant.monitor.service.problems import ServiceProblem
from calibrant.monitor.store import Store

T = TypeVar("T")
_GROUP = 32


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
        self.name = name
        self.most = most
        self.n_inside: int = 0
        self.n_refused: int = 0
        self._threads = ThreadPoolExecutor(n_threads, thread_name_prefix=f"calibrant-{name}")

    async def run(self, function: Callable[..., T], *args: Any, **options: Any) -> T:
        """Run a function in a thread. It goes on when the client is gone: its effect does not depend on that."""
        if self.n_inside >= self.most:
            self.n_refused += 1
            raise ServiceProblem(
                503,
                f"The service must have fewer than {self.most:,} waiting requests of this kind; repeat this one later.",
                headers={"Retry-After": "1"},
            )
        self.n_inside += 1
        future = asyncio.wrap_future(self._submit(lambda: function(*args, **options)))
        future.add_done_callback(self._leave)
        return await asyncio.shield(future)

    def _submit(self, work: Callable[[], T]) -> "Future[T]":
        return self._threads.submit(work)

    def _leave(self, future: "asyncio.Future[Any]") -> None:
        self.n_inside -= 1
        if not future.cancelled():
            future.exception()  # is known, also if the client is gone

    def close(self) -> None:
        """Finish the work that runs or waits."""
        self._threads.shutdown(wait=True)


class WriteQueue(WorkQueue):
    """One thread that writes to a store. Calls that wait share a transaction: one flush to the disk for all of them.

    A call that fails because of its input is undone alone. After any other failure nothing of the transaction
    is stored, and each call runs again by itself. No result is given out before it is durable.
    """

    def __init__(self, name: str, store: Store, most: int) -> None:
        super().__init__(name, 1, most)
        self._store = store
        self._waiting: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=f"calibrant-{name}", daemon=True)
        self._thread.start()

    def _submit(self, work: Callable[[], T]) -> "Future[T]":
        future: Future[T] = Future()
        self._waiting.put((work, future))
        return future

    def _work(self) -> None:
        done = False
        while not done:
            group = [self._waiting.get()]
            while len(group) < _GROUP and not self._waiting.empty():
                group.append(self._waiting.get())
            done = None in group
            self._run_group([each for each in group if each is not None])

    def _run_group(self, group: list[tuple[Callable[[], Any], "Future[Any]"]]) -> None:
        if len(group) > 1:
            try:
                results = self._run_together([work for work, _ in group])
            except Exception:  # of the store; each call gets its own error below
                results = None
            if results is not None:
                for (_, future), result in zip(group, results, strict=True):
                    _give(future, result)
                return
        for work, future in group:
            _give(future, _caught(work, Exception))

    def _run_together(self, works: list[Callable[[], Any]]) -> list[Any]:
        """Run calls in one transaction; return their results or their errors about input when it is durable."""
        with self._store.transaction():
            return [_caught(work, (InputError, ServiceProblem)) for work in works]

    def close(self) -> None:
        """Finish the work that runs or waits."""
        self._waiting.put(None)
        self._thread.join()
        super().close()


def _caught(work: Callable[[], Any], kinds: Any) -> Any:
    try:
        return work()
    except kinds as error:
        return error


def _give(future: "Future[Any]", result: Any) -> None:
    if not future.set_running_or_notify_cancel():
        return
    if isinstance(result, BaseException):
        future.set_exception(result)
    else:
        future.set_result(result)
