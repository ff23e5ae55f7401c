# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""For tests of UROCE_SHM: checks if queue pairs exchange their packets through shared memory."""
import time

import pytest

import harness
import perftest
import verbs_peer
from hold import Hold

SETTING = "UROCE_SHM"
# Number of UDP datagrams: less than FEW in a short test over shared memory, more than MANY in a
# second of traffic over UDP.
FEW, MANY = 200, 2000


def datagrams_sent(place):
    """Returns the number of UDP datagrams sent in this place so far."""
    if not place.holder:
        pytest.skip("others send datagrams here as well")
    with open(f"/proc/{place.holder.pid}/net/snmp", encoding="utf-8") as file:
        names, values = [line.split() for line in file if line.startswith("Udp:")]
    return int(values[names.index("OutDatagrams")])


def shown(place, *processes):
    """Returns uroce-stat's reports of those of the processes that run in the place or its peer."""
    everybody = {one["pid"]: one for at in {place, place.peer} for one in at.stat()}
    return [everybody[process.pid] for process in processes if process.pid in everybody]


def counters(place, *processes):
    return [one["counters"] for one in shown(place, *processes)]


def run(place, *words, env=None, client_env=None):
    """Runs a perftest program; returns uroce-stat's reports of server and client after the last
    transfer, and the ended client."""
    hold = Hold(place)
    pair = perftest.start(place, *words, env={**hold.env, **(env or {})},
                          client_env={**hold.env, **(client_env or env or {})})
    hold.wait(pair)
    seen = shown(place, *pair)
    assert len(seen) == len(pair) and all(one["qps"] for one in seen), seen
    hold.release()
    perftest.finish(*pair)
    return seen, pair[1]


def is_used(place, *processes):
    """Returns true if all queue pairs of the processes, which must be connected, use memory.

    A queue pair never uses memory if its peer has no processor for 100 ms when it is asked.
    """
    seen = shown(place, *processes)
    assert len(seen) == len(processes) and all(one["qps"] for one in seen), seen
    return all_use_memory(seen)


def all_use_memory(seen):
    return all(queue_pair["shared_memory"] for process in seen for queue_pair in process["qps"])


def pair(place, **options):
    """Returns a verbs_peer.pair() that uses memory."""
    def connected():
        ends = verbs_peer.pair(place, options)
        return ends, is_used(place, *ends)
    return harness.good_try(connected, lambda found: found[1])[0]


def join(place, hub, number):
    """Starts a process that shares memory with End number of the hub."""
    def joined():
        here = hub.of(number, "open", place.device, place.gid_index(4))
        peer = verbs_peer.start(place)
        hub.of(number, "connect", peer.here, timeout=14)
        peer.connect(here)
        if is_used(place, hub, peer):
            return peer
        peer.process.kill()
        hub.of(number, "close")
        return None
    return harness.tries(joined)[0]


def check_all_went_through_memory(numbers):
    """A send call that finds the ring full is counted, too."""
    assert 0 < numbers["shm_sent"] <= numbers["send_calls"], numbers
    assert numbers["send_calls"] <= numbers["shm_sent"] + numbers["socket_full"], numbers


def check_memory_is_used(seen):
    """Checks that both processes use memory, for all packets that they have sent."""
    for process in seen:
        numbers = process["counters"]
        check_all_went_through_memory(numbers)
        assert numbers["shm_rcvd"] > 0, numbers
    assert all_use_memory(seen), seen


def sent_through_memory(seen):
    return sum(process["counters"]["shm_sent"] for process in seen)


def check_memory_is_not_used(seen):
    for process in seen:
        assert process["counters"]["shm_sent"] == process["counters"]["shm_rcvd"] == 0, process
        assert not any(queue_pair["shared_memory"] for queue_pair in process["qps"]), process


def check_no_packet_was_damaged(seen):
    for process in seen:
        assert process["counters"]["icrc_err"] == 0, process


def await_traffic(place, *processes, runs=20):
    """Waits until each process has made runs send calls; returns true if all used memory."""
    until = time.monotonic() + harness.PATIENCE
    while time.monotonic() < until:
        seen = shown(place, *processes)
        if len(seen) == len(processes) and all(one["counters"]["send_calls"] >= runs
                                               for one in seen):
            return all_use_memory(seen) and all(one["counters"]["shm_sent"] for one in seen)
        time.sleep(0.02)
    pytest.fail("no traffic: " + "\n".join(map(str, [seen, *processes])))


def start(place, *words, sender=1):
    """Returns both ends of a perftest that is transferring data through shared memory.

    sender: index of the end that sends, 1 for the client
    """
    def started():
        ends = perftest.start(place, *words)
        if await_traffic(place, ends[sender]):
            return ends
        for process in ends:
            process.kill()
        return None
    return harness.tries(started)[0]


def check_memory_is_used_by(place, *ends):
    """Checks that the processes have used memory for a while, in both directions."""
    for numbers in counters(place, *ends):
        assert numbers["shm_sent"] > 30 < numbers["shm_rcvd"], numbers
