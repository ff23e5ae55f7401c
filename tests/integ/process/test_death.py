# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""A killed peer: the survivor gets an error in time, and no resources are left behind."""
import os
import signal
import time

import pytest

import harness
import perftest
import verbs_peer

ACK_TIMEOUT = 4.096e-6  # times 2^timeout
MESSAGES = 8000
# A sender waits for room at a receiver for a second at most.
LESS_THAN_PATIENCE = 0.8


@pytest.fixture(params=["loopback", "veth"])
def place(request):
    return request.getfixturevalue(request.param)


def told_after(place, timeout, retry_count, least):
    """Kills the peer of a queue pair.  Returns the time after which the first write fails, in
    seconds; it must not be less than least."""
    survivor, victim = verbs_peer.pair(place, timeout=timeout, retry_count=retry_count)
    assert survivor.do("write") == verbs_peer.SUCCESS
    victim.process.kill()
    for number in range(3):
        survivor.post("write", wr_id=number, mark=number == 0)
    found = survivor.wait(3)
    assert [(status, wr_id) for status, wr_id, _ in found] == \
        [(verbs_peer.RETRY_EXC_ERR, 0), (verbs_peer.WR_FLUSH_ERR, 1), (verbs_peer.WR_FLUSH_ERR, 2)]
    assert least * 0.98 <= found[0][2], (found, least)
    # The survivor can still close its device and exit.
    survivor.close()
    survivor.end()
    return found[0][2]


@pytest.mark.parametrize("timeout, retry_count", [(14, 7), (16, 3), (18, 0)])
def test_survivor_is_told_in_time(place, timeout, retry_count):
    """rule S10 test: a write fails after retry_count + 1 local ACK timeouts, not before and not
    much later."""
    least = (retry_count + 1) * ACK_TIMEOUT * 2 ** timeout
    # The specification allows four times this time; a loaded host adds delays.
    harness.in_time(lambda: told_after(place, timeout, retry_count, least), least * 4 + 1)


def test_survivor_that_sleeps_is_told(place):
    survivor, victim = verbs_peer.pair(place, timeout=14, retry_count=2)
    victim.process.kill()
    survivor.post("send")
    survivor.begin("wait_event")
    assert survivor.answer()[0][0] == verbs_peer.RETRY_EXC_ERR


def test_receives_just_wait(loopback):
    """An end that only receives is not notified that its peer was killed, as with any adapter."""
    survivor, victim = verbs_peer.pair(loopback)
    survivor.receive()
    victim.process.kill()
    assert survivor.wait(seconds=0.5) == []
    survivor.close()
    survivor.end()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_unreliable_sender_goes_on(loopback, number):
    """The sender waits for room in the receiver's socket, which stays open, but only for some time.
    """
    survivor, victim = verbs_peer.pair(loopback, {"kind": "UC"})
    assert survivor.do("write") == verbs_peer.SUCCESS
    os.kill(victim.pid, number)
    # More data than any socket buffer holds.
    posted, good = survivor.stream("write", 2.5, length=65536)
    assert posted == good > 500
    survivor.close()
    survivor.end()
    victim.process.kill()


def stop(process):
    """Stops it for 0.1 s; returns the real time, which is longer if this test had no processor."""
    start = time.monotonic()
    os.kill(process.pid, signal.SIGSTOP)
    time.sleep(0.1)
    os.kill(process.pid, signal.SIGCONT)
    return time.monotonic() - start


def stopped_again_and_again(place, service):
    """Stops the receiver of a transfer again and again.  Returns the number of stops, or None if
    one was too long."""
    server, client = perftest.start(place, "ib_send_bw", "-c", service, "-s", 4096,
                                    "-n", MESSAGES, "-r", MESSAGES)
    stops = 0
    while client.running():
        if stop(server) > LESS_THAN_PATIENCE:
            for process in client, server:
                process.kill()
            return None
        time.sleep(0.02)
        stops += 1
    perftest.finish(server, client)
    perftest.check_report(client, [4096], MESSAGES)
    return stops


@pytest.mark.parametrize("service", ("UC", "UD"))
def test_nothing_is_lost_by_a_receiver_without_a_processor(loopback, service):
    """The receiver's socket holds far fewer bytes than are sent; each message has a receive."""
    harness.good_try(lambda: stopped_again_and_again(loopback, service), lambda stops: stops > 1)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_nothing_is_left(loopback, number):
    first, second = verbs_peer.pair(loopback)
    assert first.do("write") == verbs_peer.SUCCESS
    names, sockets = loopback.sockets()
    assert names and sockets
    for end in first, second:
        end.process.kill(number)
    loopback.await_no_sockets()


def connected_after_deaths(place):
    """Returns the longest time to connect two new processes, in seconds, after one or both of the
    processes before them were killed."""
    survivor, took = verbs_peer.start(place), []
    for others in range(6):
        peer = verbs_peer.start(place)
        start = time.monotonic()
        survivor.connect(peer.here)
        peer.connect(survivor.here)
        took.append(time.monotonic() - start)
        assert peer.do("write") == survivor.do("write") == verbs_peer.SUCCESS
        # The older process is always killed, the newer one every other time.
        survivor.process.kill()
        survivor = peer
        if others % 2:
            survivor.process.kill()
        else:
            survivor.close()
            survivor.end()
        survivor = verbs_peer.start(place)
    survivor.process.kill()
    return max(took)


def test_the_next_one_starts_at_once(loopback):
    """Two processes connect at once after the older one of the pair before them, or both processes
    of that pair, have ended."""
    harness.in_time(lambda: connected_after_deaths(loopback), 1)


def test_the_first_process_dies(loopback):
    """The broker keeps the socket of a process that has ended, so the sockets of all others keep
    their indexes in the group: the kernel still delivers their packets to them, and not to
    processes that have to forward them.  Others can still join."""
    first = verbs_peer.start(loopback)
    other = verbs_peer.start(loopback)
    first.connect(other.here)
    pair = verbs_peer.pair(loopback)
    first.process.kill()
    for _ in range(50):
        assert pair[0].do("write") == verbs_peer.SUCCESS
    later = verbs_peer.pair(loopback)
    assert later[0].do("read") == later[1].do("write") == pair[1].do("read") == verbs_peer.SUCCESS
    for end in (other, *pair, *later):
        assert loopback.stat(end.pid)["counters"]["forwarded"] == 0
