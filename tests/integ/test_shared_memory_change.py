# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""UROCE_SHM=on: a queue pair that has begun through the socket, because shared memory was not there
yet, goes over to it whatever it is at, and what comes through the socket is heard beside it."""
import resource
import sys
import time

import pytest

import lanes
import talk

OUT_OF_ORDER = ["rcvd_seq_err", "out_of_seq_request", "timeouts", "completer_retry_err"]


@pytest.fixture(autouse=True)
def switched_on(monkeypatch):
    """For all programs whose test does not say otherwise."""
    monkeypatch.setenv(lanes.SETTING, "on")


def set_memory(place, end, value):
    """Whether the end's process answers who asks for memory; it asks nobody by itself."""
    end.set(lanes.SETTING, value)
    end.of(0, "open", place.device, place.gid_index(4))
    end.of(0, "close")


def begin_without_memory(place, kind="RC", **options):
    """Two connected ends who want memory, but have asked each other when the other did not."""
    first, second = (talk.open_end(place, kind=kind) for _ in range(2))
    set_memory(place, second, "off")
    first.connect(second.here, **options)
    set_memory(place, first, "off")
    set_memory(place, second, "on")
    second.connect(first.here, **options)
    set_memory(place, first, "on")
    # For ask(), which there may be no network for.
    second.of(1, "open", place.device, place.gid_index(4))
    lanes.check_memory_is_not_used(lanes.shown(place, first, second))
    return first, second


def ask(end, peer):
    """Another queue pair of the end's process connects; so each asks the other one for memory."""
    end.of(1, "connect", peer.here)


def counters_of(place, *ends):
    """Of the processes, and of the queue pairs that their ends have begun with."""
    seen = lanes.shown(place, *ends)
    lanes.check_no_packet_was_damaged(seen)
    qps = [qp for process, end in zip(seen, ends) for qp in process["qps"]
           if qp["qpn"] == end.here["qpn"]]
    return [one["counters"] for one in seen], [one["counters"] for one in qps]


def check_order(qps):
    for numbers in qps:
        assert not any(numbers[name] for name in OUT_OF_ORDER), numbers


def go_over(place, end, peer):
    """The end writes to the peer until that goes through memory; its queue pair's counters then."""
    lanes.go_over(place, end, writes=20, seconds=5)
    _, (numbers, _) = counters_of(place, end, peer)
    return numbers


def test_ack_is_repeated(loopback):
    """What was acknowledged through the socket is so again before a request goes through memory.

    A program may have posted that in answer, and count on it that the ACK is seen before.
    """
    first, second = begin_without_memory(loopback)
    assert second.do("write") == talk.SUCCESS
    ask(second, first)
    numbers = go_over(loopback, first, second)
    assert numbers["unsolicited_acks_sent"] == 1, numbers
    # Who has acknowledged nothing through the socket does not.
    first, second = begin_without_memory(loopback)
    ask(second, first)
    numbers = go_over(loopback, first, second)
    assert numbers["unsolicited_acks_sent"] == 0, numbers


def test_answers_are_not_overtaken(loopback):
    """Who has answered READs knows that the answers are there when he hears through memory."""
    first, second = begin_without_memory(loopback)
    assert second.do("read") == talk.SUCCESS
    ask(second, first)
    time.sleep(0.5)
    assert first.do("write") == talk.SUCCESS
    (answerer, reader), _ = counters_of(loopback, first, second)
    # This was the ACK.
    assert answerer["shm_sent"] == 0 < reader["shm_sent"], (answerer, reader)
    go_over(loopback, first, second)


def test_peer_cannot_answer(loopback):
    """Who could send through memory does not before the peer could answer there."""
    first, second = begin_without_memory(loopback)
    third = talk.open_end(loopback)
    first.of(1, "open", loopback.device, loopback.gid_index(4))
    # For the third one the second has made its inbox, of which it can send others a descriptor.
    third.connect(second.here)
    time.sleep(0.2)
    limits = resource.prlimit(second.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(second.pid, resource.RLIMIT_NOFILE, (3, limits[1]))
    ask(first, second)
    time.sleep(0.2)
    for _ in range(20):
        assert first.do("write") == talk.SUCCESS
    resource.prlimit(second.pid, resource.RLIMIT_NOFILE, limits)
    (sender, answerer), _ = counters_of(loopback, first, second)
    assert sender["shm_sent"] == 0 == answerer["shm_sent"], (sender, answerer)
    go_over(loopback, first, second)


def test_receiver_is_not_ready_meanwhile(loopback):
    """What waits to be sent again because the peer had nothing to receive it."""
    first, second = begin_without_memory(loopback)
    for number in range(5):
        first.post("send", wr_id=number)
    assert first.wait(seconds=0.1) == []
    ask(second, first)
    assert first.wait(seconds=0.2) == []
    for _ in range(5):
        second.receive()
    assert [status for status, *_ in first.wait(5, seconds=5)] == 5 * [talk.SUCCESS]
    assert [status for status, *_ in second.wait(5, seconds=5)] == 5 * [talk.SUCCESS]
    (sender, receiver), _ = counters_of(loopback, first, second)
    assert sender["shm_sent"] > 0 < receiver["shm_rcvd"], (sender, receiver)


def test_lost_meanwhile(loopback):
    """What the network has lost is sent again through memory, which needs no network."""
    if not loopback.holder:
        pytest.skip("others use the network here as well")
    first, second = begin_without_memory(loopback)
    assert first.do("write") == talk.SUCCESS
    loopback.output_of("ip", "link", "set", "lo", "down")
    try:
        for number in range(5):
            first.post("write", length=20000, wr_id=number)
        ask(second, first)
        assert [status for status, *_ in first.wait(5, seconds=5)] == 5 * [talk.SUCCESS]
    finally:
        loopback.output_of("ip", "link", "set", "lo", "up")
    (sender, receiver), (requester, _) = counters_of(loopback, first, second)
    assert sender["shm_sent"] > 0 < receiver["shm_rcvd"], (sender, receiver)
    assert requester["timeouts"] > 0, requester


@pytest.mark.parametrize("one, other, length", [
    ("write", "write", 4096), ("write", "write", 64), ("read", "read", 16384),
    ("read", "write", 4096), ("read write", "read write", 4096), ("read write", "write", 64)])
def test_streams_both_ways(loopback, one, other, length):
    """Each acknowledges or answers what the other sends, and nothing overtakes anything for it.

    Who answers READs by the socket and sends at the same time may have to stay with it.
    """
    for _ in range(4):
        first, second = begin_without_memory(loopback, timeout=18)
        # They ask now and then only, so that they are well under way by then.
        for end, opcodes in (first, one), (second, other):
            end.begin("stream", opcodes, 0.3, length=length)
        for end in first, second:
            posted, good = end.answer()
            assert posted == good > 600
        processes, qps = counters_of(loopback, first, second)
        for numbers in processes:
            assert "read" in one or numbers["shm_sent"] > 100 < numbers["shm_rcvd"], numbers
        check_order(qps)
        for end in first, second:
            end.end()


def test_stream_of_reads(loopback):
    """Who only answers does not overtake his own answers, either."""
    for _ in range(6):
        first, second = begin_without_memory(loopback, timeout=18)
        first.begin("stream", "read", 0.3, length=16384)
        posted, good = first.answer()
        assert posted == good > 200
        (_, responder), qps = counters_of(loopback, first, second)
        assert responder["shm_sent"] > 100, responder
        check_order(qps)
        for end in first, second:
            end.end()


def test_unreliable_stream(loopback):
    """It stays with what it has begun with: what is overtaken would be lost."""
    first, second = begin_without_memory(loopback, kind="UC")
    first.put("begin", 1000)
    first.begin("stream", "write", 0.5, length=4096, offset=1000, remote_offset=1000)
    time.sleep(0.2)
    ask(second, first)
    posted, good = first.answer()
    assert posted == good > 600
    first.put("final", 1000)
    assert first.do("write", length=4096, offset=1000, remote_offset=1000) == talk.SUCCESS
    until = time.monotonic() + 5
    while second.get(5, 1000) != "final" and time.monotonic() < until:
        time.sleep(0.01)
    assert second.get(5, 1000) == "final"
    (sender, _), _ = counters_of(loopback, first, second)
    assert sender["shm_sent"] == 0, sender


def test_socket_beside_a_stream_through_memory(loopback, monkeypatch):
    """A third process that has no memory gets through to one whose rings are never empty."""
    first, second = talk.pair(loopback)
    assert first.exchange(30, 5000, 1) == 30
    lanes.check_memory_is_used(lanes.shown(loopback, first))
    monkeypatch.setenv(lanes.SETTING, "off")
    third = talk.open_end(loopback)
    here = second.of(1, "open", loopback.device, loopback.gid_index(4))
    second.of(1, "connect", third.here)
    third.connect(here)
    first.begin("stream", "write", 2, length=4096)
    second.begin("wait", seconds=2)
    time.sleep(0.1)
    worst, end = 0, time.monotonic() + 1.5
    while time.monotonic() < end:
        start = time.monotonic()
        assert third.do("write") == talk.SUCCESS
        worst = max(worst, time.monotonic() - start)
    posted, good = first.answer()
    assert posted == good > 600
    second.answer()
    _, (numbers,) = counters_of(loopback, third)
    assert numbers["timeouts"] == 0 and worst < 0.3, (numbers, worst)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__]))
