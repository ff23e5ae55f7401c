# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""What uroce has reached on the bottleneck and must not lose again.

Only what does not depend on how busy this host is: what is dropped and what is sent again, not how
fast it is.  tests/net/table has the figures.  Each limit is several times what was measured, and a
fraction of what it was before there were marks and windows of a network's law.
"""
import os
import sys

import pytest

import bottleneck
import flows
import harness

SECONDS = 5 if os.environ.get("UROCE_NET") == "long" else 2


def test_two_flows_with_marks_overrun_nothing(lab):
    """Where thousands of packets were dropped in a second."""
    lab.set(marks=True)
    make = flows.RoceFlow
    run = harness.tries(lambda: flows.try_run(
        lab, (0, lambda at: make(at, "write", SECONDS, ect=True)),
        (0.3, lambda at: make(at, "write", SECONDS, ect=True))))[0]
    start, end = max(run.started()) + 0.3, run.queue.samples[-1][0]
    assert run.marked > 0
    assert run.queue.drops(start, end) == 0
    assert run.queue.p95(start, end) < bottleneck.DEEP / 4
    assert all(flow.repeats() < 0.1 for flow in run.flows)


def test_short_queue_without_marks(lab):
    """Where each packet was sent up to four times."""
    lab.set(bottleneck.SHALLOW)
    run = flows.run(lab, lambda at: flows.RoceFlow(at, "write", SECONDS))
    assert run.queue.drops(run.started()[0], run.queue.samples[-1][0]) > 0
    assert run.flows[0].repeats() < 0.5


if __name__ == "__main__":
    sys.exit(pytest.main([__file__]))
