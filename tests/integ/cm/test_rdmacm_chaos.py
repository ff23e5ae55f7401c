# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Many connections by librdmacm (cm_end.c): one after the other on a network with faults, and at
random among processes of which a third is killed.

UROCE_INTEG_LONG=1 makes more connections, for a longer time; UROCE_CHAOS_SEED=N repeats a run.
"""
import mmap
import os
import random
import re
import shutil
import time

import harness

PROGRAM = os.path.join(harness.BUILD, "tests", "cm_end")
PORT = 7300
BEGINS, LISTENS, DOOMED, FINISHED = range(4)  # enum fate
MOST = 64
LINE = re.compile(r"connected (\d+) accepted (\d+) messages (\d+) lost (\d+) given-up (\d+) "
                  r"slowest-ms (\d+)\n")


class Crowd:
    """Processes of cm_end that share a file with their states (enum fate)."""

    def __init__(self, place, count, seed):
        self.place, self.count, self.seed = place, count, seed
        self.program = os.path.join(place.scratch.path, "cm_end")
        shutil.copy(PROGRAM, self.program)
        path = place.scratch.file("fates")
        with open(path, "wb+") as file:
            file.truncate(MOST)
            self.fates = mmap.mmap(file.fileno(), MOST)
        self.path = path
        self.processes = []

    def start(self, seconds, active, limit=0, where=None, **options):
        where = where or self.place
        self.processes.append(where.start(
            self.program, len(self.processes), self.count, self.place.address, PORT, self.path,
            seconds, self.seed, active, limit, **options))
        return self.processes[-1]

    def await_listening(self):
        until = time.monotonic() + harness.PATIENCE
        for number, process in enumerate(self.processes):
            while self.fates[number] == BEGINS:
                assert process.running() and time.monotonic() < until, process
                time.sleep(0.01)

    def doom(self, number):
        """Kills a process, after marking it so that others do not report the errors that follow."""
        assert self.processes[number].running(), self.processes[number]
        self.fates[number] = DOOMED
        self.processes[number].kill()

    def finish(self, number, seconds):
        """Waits for the process; returns the numbers that it prints, in the order of LINE."""
        try:
            output = self.processes[number].done(seconds)
        except harness.Timeout as timeout:
            # The process may be waiting for another one that has failed: show that as well.
            ended = [str(process) for process in self.processes if not process.running()]
            raise AssertionError("\n".join([str(timeout), *ended])) from None
        return [int(word) for word in LINE.fullmatch(output).groups()]


def assert_nothing_left(place):
    assert place.stat() == []
    place.await_no_sockets()


def test_one_after_the_other_with_faults(loopback):
    """Each connection is established and ended once, and none is lost."""
    count = 200 if harness.LONG else 40
    crowd = Crowd(loopback, 2, 1)
    for number, active in enumerate((0, 1)):
        crowd.start(0, active, count, env={
            "UROCE_FAULT": f"drop=0.1,dup=0.05,reorder=0.05,seed={number + 1}"})
    seconds = 60 if not harness.LONG else 300
    client, server = crowd.finish(1, seconds), crowd.finish(0, seconds)
    assert client[:3] == [count, 0, 2 * count] and server[:2] == [0, count], (client, server)
    assert client[3:5] == server[3:5] == [0, 0], (client, server)
    assert_nothing_left(loopback)


def test_a_third_is_killed(loopback):
    """In processes that are not killed, connections to each other and listeners must go on."""
    count, seconds = (50, 60) if harness.LONG else (12, 7)
    seed = int(os.environ.get("UROCE_CHAOS_SEED", "0")) or (
        random.randrange(1, 1 << 20) if harness.LONG else 1)
    print("UROCE_CHAOS_SEED =", seed)
    dice = random.Random(seed)
    crowd = Crowd(loopback, count, seed)
    for _ in range(count):
        crowd.start(seconds, 4)
    crowd.await_listening()
    begun = time.monotonic()
    # The first process usually has the lowest slot, so it monitors the broker.
    victims = [0, *dice.sample(range(1, count), count // 3 - 1)]
    moments = sorted(dice.uniform(0.1, 0.75) * seconds for _ in victims)
    for victim, moment in zip(victims, moments):
        time.sleep(max(0.0, begun + moment - time.monotonic()))
        crowd.doom(victim)
    totals = [crowd.finish(number, seconds + harness.PATIENCE) for number in range(count)
              if number not in victims]
    sums = [sum(column) for column in zip(*totals)]
    print("connections, taken, messages, lost, given up:", sums[:5], "slowest:",
          max(row[5] for row in totals), "ms")
    assert all(row[0] > 0 and row[1] > 0 for row in totals), totals
    assert_nothing_left(loopback)
