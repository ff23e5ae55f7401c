# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""UROCE_SHM=on: what becomes of a process when another one that it shares memory with dies, stands
still or forks."""
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
# The least that the specification has a requester wait for a peer, with perftest's numbers:
# retry_cnt 7, timeout 14.  It allows four times that, and ours takes 1.7 s.
RETRIES_SECONDS = 8 * 4.096e-6 * 2 ** 14
LESS_THAN_RETRIES = 0.45
TOLD_WITHIN = 4 * RETRIES_SECONDS + 1


@pytest.fixture(autouse=True)
def switched_on(monkeypatch):
    """For all programs whose test does not say otherwise."""
    monkeypatch.setenv(shm.SETTING, "on")


def told_of_death(place, who, slots):
    """How long after that one of a pair was killed the other one has ended."""
    server, client = shm.start(place, "ib_write_bw", "-D", 20)
    slots.append(tuple(one["slot"] for one in shm.shown(place, server, client)))
    victim, survivor = (server, client) if who == "server" else (client, server)
    victim.kill()
    start = time.monotonic()
    assert survivor.wait() > 0, survivor
    took = time.monotonic() - start
    # A server notices by its TCP connection.
    if survivor is client:
        assert RETRY_EXCEEDED in survivor.said, survivor
    return took


def test_killed_and_started_again(loopback):
    """The survivor is told in time; a slot that was left is the last that is given again."""
    slots = []
    for who in ["client", "server"] * 5:
        harness.in_time(functools.partial(told_of_death, loopback, who, slots), TOLD_WITHIN)
    assert len(set(slots)) == len(slots) >= 10


def goes_on_with_a_new_peer(place, survivor):
    """Returns true if the new one shares memory with it; None if it had no processor when asked."""
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
    """The process in the dead one's slot gets nothing that was meant for the other."""
    survivor = verbs_peer.start(loopback)
    for _ in range(4):
        harness.tries(lambda: goes_on_with_a_new_peer(loopback, survivor))


def stopped_pair(place, program, who):
    """Server and client after one of them stood still; None if it did for longer than it should, as
    this test ran late."""
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
    """For less than the peer's retries take: nothing is noticed."""
    server, client = harness.tries(lambda: stopped_pair(loopback, program, who))[0]
    perftest.finish(server, client)
    perftest.check_report(client, [65536], None, duration=True)


@pytest.mark.parametrize("what", ["sleep", "exec", "exit"])
def test_child(loopback, what):
    """It neither reads nor writes what its parent has, and takes nothing away when it ends."""
    first, second = shm.pair(loopback)
    assert first.exchange(30, 5000, 1) == second.exchange(30, 5000, 1) == 30
    child = first.fork(what)
    assert first.exchange(30, 5000, 2) == second.exchange(30, 5000, 2) == 30
    if what != "exit":
        os.kill(child, signal.SIGKILL)
    first.reap(child)
    # New ones look whether the other process lives.
    third = shm.join(loopback, first, 1)
    assert third.exchange(30, 5000, 3) == 30
    assert first.exchange(30, 5000, 4) == second.exchange(30, 5000, 4) == 30
    shm.check_memory_is_used_by(loopback, first, second, third)


def kept_in_core_file(pid):
    """KiB of memory files that the kernel would write: "dd" is MADV_DONTDUMP, proc(5)."""
    with open(f"/proc/{pid}/smaps", encoding="utf-8") as file:
        mappings = re.findall(r"/memfd:.*?^Size: +(\d+) kB.*?^VmFlags:(.*?)$", file.read(),
                              re.MULTILINE | re.DOTALL)
    assert mappings
    return sum(int(size) for size, flags in mappings if "dd" not in flags.split())


def test_small_core_files(loopback):
    """The kernel would allocate each page of a region, 4.25 GiB, to write it."""
    first, second = shm.pair(loopback)
    assert first.exchange(30, 100, 1) == 30
    shm.check_memory_is_used(shm.shown(loopback, first, second))
    assert kept_in_core_file(first.pid) == kept_in_core_file(second.pid) == 0
