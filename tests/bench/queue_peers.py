"""The queues that P8 compares the ledger with, run by their own interpreter (`build/peers/queues/bin/python`); imports nothing of ours.

    python queue_peers.py ROW DSN JOBS WORKERS

Fills an empty database with jobs, has the server count its rows as it would by itself before long, lets that many processes empty it, one
job in hand at a time each (`pgqueuer-10`: ten), and prints one line of JSON: jobs/s from the start signal to the last job's end,
lost and doubled jobs, the smallest and largest share.
"""

import asyncio
import contextlib
import json
import logging
import multiprocessing
import sys
import time
from typing import Any

FORK = multiprocessing.get_context("fork")


class Procrastinate:
    """procrastinate: one process a worker, concurrency 1."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn

    def app(self, done: list[Any]) -> Any:
        import procrastinate

        app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=self.dsn, min_size=1, max_size=2))

        @app.task(name="job")
        async def job(number: int) -> None:
            done.append((number, time.monotonic()))

        return app, job

    async def fill(self, jobs: int) -> None:
        app, job = self.app([])
        async with app.open_async():
            await app.schema_manager.apply_schema_async()
            await job.batch_defer_async(*({"number": number} for number in range(jobs)))
            await app.connector.execute_query_async("analyze")

    async def work(self, start: Any, done: list[Any]) -> None:
        app, _ = self.app(done)
        async with app.open_async():
            await app.connector.execute_query_async("select 1")
            await asyncio.to_thread(start.wait)
            await app.run_worker_async(concurrency=1, wait=False, listen_notify=False, install_signal_handlers=False)


class PgQueuer:
    """pgqueuer: one process a worker, `batch` jobs a query."""

    def __init__(self, dsn: str, batch: int) -> None:
        self.dsn = dsn
        self.batch = batch

    @contextlib.asynccontextmanager
    async def connected(self) -> Any:
        import psycopg
        from pgqueuer.db import PsycopgDriver

        async with await psycopg.AsyncConnection.connect(self.dsn, autocommit=True) as connection:
            yield PsycopgDriver(connection)

    async def fill(self, jobs: int) -> None:
        from pgqueuer.queries import Queries

        async with self.connected() as driver:
            queries = Queries(driver)
            await queries.install()
            await queries.enqueue(["job"] * jobs, [b"%d" % number for number in range(jobs)], [0] * jobs)
            await driver.execute("analyze")

    async def work(self, start: Any, done: list[Any]) -> None:
        from pgqueuer import PgQueuer as Manager
        from pgqueuer.types import QueueExecutionMode

        async with self.connected() as driver:
            manager = Manager(driver)

            @manager.entrypoint("job")
            async def job(found: Any) -> None:
                done.append((int(found.payload), time.monotonic()))

            await asyncio.to_thread(start.wait)
            await manager.qm.run(batch_size=self.batch, mode=QueueExecutionMode.drain)


ROWS = {
    "procrastinate": Procrastinate, "pgqueuer": lambda dsn: PgQueuer(dsn, 1), "pgqueuer-10": lambda dsn: PgQueuer(dsn, 10),
}  # fmt: skip


def one(row: Any, start: Any, out: Any) -> None:
    done: list[Any] = []
    asyncio.run(row.work(start, done))
    out.put(done)


def main() -> None:
    name, dsn, jobs, workers = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    logging.getLogger("procrastinate").setLevel(logging.ERROR)
    row = ROWS[name](dsn)
    asyncio.run(row.fill(jobs))
    start, out = FORK.Barrier(workers + 1), FORK.Queue()
    processes = [FORK.Process(target=one, args=(row, start, out), daemon=True) for _ in range(workers)]
    for process in processes:
        process.start()
    start.wait(120)
    began = time.monotonic()
    shares = [out.get(timeout=300) for _ in processes]
    done = [number for share in shares for number, _ in share]
    end = max(at for share in shares for _, at in share)
    figures = {
        "rate": len(done) / (end - began), "lost": jobs - len(set(done)), "doubles": len(done) - len(set(done)),
        "least": min(map(len, shares)), "most": max(map(len, shares)),
    }  # fmt: skip
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
