"""Serve a seeded memory on loopback for a test, on an event loop in a thread of its own, as the launcher does."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from aiohttp import web

T = TypeVar("T")


@contextmanager
def serving(make: Callable[[], web.Application]) -> Iterator[str]:
    """The address of a running application: `http://127.0.0.1:PORT`."""
    started: threading.Event = threading.Event()
    ends: list[Callable[[], None]] = []
    address: list[str] = []
    failed: list[BaseException] = []

    async def run() -> None:
        runner = web.AppRunner(make(), access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        ended, loop = asyncio.Event(), asyncio.get_running_loop()
        ends.append(lambda: loop.call_soon_threadsafe(ended.set))
        address.append(f"http://127.0.0.1:{runner.addresses[0][1]}")
        started.set()
        await ended.wait()
        await runner.cleanup()

    def thread() -> None:
        try:
            asyncio.run(run())
        except BaseException as error:
            failed.append(error)
        finally:
            started.set()

    running = threading.Thread(target=thread)
    running.start()
    started.wait()
    try:
        if address:
            yield address[0]
    finally:
        for end in ends:
            end()
        running.join()
    if failed:
        raise failed[0]


def within(run: Callable[[], Awaitable[T]]) -> T:
    """Run a coroutine to its end."""

    async def whole() -> T:
        return await run()

    return asyncio.run(whole())
