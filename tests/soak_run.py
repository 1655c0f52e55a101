"""A server under a mixed load for half an hour: `python tests/soak_run.py [--minutes M] [--load SHARE]`.

First it is found out how much the server can do (requests of all kinds, as many at once as keep it busy); then requests
come at random moments, at this share of that rate. Told are errors, times, and memory. The exit code
is 1 if a request did not get its answer, the metrics do not add up, a slot is not free, or memory grows.
"""

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from metrics_scrape import scraped
from process_tree import anonymous_bytes, descriptor_counts
from server_process import ServerProcess, running_server, started_alone
from soak_load import KINDS, Traffic, configuration

MIB = 2**20
AT_ONCE = 6
"""As many keep four models of two slots busy on few cores."""

CALIBRATION_S = 90.0
WARM_S = 180.0
"""Until then every process has met its largest request."""

SAMPLE_EVERY_S = 15.0
RELOAD_EVERY = 400
MAY_GROW_BYTES = 12 * MIB
THREADS = 128


@dataclass(slots=True)
class Tally:
    """What was sent and what became of it. Times are seconds, of whole requests."""

    sent: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    took_s: dict[str, list[float]] = field(default_factory=dict)

    def send(self, traffic: Traffic, name: str, n: int) -> None:
        """Send one request of a kind, and enter it."""
        began = time.monotonic()
        try:
            is_right = KINDS[name].is_right(traffic, n)
        except Exception as fault:  # noqa: BLE001 (whatever it is, it is what the run is to find)
            is_right = False
            print(f"FOUND {name}: {fault!r}", flush=True)
        self.sent[name] += 1
        self.wrong[name] += not is_right
        self.took_s.setdefault(name, []).append(time.monotonic() - began)


def main() -> int:
    """Soak, and tell."""
    asked = _arguments()
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        config = configuration(Path(folder) / "journal.jsonl")
        with (
            running_server(Path(folder), config, "--parallel-jobs", start=started_alone) as server,
            httpx.Client(base_url=server.url, timeout=600, limits=httpx.Limits(max_connections=THREADS)) as client,
        ):
            return _soak(server, Traffic.at(client, server.url), asked.minutes * 60, asked.load)


def _soak(server: ServerProcess, traffic: Traffic, seconds: float, load: float) -> int:
    tally = Tally()
    with ThreadPoolExecutor(THREADS) as threads:
        rate = _capacity(traffic, tally, threads)
        print(f"capacity: {rate:.2f} requests a second; sent: {load * rate:.2f}", flush=True)
        sizes = _load(server, traffic, tally, threads, load * rate, seconds)
    faults = [*_told(tally), *_standing(traffic, tally), *_grown(sizes)]
    for fault in faults:
        print(f"FOUND {fault}")
    print(f"descriptors: {sum(descriptor_counts(server).values())}; {len(faults)} faults")
    return int(bool(faults))


def _capacity(traffic: Traffic, tally: Tally, threads: ThreadPoolExecutor) -> float:
    """Requests a second where the next is sent as soon as one is answered."""
    began = time.monotonic()
    names = _drawn(random.Random(0))

    def client() -> int:
        done = 0
        while time.monotonic() < began + CALIBRATION_S:
            tally.send(traffic, next(names), done)
            done += 1
        return done

    return sum(threads.map(lambda _: client(), range(AT_ONCE))) / (time.monotonic() - began)


def _load(
    server: ServerProcess, traffic: Traffic, tally: Tally, threads: ThreadPoolExecutor, rate: float, seconds: float
) -> list[int]:
    """Send at random moments, whether or not earlier requests are answered; the sizes meanwhile, in bytes."""
    dice = random.Random(1)
    names, sent, sizes = _drawn(dice), list[Future[None]](), list[int]()
    began = due = sample_due = time.monotonic()
    while due < began + seconds:
        time.sleep(max(0.0, due - time.monotonic()))
        name = "reload" if len(sent) % RELOAD_EVERY == RELOAD_EVERY - 1 else next(names)
        sent.append(threads.submit(tally.send, traffic, name, len(sent)))
        due += dice.expovariate(rate)
        if due >= sample_due:
            sample_due += SAMPLE_EVERY_S
            sizes.extend(_sampled(server, began, sent))
    for future in sent:
        future.result()
    return sizes


def _sampled(server: ServerProcess, began: float, sent: list[Future[None]]) -> Iterator[int]:
    elapsed, sizes = time.monotonic() - began, anonymous_bytes(server)
    open_ = sum(not future.done() for future in sent)
    each = " ".join(f"{size / MIB:.0f}" for size in sizes)
    print(f"{elapsed:6.0f} s  {sum(sizes) / MIB:7.1f} MiB ({each})  {len(sent)} sent, {open_} open", flush=True)
    if elapsed > WARM_S:
        yield sum(sizes)


def _told(tally: Tally) -> Iterator[str]:
    for name, times in sorted(tally.took_s.items()):
        half = len(times) // 2
        first, second = (statistics.median(part) if part else 0.0 for part in (times[:half], times[half:]))
        print(
            f"{name:24} {tally.sent[name]:6} sent, {tally.wrong[name]} wrong, median {first:.2f} s, then {second:.2f} s"
        )
        if tally.wrong[name]:
            yield f"{name}: {tally.wrong[name]} of {tally.sent[name]} got another answer"


def _standing(traffic: Traffic, tally: Tally) -> Iterator[str]:
    """What must hold when all is answered: nothing runs or waits, and the server has counted what was sent."""
    for model in traffic.client.get("/v1/status").json()["models"]:
        if model["leases"] or model["waiting"] or model["last_error"]:
            yield f"{model['id']} is not at rest: {model}"
    counted = scraped(traffic.client).by("antiphon_http_requests_total", "route", "status")
    speech = sum(count for (route, _), count in counted.items() if route == "/v1/audio/speech")
    sent = sum(count for name, count in tally.sent.items() if name.startswith(("speech", "no such"))) + len(
        traffic.clips
    )
    if speech != sent:
        yield f"{sent} requests for speech were sent, {speech} counted: {counted}"


def _grown(sizes: list[int]) -> Iterator[str]:
    quarter = max(1, len(sizes) // 4)
    first, last = statistics.median(sizes[:quarter]), statistics.median(sizes[-quarter:])
    told = [f"{size / MIB:.1f} MiB" for size in (first, last, max(sizes))]
    print(f"memory: {told[0]} in the first quarter, {told[1]} in the last, {told[2]} at most")
    if last - first > MAY_GROW_BYTES:
        yield f"memory grew by {(last - first) / MIB:.1f} MiB"


def _drawn(dice: random.Random) -> Iterator[str]:
    shares = [kind.share for kind in KINDS.values()]
    while True:
        yield from dice.choices(list(KINDS), shares, k=100)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Load a server for a while, and look what becomes of it.")
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--load", type=float, default=0.8, help="a share of what the server can do")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
