# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Pairs of stock programs while their uroce-broker is killed, stopped and continued at random.

From time to time one end of a pair is killed as well.  All other pairs must succeed, the peer of a
killed process must notice that, and no process, socket or memory file may be left at the end.  Runs
only with UROCE_INTEG_LONG=1; test_many.py and test_broker_death.py test killed and stopped brokers
in each run.  UROCE_CHAOS_SEED=N repeats the random choices of a run, but not their times;
UROCE_CHAOS_PROCESSES=N and UROCE_CHAOS_SECONDS=N set the number of processes and the duration.

Each program has its own session.  With kernel.sched_autogroup_enabled=1 Linux divides the
processors among sessions, and captures have shown threads that were ready to run and did not for
1.9 s; "transport retry counter exceeded" is then caused by the kernel.
"""
import concurrent.futures
import contextlib
import json
import os
import random
import shutil
import signal
import time

import pytest

import broker_client
import harness
from test_broker import ADDRESS, place, short_idle, until

# Fixtures are found by name.
__all__ = ["place", "short_idle"]

pytestmark = [
    pytest.mark.skipif(not harness.LONG, reason="the long form, UROCE_INTEG_LONG=1"),
    pytest.mark.skipif(not shutil.which("rping"), reason="no rdmacm-utils here")]

SEED = int(os.environ.get("UROCE_CHAOS_SEED", time.time_ns() % 1000000))
PROCESSES = int(os.environ.get("UROCE_CHAOS_PROCESSES", "100"))
SECONDS = float(os.environ.get("UROCE_CHAOS_SECONDS", "120"))
BETWEEN_BROKERS = 1  # mean seconds between two kills or stops of brokers
BETWEEN_VICTIMS = 3
STOPPED = 0.3, 2.5  # seconds: the clients of a broker look for another one after 1.5
# Time limit of a pair in seconds, long because many processes, some of which poll, compete for few
# processors.
BOUND = 60 + 3 * PROCESSES
# Seconds within which the peer of a killed process must notice; a broker may be killed as well.
TOLD = harness.PATIENCE
LAST_EVENTS = 12


def shown(place, process):
    """Returns the statistics of the process from uroce-stat; None while a broker does not reply."""
    stat = os.path.join(place.scratch.bin, "uroce-stat")
    process = place.run(stat, "--json", process.pid)
    return json.loads(process.output) if process.popen.returncode == 0 else None


class Pair:
    """A server and its client; victim is the process that was killed, or None."""

    def __init__(self, begun, processes):
        self.begun, self.processes = begun, processes
        self.victim = self.killed = None

    def kill_one(self, rng):
        self.victim = rng.choice(self.processes)
        self.killed = time.monotonic()
        self.victim.kill()

    def end(self):
        for process in self.processes:
            process.kill()

    def may_wait(self, place):
        """Returns true if the peer of the killed process waits for something that no adapter
        reports: a message, or a first connection.  Returns None if uroce-stat gets no reply."""
        survivor, = (process for process in self.processes if process is not self.victim)
        # In one of its states rping does not end after this event.
        if "DISCONNECT EVENT" in survivor.errors:
            return True
        found = shown(place, survivor)
        return found if found is None else not any(
            process["connections"] or any(qp["sq_used"] for qp in process["qps"])
            for process in found)

    def wrong(self, place, now):
        """Returns a description of the pair's failure; "" if it has succeeded or its killed process
        excuses it; None if it has not ended and still has time."""
        if not any(process.running() for process in self.processes):
            return "".join(self.wrong_end(process) for process in self.processes)
        late = now - self.begun - BOUND if self.victim is None else now - self.killed - TOLD
        if late < 0:
            return None
        may_wait = self.victim is not None and self.may_wait(place)
        if may_wait is None and late < BOUND:
            return None
        return "" if may_wait else f"hangs: {[shown(place, one) for one in self.processes]} "

    def wrong_end(self, process):
        code = process.popen.returncode
        good = code == 0 or (code == 255 and harness.RPING_IS_OVER in process.said)
        # The peer of a killed process may fail in many ways, or may have succeeded just before.
        if self.victim is None and not good or process is not self.victim and code < 0:
            return f"exit code {code} "
        return "complains " if "uroce: " in process.errors else ""

    def __str__(self):
        return "\n".join(f"{process.pid}: "
                         f"{'killed' if process is self.victim else process.popen.returncode}: "
                         f"{process}" for process in self.processes)


def await_listener(place, server):
    """Queries only this process, and rarely, because many threads do so at the same time."""
    until = time.monotonic() + BOUND
    while not any(process["listeners"] for process in shown(place, server) or []):
        assert server.running() and time.monotonic() < until, f"does not listen: {server}"
        time.sleep(0.2)


def start(place, seed):
    """Starts a pair that runs for up to some seconds and polls or waits for events."""
    rng = random.Random(seed)
    begun = time.monotonic()
    # With "on", which both ends get, packets go through shared memory.
    env = {"UROCE_SHM": rng.choice(["off", "off", "on"])}
    if rng.random() < 0.5:
        # Fewer rounds without -e: processes that poll keep each other from the processors.
        words = rng.choice([["10"], ["500"], ["10", "-e"], ["2000", "-e"], ["20000", "-e"]])
        command = ["ibv_rc_pingpong", "-d", "uroce_lo", "-g", "0", "-n", *words]
        return Pair(begun, harness.start_pair(place, command, env=env))
    port = place.free_port()
    rounds = rng.choice([10, 500, 5000])
    server = place.start("rping", "-s", "-a", ADDRESS, "-p", port, "-C", rounds, env=env)
    await_listener(place, server)
    client = place.start("rping", "-c", "-V", "-a", ADDRESS, "-p", port, "-C", rounds, env=env)
    return Pair(begun, (server, client))


class Crowd:
    """The running pairs; several new pairs can start at the same time, in threads of a pool."""

    def __init__(self, place, rng, pool, size):
        self.place, self.rng, self.pool, self.size = place, rng, pool, size
        self.starting, self.pairs, self.took, self.failures = [], [], [], []
        self.victims = self.told = 0

    def fill(self):
        while len(self.starting) + len(self.pairs) < self.size:
            self.starting.append(self.pool.submit(start, self.place, self.rng.random()))

    def look(self, events):
        """Adds the pairs that have started, and checks and removes those that have ended."""
        for future in [f for f in self.starting if f.done()]:
            self.starting.remove(future)
            if error := future.exception():
                self.fail(f"does not start: {error}", events)
            else:
                self.pairs.append(future.result())
        for pair in list(self.pairs):
            now = time.monotonic()
            wrong = pair.wrong(self.place, now)
            if wrong is None:
                continue
            self.pairs.remove(pair)
            if wrong:
                self.fail(f"{wrong} after {now - pair.begun:.2f} s: {pair}", events)
            elif pair.victim is None:
                self.took.append(now - pair.begun)
            else:
                self.told += not any(process.running() for process in pair.processes)
            pair.end()

    def kill_one(self):
        living = [pair for pair in self.pairs if pair.victim is None]
        if living:
            self.rng.choice(living).kill_one(self.rng)
            self.victims += 1

    def fail(self, what, events):
        what = f"{time.monotonic():.2f}: {what}\nbefore it: {events[-LAST_EVENTS:]}"
        print("FAILED", what, flush=True)
        self.failures.append(what)


class Brokers:
    """The brokers of a place, of which random ones are killed or stopped for some time."""

    def __init__(self, place, rng):
        self.place, self.rng, self.stopped = place, rng, {}
        self.events, self.killed, self.stops = [], 0, 0

    def signal(self, pid, number):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        self.events.append((number.name, pid, round(time.monotonic(), 2)))

    def disturb(self):
        brokers = [pid for pid in broker_client.brokers(self.place) if pid not in self.stopped]
        if not brokers:
            return
        pid = self.rng.choice(brokers)
        if self.rng.random() < 0.4:
            self.signal(pid, signal.SIGSTOP)
            self.stopped[pid] = time.monotonic() + self.rng.choice(STOPPED)
            self.stops += 1
        else:
            self.signal(pid, signal.SIGKILL)
            self.killed += 1

    def go_on(self, now=float("inf")):
        for pid in [pid for pid, end in self.stopped.items() if end <= now]:
            del self.stopped[pid]
            # Some brokers are killed while they are stopped.
            self.signal(pid, self.rng.choice([signal.SIGCONT, signal.SIGCONT, signal.SIGKILL]))


class Dice:
    """Random times of events with this mean number of seconds between them."""

    def __init__(self, rng, seconds):
        self.rng, self.seconds, self.due = rng, seconds, time.monotonic() + seconds

    def fall(self, now):
        if now < self.due:
            return False
        self.due = now + self.rng.expovariate(1 / self.seconds)
        return True


def disturb(crowd, brokers, chaos, rng):
    """Disturbs brokers and pairs for SECONDS; returns when all pairs have ended."""
    end = time.monotonic() + SECONDS
    broker_dice, victim_dice = Dice(rng, BETWEEN_BROKERS), Dice(rng, BETWEEN_VICTIMS)
    while (now := time.monotonic()) < end or crowd.starting or crowd.pairs:
        if now < end:
            crowd.fill()
            if chaos and broker_dice.fall(now):
                brokers.disturb()
            if victim_dice.fall(now):
                crowd.kill_one()
            brokers.go_on(now)
        else:
            brokers.go_on()
        crowd.look(brokers.events)
        time.sleep(0.02)


def processes_of(place):
    """Names, by process id, of the processes in the place's network namespace."""
    own = os.stat(f"/proc/{place.holder.pid}/ns/net").st_ino
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/comm", encoding="utf-8") as file:
            if os.stat(f"/proc/{pid}/ns/net").st_ino == own:
                found[int(pid)] = file.read().strip()
    return found


@pytest.mark.parametrize("broker", ("lives", "is killed and stopped"))
def test_pairs(place, broker):
    print(f"UROCE_CHAOS_SEED={SEED}")
    before, files = processes_of(place), set(os.listdir("/dev/shm"))
    rng = random.Random(SEED)
    size = max(1, PROCESSES // 2)
    # A process is killed when the thread that started it ends: see setpriv --pdeathsig in
    # harness.py.
    with concurrent.futures.ThreadPoolExecutor(size) as pool:
        crowd, brokers = Crowd(place, rng, pool, size), Brokers(place, rng)
        try:
            disturb(crowd, brokers, broker != "lives", rng)
        finally:
            brokers.go_on()
    print(f"{len(crowd.took)} pairs ended well after {max(crowd.took, default=0):.1f} s at most; "
          f"one end of {crowd.victims} was killed, {crowd.told} others were told; brokers: "
          f"{brokers.killed} killed, {brokers.stops} stopped")
    assert not crowd.failures, "\n\n".join(crowd.failures)
    assert len(crowd.took) > SECONDS / 4 and crowd.victims and crowd.told >= crowd.victims / 2
    assert broker == "lives" or brokers.killed + brokers.stops > SECONDS / BETWEEN_BROKERS / 4
    place.await_no_sockets()
    until(lambda: not broker_client.brokers(place), "a broker does not end")
    assert processes_of(place) == before
    assert set(os.listdir("/dev/shm")) <= files
