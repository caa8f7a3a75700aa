"""See Scripts/server-restarts.

For each request, it is known whether the server began it and whether its work was done (the server prints both), and whether
its answer arrived completely. A request is lost if it was begun but not answered, or if the client sent its last byte before the
signal and it was not begun. Later requests may be refused: a shutdown is entitled to do that."""

import argparse
import asyncio
import json
import random
import signal
import sys
import time

SCRAPED = ("scheduler_executed_total", "scheduler_workers", "scheduler_run_seconds_count")


class Run:
    """One lifetime of the server, and what its clients saw."""

    def __init__(self, path):
        self.path, self.began, self.done, self.sent = path, set(), set(), {}
        self.answered, self.signalled, self.tail, self.early = set(), None, "", 0

    async def start(self):
        self.process = await asyncio.create_subprocess_exec(
            self.path, "0", stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            env={"SERVER_LOG_REQUESTS": "1", "PATH": "/usr/bin:/bin"})
        first = (await asyncio.wait_for(self.process.stdout.readline(), 60)).decode()
        assert first.startswith("listening on port "), f"the server said '{first}'"
        self.port = int(first.split()[-1])
        self.reader = asyncio.create_task(self.read())
        self.errors = asyncio.create_task(self.process.stderr.read())

    async def read(self):
        async for line in self.process.stdout:
            word, _, rest = line.decode().strip().partition(" ")
            if word in ("began", "done"):
                (self.began if word == "began" else self.done).add(int(rest))
            else:
                self.tail = line.decode().strip()

    async def get(self, path, number=None):
        """The body of the answer. Raises OSError or IncompleteReadError if it does not arrive completely."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
            await writer.drain()
            if number is not None:
                self.sent[number] = time.monotonic()
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            assert head.startswith("http/1.1 200"), head.split("\r\n")[0]
            length = int(head.split("content-length: ")[1].split("\r\n")[0])
            return await reader.readexactly(length)
        finally:
            writer.close()

    async def client(self, numbers):
        while True:
            number = next(numbers)
            try:
                await self.get(f"/sum/{random.randrange(20_000)}?request={number}", number)
                self.answered.add(number)
            except (OSError, asyncio.IncompleteReadError):
                if self.signalled is None:
                    self.early += 1
                else:
                    return

    async def live(self, clients, numbers, scrapes):
        await self.start()
        tasks = [asyncio.create_task(self.client(numbers)) for _ in range(clients)]
        while len(self.answered) < clients:
            await asyncio.sleep(0)
            if self.process.returncode is not None:
                sys.exit(f"server-restarts: the server ended by itself: {(await self.errors).decode()}")
        if scrapes:
            page = (await self.get("/metrics")).decode()
            missing = [name for name in SCRAPED if name not in page]
            assert not missing, f"the scrape has no {missing}"
            check_trace(json.loads(await self.get("/trace")))
        for _ in range(random.randrange(200)):
            await asyncio.sleep(0)
        self.signalled = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        status = await asyncio.wait_for(self.process.wait(), 60)
        await asyncio.wait_for(asyncio.gather(*tasks, self.reader), 60)
        assert status == 0, f"the server ended with {status}: {(await self.errors).decode()}"
        assert self.tail.startswith("drained: ") and self.tail.endswith(" 0 cancelled"), self.tail


def check_trace(trace):
    """Checks that at least 99 % of the bodies have an arrow from their submission."""
    events = trace["traceEvents"]
    threads = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    # The tracks are read one after another: in the last moment a body may appear without its submission.
    settled = [event for event in events if "ts" in event]
    end = max(event["ts"] for event in settled) - 1_000
    settled = [event for event in settled if event["ts"] < end]
    bodies = [event for event in settled
              if event["ph"] == "X" and "run" in event.get("args", {}) and event["name"] not in ("submit", "timer")]
    arrows = [event for event in settled if event["ph"] == "f"]
    assert any(name.startswith("requests-") for name in threads.values()), f"no worker has a track: {threads}"
    assert bodies and len(arrows) >= 0.99 * len(bodies), f"{len(bodies)} bodies have {len(arrows)} arrows"
    print(f"server-restarts: a trace of {len(events)} events: {len(bodies)} bodies, {len(arrows)} arrows", flush=True)


async def main():
    parser = argparse.ArgumentParser(prog="Scripts/server-restarts")
    parser.add_argument("server")
    parser.add_argument("--restarts", type=int, default=200)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.randrange(1 << 32)
    random.seed(seed)
    numbers = iter(range(1, 1 << 62))
    sums = dict.fromkeys(("begun", "answered", "lost", "refused", "early"), 0)
    start = time.monotonic()
    for restart in range(options.restarts):
        run = Run(options.server)
        await run.live(options.clients, numbers, scrapes=restart == 0)
        refused = [number for number in run.sent if number not in run.began and number not in run.answered]
        sums["begun"] += len(run.began)
        sums["answered"] += len(run.answered)
        lost = (run.began - run.answered) | {number for number in refused if run.sent[number] < run.signalled}
        sums["lost"] += len(lost)
        sums["refused"] += len(set(refused) - lost)
        sums["early"] += run.early
        if lost:
            print(f"restart {restart}: lost {sorted(lost)}", flush=True)
    print(
        f"server-restarts: {options.restarts} restarts, seed {seed}, {time.monotonic() - start:.0f} s: "
        + ", ".join(f"{count} {name}" for name, count in sums.items()))
    sys.exit(1 if sums["lost"] or sums["early"] else 0)


asyncio.run(main())
