# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""A process with a device can fork, sleep without using the processor, and leave it to the device
to serve its peers."""
import os
import signal
import time

import pytest

import harness
import idle
import verbs_peer


@pytest.mark.parametrize("what", ["sleep", "exec", "exit"])
def test_child_that_does_not_use_the_device(loopback, what):
    """Neither the parent nor its peer is disturbed, while the child runs and after its exit."""
    first, second = verbs_peer.pair(loopback)
    assert first.do("write") == verbs_peer.SUCCESS
    child = first.fork(what)
    for opcode in "write", "read", "fetch_add":
        assert first.do(opcode) == second.do(opcode) == verbs_peer.SUCCESS
    if what == "exit":
        assert first.reap(child) == 0
    else:
        os.kill(child, signal.SIGTERM)
        assert first.reap(child) == -signal.SIGTERM
    for opcode in "write", "read", "fetch_add":
        assert first.do(opcode) == second.do(opcode) == verbs_peer.SUCCESS
    # Objects can be destroyed, and the processes exit.
    first.close()
    second.close()
    first.end()
    second.end()


def test_child_outlives_its_parent(loopback):
    """The parent's sockets are closed although children that do not use them are still running."""
    first, second = verbs_peer.pair(loopback)
    assert first.do("write") == verbs_peer.SUCCESS
    first.fork("sleep")
    first.fork("exec")
    second.process.kill()
    os.kill(first.pid, signal.SIGKILL)
    first.process.popen.wait()
    try:
        loopback.await_no_sockets()
    finally:
        first.process.kill()


def test_many_children(loopback):
    first, second = verbs_peer.pair(loopback)
    for _ in range(30):
        child = first.fork("exit")
        assert first.do("write") == second.do("write") == verbs_peer.SUCCESS
        assert first.reap(child) == 0


def test_idle_connection_uses_no_processor(loopback):
    opened = verbs_peer.start(loopback)
    first, second = verbs_peer.pair(loopback)
    assert first.do("write") == second.do("read") == verbs_peer.SUCCESS
    idle.check_idle(opened, first, second)


def test_waiting_for_an_event_uses_no_processor(loopback):
    first, second = verbs_peer.pair(loopback)
    assert first.do("write") == second.do("write") == verbs_peer.SUCCESS
    harness.in_time(lambda: idle.woken(first, second), 0.5)


@pytest.fixture(params=["loopback", "veth"])
def place(request):
    return request.getfixturevalue(request.param)


def served_by_a_process_that_sleeps(place):
    """Returns the time in seconds until one-sided requests to a sleeping process are complete."""
    first, sleeper = verbs_peer.pair(place, {"length": 1 << 20})
    start = time.monotonic()
    first.put("written" * 100, 4096)
    assert first.do("write", length=700, offset=4096, remote_offset=500000) == verbs_peer.SUCCESS
    assert first.do("read", length=700, offset=9000, remote_offset=500000) == verbs_peer.SUCCESS
    assert first.get(700, 9000) == "written" * 100
    for _ in range(10):
        assert first.do("fetch_add", remote_offset=8, compare_add=3) == verbs_peer.SUCCESS
    assert first.do("cmp_swp", remote_offset=8, compare_add=30, swap=77) == verbs_peer.SUCCESS
    assert first.do("read", length=1 << 20) == verbs_peer.SUCCESS
    assert first.do("write", length=1 << 20, offset=0) == verbs_peer.SUCCESS
    took = time.monotonic() - start
    assert sleeper.get(700, 500000) == "written" * 100
    assert sleeper.get(8, 8) == "M" + "\0" * 7
    return took


def test_one_sided_requests_to_a_process_that_sleeps(place):
    """The peer's application is in read() all the time, and posts and polls nothing."""
    harness.in_time(lambda: served_by_a_process_that_sleeps(place), 2)


def test_requests_of_a_process_that_sleeps_complete(place):
    """Requests that were posted complete without a poll, and so do retries.  The peer must get all
    of the data."""
    first, second = verbs_peer.pair(place)
    for number in range(32):
        second.receive(length=1000)
        first.put(chr(65 + number), 100 * number)
        first.post("write", length=1, offset=100 * number, remote_offset=100 * number)
    first.post("send", length=1000)
    assert second.wait()[0][0] == verbs_peer.SUCCESS
    assert [second.get(1, 100 * n) for n in range(32)] == [chr(65 + n) for n in range(32)]
    assert [status for status, *_ in first.wait(33)] == [verbs_peer.SUCCESS] * 33
