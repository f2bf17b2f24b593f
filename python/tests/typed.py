"""A script as users write it, which mypy --strict accepts. Each ignored error has to be one (warn_unused_ignores)."""

import asyncio
from typing import Dict, Iterator, List

import tdf


def fit(rate: float, mode: str = "fast") -> int:
    tdf.progress(1, 10)
    return int(rate * len(mode))


def functions(client: tdf.Client) -> List[int]:
    with tdf.Executor(client, campaign="fit", queue="gpu") as executor:
        future: tdf.Future[int] = executor.submit(fit, 0.1, mode="exact")
        executor.submit(fit, "0.1")  # type: ignore[arg-type]
        executor.submit(fit, 0.1, made="exact")  # type: ignore[call-arg]
        text: tdf.Future[str] = executor.submit(fit, 0.1)  # type: ignore[arg-type]
        results: Iterator[int] = executor.map(fit, [0.1, 0.2], chunksize=2)
        future.add_done_callback(lambda done: print(done.result() + 1, text))
        return [future.result(timeout=1), *results, future.id]


async def campaigns(client: tdf.Client) -> int:
    grid: tdf.Campaign = client.sweep({"rate": [0.1, 1]}, program="fit", max_fails=2)
    fits: tdf.Campaign = client.sweep([{"rate": 0.1}], function=fit, retry_on=OSError, max_fails=2)
    client.sweep([{"rate": 0.1}], function="fit")  # type: ignore[arg-type]
    print([value for _, value in fits.values()], fits.retry(failure="5f3a", function=fit))
    counts: Dict[str, int] = await client.wait(grid, timeout=60, check=True)
    retried: int = grid.retry(timeout=7)
    first: int = await asyncio.wrap_future(tdf.Executor(client).submit(fit, 1.0))
    client.wait(7)  # type: ignore[arg-type, unused-coroutine]
    return counts["succeeded"] + retried + first


def worker() -> None:
    worker = tdf.Worker("w", slots=2)

    @worker.program("square")
    def square(task: tdf.Task) -> Dict[str, int]:
        task.progress(0.5, "half")
        return {"square": len(task.args)}

    square(7)  # type: ignore[arg-type]
    worker.run()


def all_of_this() -> None:
    with tdf.up(workers=2) as local:
        functions(local.client)
