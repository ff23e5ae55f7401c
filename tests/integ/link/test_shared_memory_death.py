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
# What it takes to be sure that a peer is dead, with perftest's numbers: retry_cnt 7, timeout 14.
DEATH_SECONDS = 8 * 4.096e-6 * 2 ** 14
LESS_THAN_RETRIES = 0.45
# The specification allows four times the time.
TOLD_WITHIN = 4 * DEATH_SECONDS + 1


@pytest.fixture(autouse=True)
def switched_on(monkeypatch):
    """For all programs whose test does not say otherwise."""
    monkeypatch.setenv(shm.SETTING, "on")


def told_of_death(place, who, slots):
    """How long after that one of a pair was killed the other one has ended."""
    server, client = perftest.start(place, "ib_write_bw", "-D", 20)
    shm.await_memory(place, client)
    slots.add(tuple(one["slot"] for one in shm.shown(place, server, client)))
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
    slots = set()
    for who in ["client", "server"] * 5:
        harness.in_time(functools.partial(told_of_death, loopback, who, slots), TOLD_WITHIN)
    assert len(slots) == 10


def test_survivor_goes_on_with_a_new_peer(loopback):
    """The process in the dead one's slot gets nothing that was meant for the other."""
    survivor = verbs_peer.start(loopback)
    for _ in range(4):
        victim = verbs_peer.start(loopback)
        survivor.connect(victim.here)
        victim.connect(survivor.here)
        assert survivor.exchange(30, 5000, 3) == victim.exchange(30, 5000, 4) == 30
        victim.process.kill()
        for number in range(3):
            survivor.post("write", length=30000, wr_id=number)
        successor = verbs_peer.start(loopback)
        found = survivor.wait(3)
        assert [status for status, *_ in found] == (
            [verbs_peer.RETRY_EXC_ERR] + 2 * [verbs_peer.WR_FLUSH_ERR])
        survivor.close()
        survivor.here = survivor.open(loopback.device, loopback.gid_index(4))
        successor.connect(survivor.here)
        survivor.connect(successor.here)
        assert survivor.exchange(30, 5000, 3) == successor.exchange(30, 5000, 4) == 30
        shm.check_memory_is_used_by(loopback, survivor, successor)
        successor.process.kill()
        survivor.close()
        survivor.here = survivor.open(loopback.device, loopback.gid_index(4))


def stopped_pair(place, program, who):
    """Server and client after one of them stood still; None if it did for longer than it should, as
    this test ran late."""
    server, client = perftest.start(place, program, "-D", 2)
    shm.await_memory(place, server if program == "ib_read_bw" else client)
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
    first, second = verbs_peer.pair(loopback)
    assert first.exchange(30, 5000, 1) == second.exchange(30, 5000, 1) == 30
    child = first.fork(what)
    assert first.exchange(30, 5000, 2) == second.exchange(30, 5000, 2) == 30
    if what != "exit":
        os.kill(child, signal.SIGKILL)
    first.reap(child)
    # New ones look whether the other process lives.
    third = verbs_peer.start(loopback)
    here = first.of(1, "open", loopback.device, loopback.gid_index(4))
    third.connect(here)
    first.of(1, "connect", third.here)
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
    first, second = verbs_peer.pair(loopback)
    assert first.exchange(30, 100, 1) == 30
    shm.check_memory_is_used(shm.shown(loopback, first, second))
    assert kept_in_core_file(first.pid) == kept_in_core_file(second.pid) == 0
