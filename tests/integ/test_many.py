# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Eight servers and eight clients on one host, killed and started anew in random order: those who
were not killed finish, with the right data."""
import os
import random
import sys
import time

import pytest

import harness
import talk

PAIRS = 8
SECONDS = 60 if harness.LONG else 20
SEED = int(os.environ.get("UROCE_INTEG_SEED", time.time_ns() % 1000000))
SECONDS_BETWEEN_KILLS = 0.7
GRACE = 0.5  # seconds that the one whose peer was killed goes on, for whatever it does then


class Pair:
    """A server and its client, under way; killed is when one of them was killed."""

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
                   "-n", rng.randrange(500, 8000) * 4096 // max(size, 4096) + 50]
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
    """Data that is new each time, written to the peer and read from there."""

    def __init__(self, place, rng):
        super().__init__(place, rng)
        self.ends = talk.pair(place)
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


def start(place, rng):
    return rng.choice([PingPong, PingPong, Exchange])(place, rng)


def test_killed_in_random_order(loopback):
    print(f"UROCE_INTEG_SEED={SEED}")
    rng = random.Random(SEED)
    finished, killed, at_once = 0, 0, 0
    pairs = [start(loopback, rng) for _ in range(PAIRS)]
    until = time.monotonic() + SECONDS
    next_kill = time.monotonic() + rng.expovariate(1 / SECONDS_BETWEEN_KILLS)
    while time.monotonic() < until or pairs:
        now = time.monotonic()
        if now < until and len(pairs) < PAIRS:
            pairs.append(start(loopback, rng))
        for pair in list(pairs):
            if pair.killed:
                if now - pair.killed > GRACE:
                    pair.end()
                    pairs.remove(pair)
            elif pair.finished():
                pair.check()
                pairs.remove(pair)
                finished += 1
        alive = [pair for pair in pairs if not pair.killed]
        at_once = max(at_once, len(alive))
        if alive and next_kill < now < until:
            rng.choice(alive).kill_one()
            killed += 1
            next_kill = now + rng.expovariate(1 / SECONDS_BETWEEN_KILLS)
        time.sleep(0.02)
        assert now < until + harness.PATIENCE, [str(p) for pair in pairs for p in pair.processes]
    print(f"{finished} pairs finished, {killed} killed, {at_once} at once")
    assert finished >= SECONDS / 2 and killed >= SECONDS / 4 and at_once >= PAIRS / 2
    assert loopback.sockets() == (set(), [])


if __name__ == "__main__":
    sys.exit(pytest.main([__file__]))
