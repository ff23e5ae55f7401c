# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""UROCE_SHM=on: processes that share memory with one that is killed, is stopped or forks."""
import functools
import os
import re
import signal
import time

import pytest

import harness
import shm
import perftest
import verbs_peer

RETRY_EXCEEDED = "status 12"
# Shortest time that a requester must wait for a peer by the specification, with perftest's values:
# retry_cnt 7, timeout 14.  The specification allows four times that; uroce takes 1.7 s.
RETRIES_SECONDS = 8 * 4.096e-6 * 2 ** 14
LESS_THAN_RETRIES = 0.45
TOLD_WITHIN = 4 * RETRIES_SECONDS + 1


@pytest.fixture(autouse=True)
def switched_on(monkeypatch):
    """Enables shared memory for all programs, unless the test passes another setting."""
    monkeypatch.setenv(shm.SETTING, "on")


def told_of_death(place, who, slots):
    """Kills one process of a pair; returns the seconds until the other one has ended."""
    server, client = shm.start(place, "ib_write_bw", "-D", 20)
    slots.append(tuple(one["slot"] for one in shm.shown(place, server, client)))
    victim, survivor = (server, client) if who == "server" else (client, server)
    victim.kill()
    start = time.monotonic()
    assert survivor.wait() > 0, survivor
    took = time.monotonic() - start
    # The server may notice by its TCP connection instead.
    if survivor is client:
        assert RETRY_EXCEEDED in survivor.said, survivor
    return took


def test_killed_and_started_again(loopback):
    """The peer of a killed process notices in time; of all free slots, those that were used last
    are assigned last."""
    slots = []
    for who in ["client", "server"] * 5:
        harness.in_time(functools.partial(told_of_death, loopback, who, slots), TOLD_WITHIN)
    assert len(set(slots)) == len(slots) >= 10


def goes_on_with_a_new_peer(place, survivor):
    """Kills the survivor's peer and connects a new one.  Returns true if these share memory, or
    None if the request for memory got no reply in time."""
    victim = verbs_peer.start(place)
    survivor.connect(victim.here, timeout=14)
    victim.connect(survivor.here)
    assert survivor.exchange(30, 5000, 3) == victim.exchange(30, 5000, 4) == 30
    victim.process.kill()
    for number in range(3):
        survivor.post("write", length=30000, wr_id=number)
    successor = verbs_peer.start(place)
    found = survivor.wait(3)
    assert [status for status, *_ in found] == (
        [verbs_peer.RETRY_EXC_ERR] + 2 * [verbs_peer.WR_FLUSH_ERR])
    survivor.close()
    survivor.here = survivor.open(place.device, place.gid_index(4))
    successor.connect(survivor.here)
    survivor.connect(successor.here)
    assert survivor.exchange(30, 5000, 3) == successor.exchange(30, 5000, 4) == 30
    through_memory = shm.is_used(place, survivor, successor)
    if through_memory:
        shm.check_memory_is_used_by(place, survivor, successor)
    successor.process.kill()
    survivor.close()
    survivor.here = survivor.open(place.device, place.gid_index(4))
    return through_memory or None


def test_survivor_goes_on_with_a_new_peer(loopback):
    """The process that takes the slot of a killed one gets no packets for its predecessor."""
    survivor = verbs_peer.start(loopback)
    for _ in range(4):
        harness.tries(lambda: goes_on_with_a_new_peer(loopback, survivor))


def stopped_pair(place, program, who):
    """Stops one process of a pair for a while.  Returns server and client, or None if this test ran
    late and the process was stopped for too long."""
    server, client = shm.start(place, program, "-D", 2, sender=int(program != "ib_read_bw"))
    stopped = server if who == "server" else client
    begun = time.monotonic()
    os.kill(stopped.pid, signal.SIGSTOP)
    time.sleep(0.3)
    os.kill(stopped.pid, signal.SIGCONT)
    if time.monotonic() - begun < LESS_THAN_RETRIES:
        return server, client
    for process in server, client:
        process.kill()
    return None


@pytest.mark.parametrize("program, who", [("ib_write_bw", "server"), ("ib_send_bw", "server"),
                                          ("ib_read_bw", "client")])
def test_stopped_for_a_while(loopback, program, who):
    """A process is stopped for less time than its peer's retries take: the pair succeeds."""
    server, client = harness.tries(lambda: stopped_pair(loopback, program, who))[0]
    perftest.finish(server, client)
    perftest.check_report(client, [65536], None, duration=True)


@pytest.mark.parametrize("what", ["sleep", "exec", "exit"])
def test_child(loopback, what):
    """A forked child does not read, write or remove what its parent uses for shared memory."""
    first, second = shm.pair(loopback)
    assert first.exchange(30, 5000, 1) == second.exchange(30, 5000, 1) == 30
    child = first.fork(what)
    assert first.exchange(30, 5000, 2) == second.exchange(30, 5000, 2) == 30
    if what != "exit":
        os.kill(child, signal.SIGKILL)
    first.reap(child)
    # A new channel checks whether the other process still runs.
    third = shm.join(loopback, first, 1)
    assert third.exchange(30, 5000, 3) == 30
    assert first.exchange(30, 5000, 4) == second.exchange(30, 5000, 4) == 30
    shm.check_memory_is_used_by(loopback, first, second, third)


def kept_in_core_file(pid):
    """Returns the KiB of memory files in a core file: "dd" is MADV_DONTDUMP, see proc(5)."""
    with open(f"/proc/{pid}/smaps", encoding="utf-8") as file:
        mappings = re.findall(r"/memfd:.*?^Size: +(\d+) kB.*?^VmFlags:(.*?)$", file.read(),
                              re.MULTILINE | re.DOTALL)
    assert mappings
    return sum(int(size) for size, flags in mappings if "dd" not in flags.split())


def test_small_core_files(loopback):
    """Core files leave out the shared regions: to write one, the kernel would allocate each of its
    pages, 4.25 GiB."""
    first, second = shm.pair(loopback)
    assert first.exchange(30, 100, 1) == 30
    shm.check_memory_is_used(shm.shown(loopback, first, second))
    assert kept_in_core_file(first.pid) == kept_in_core_file(second.pid) == 0
