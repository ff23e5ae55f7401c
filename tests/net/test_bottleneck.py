# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Tests of the bottleneck itself: marks, drops and losses occur and are counted."""
import sys

import pytest

import bottleneck
import flows
import harness


def marked_backlog(lab):
    """95th percentile of the backlog, bytes; None: the queue was not sampled in time."""
    run = flows.Run(lab, (0, lambda at: flows.TcpFlow(at, "cubic", 2)))
    start = run.flows[0].series.started()
    assert run.marked > 0
    assert run.queue.drops(start, start + 3) == 0
    # TCP overshoots in slow start; a second later it has reacted to the marks.
    settled = start + 1, start + 2
    return run.queue.p95(*settled) if run.queue.between(*settled) else None


def test_marks_keep_the_queue_short(lab):
    lab.set(marks=True)
    harness.good_try(lambda: marked_backlog(lab), lambda backlog: backlog < bottleneck.SHALLOW)


def test_marks_of_roce_too(lab):
    """uroce sends the ECN bits of the traffic class, and accepts packets that were marked."""
    lab.set(marks=True)
    asked = flows.run(lab, lambda at: flows.RoceFlow(at, "write", 1, ect=True))
    assert asked.marked > 0
    other = flows.run(lab, lambda at: flows.RoceFlow(at, "write", 1, ect=False))
    # perftest's own TCP connection negotiates ECN, and crosses the same queue at the end.
    assert other.marked < asked.marked / 20, (asked.marked, other.marked)


def test_short_queue_drops(lab):
    lab.set(bottleneck.SHALLOW)
    run = flows.Run(lab, (0, lambda at: flows.TcpFlow(at, "cubic", 1)))
    assert run.queue.samples[-1][2] > 0
    assert max(backlog for _, backlog, _ in run.queue.samples) <= bottleneck.SHALLOW


def test_loss(lab):
    lab.set(loss=0.005)
    run = flows.run(lab, lambda at: flows.RoceFlow(at, "write", 1))
    assert run.dropped > 0
    assert run.flows[0].last[0]["counters"]["rcvd_seq_err"] > 0


if __name__ == "__main__":
    sys.exit(pytest.main([__file__]))
