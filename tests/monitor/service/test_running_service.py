"""Streams of events: what stays behind when a reader leaves."""

import asyncio

import pytest

pytest.importorskip("starlette", reason="starlette is not installed")

from calibrant.monitor.service.running_service import EventHub


def test_a_reader_that_leaves_leaves_no_task_behind():
    async def revisions():
        return {"a": 1}

    async def valid():
        return True

    async def read_and_leave(hub):
        stream = hub.stream(lambda model: True, valid)
        assert "retry" in await anext(stream)
        assert "revision" in await anext(stream)
        waiting = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0.01)  # it waits for the next change
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)

    async def run():
        hub = EventHub(revisions, 100)
        for _ in range(5):
            await read_and_leave(hub)
        await asyncio.sleep(0.01)
        assert hub.n_streams == 0
        own = {asyncio.current_task(), hub._task}
        return [task for task in asyncio.all_tasks() if task not in own]

    assert asyncio.run(run()) == []
