# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Eight servers and eight clients on one host, killed and started again in random order, while
their brokers run or are killed: pairs that were not killed must finish with the right data."""
import concurrent.futures
import contextlib
import os
import random
import signal
import time

import pytest

import broker_client
import harness
import verbs_peer

PAIRS = 50 if harness.LONG else 8
SECONDS = 60 if harness.LONG else 10
SEED = int(os.environ.get("UROCE_INTEG_SEED", time.time_ns() % 1000000))
SECONDS_BETWEEN_KILLS = 0.7
SECONDS_BETWEEN_BROKERS = 1
GRACE = 0.5  # seconds that a process goes on after its peer was killed, to handle that


class Pair:
    """A server and its client; killed is the time at which one of them was killed, or None."""

    def __init__(self, place, rng):
        self.place, self.rng, self.killed = place, rng, None
        self.processes = []

    def kill_one(self):
        self.killed = time.monotonic()
        self.rng.choice(self.processes).kill()

    def end(self):
        for process in self.processes:
            process.kill()


class PingPong(Pair):
    def __init__(self, place, rng):
        super().__init__(place, rng)
        size = rng.choice([64, 4096, 65536, 300001])
        command = ["ibv_rc_pingpong", "-d", "{device}", "-g", rng.choice([0, 1]), "-c",
                   "-s", size, "-m", rng.choice([256, 1024, 4096]),
                   "-n", rng.randrange(2000, 16000) * 4096 // max(size, 4096) + 50]
        if rng.random() < 0.5:
            command.append("-e")
        self.processes = list(harness.start_pair(place, command))

    def finished(self):
        return all(not process.running() for process in self.processes)

    def check(self):
        for process in self.processes:
            assert "invalid data" not in process.done()
            assert process.errors == "", process


class Exchange(Pair):
    """Both ends write new data to the peer in each round and read it back."""

    def __init__(self, place, rng):
        super().__init__(place, rng)
        self.ends = verbs_peer.pair(place)
        self.processes = [end.process for end in self.ends]
        self.rounds = rng.randrange(200, 2000)
        self.answers = []
        for end in self.ends:
            end.begin("exchange", self.rounds, rng.randrange(1, 8000), rng.random())

    def finished(self):
        return all(end.answered(0) for end in self.ends) or self.killed

    def check(self):
        assert [end.answer() for end in self.ends] == [self.rounds] * 2
        for end in self.ends:
            end.end()


def start(place, seed):
    rng = random.Random(seed)
    return rng.choice([PingPong, PingPong, Exchange])(place, rng)


class Crowd:
    """The running pairs; several new pairs can start at the same time, in threads of a pool."""

    def __init__(self, place, rng, pool, size):
        self.place, self.rng, self.pool, self.size = place, rng, pool, size
        self.starting, self.pairs = [], []
        self.finished = self.killed = self.at_once = 0

    def fill(self):
        while len(self.starting) + len(self.pairs) < self.size:
            self.starting.append(self.pool.submit(start, self.place, self.rng.random()))

    def alive(self):
        return [pair for pair in self.pairs if not pair.killed]

    def look(self):
        """Adds the pairs that have started and removes those that have ended."""
        for future in [f for f in self.starting if f.done()]:
            self.starting.remove(future)
            self.pairs.append(future.result())
        for pair in list(self.pairs):
            if pair.killed:
                if time.monotonic() - pair.killed > GRACE:
                    pair.end()
                    self.pairs.remove(pair)
            elif pair.finished():
                pair.check()
                self.pairs.remove(pair)
                self.finished += 1
        self.at_once = max(self.at_once, len(self.alive()))

    def kill_one(self):
        if self.alive():
            self.rng.choice(self.alive()).kill_one()
            self.killed += 1

    def __str__(self):
        return "\n".join(str(process) for pair in self.pairs for process in pair.processes)


class Brokers:
    """The brokers of a place: all are killed once a second, or none is."""

    def __init__(self, place, killed):
        self.place, self.deaths = place, 0
        self.next_kill = time.monotonic() + SECONDS_BETWEEN_BROKERS if killed else float("inf")

    def look(self):
        if time.monotonic() < self.next_kill:
            return
        for pid in broker_client.brokers(self.place):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                self.deaths += 1
        self.next_kill += SECONDS_BETWEEN_BROKERS


def kill_at_random(crowd, brokers, rng, patience):
    """Kills processes for SECONDS, which begin when the first pairs have all started; returns when
    all pairs have ended."""
    begun, until, next_kill = time.monotonic(), None, None
    while until is None or time.monotonic() < until or crowd.starting or crowd.pairs:
        now = time.monotonic()
        if until is None or now < until:
            crowd.fill()
            brokers.look()
        crowd.look()
        if until is None and not crowd.starting:
            next_kill, until = now, now + SECONDS
        if until is not None and next_kill <= now < until:
            crowd.kill_one()
            next_kill = now + rng.expovariate(1 / SECONDS_BETWEEN_KILLS)
        time.sleep(0.02)
        assert now < (until or begun) + patience, str(crowd)


@pytest.mark.parametrize("broker", ("lives", "is killed"))
def test_killed_in_random_order(loopback, broker):
    print(f"UROCE_INTEG_SEED={SEED}")
    brokers = Brokers(loopback, broker == "is killed")
    # Each killed broker causes timeouts; with eight polling pairs on two processors some processes
    # wait so long for a processor that they would use up their retries.
    size, slower = (PAIRS, 1) if broker == "lives" else (PAIRS // 2, 2)
    rng = random.Random(SEED)
    # A process is killed when the thread that started it ends: see setpriv --pdeathsig in
    # harness.py.
    with concurrent.futures.ThreadPoolExecutor(PAIRS) as pool:
        crowd = Crowd(loopback, rng, pool, size)
        kill_at_random(crowd, brokers, rng, slower * harness.PATIENCE)
    print(f"{crowd.finished} pairs finished, {crowd.killed} killed, {crowd.at_once} at once, "
          f"{brokers.deaths} brokers killed")
    # slower squared: there are half as many pairs, and each of them is slower.
    assert crowd.finished >= SECONDS / 2 / slower**2 and crowd.killed >= SECONDS / 4
    assert crowd.at_once >= size - 1
    assert broker == "lives" or brokers.deaths >= SECONDS / SECONDS_BETWEEN_BROKERS / 2
    loopback.await_no_sockets()
