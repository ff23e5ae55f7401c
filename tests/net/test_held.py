# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Regression limits for flows over the bottleneck.

Only values that do not depend on the load of this host are tested: drops and retransmissions, not
throughput, which tests/net/table measures.  Each limit is several times the measured value, and a
fraction of the value before uroce had ECN and congestion windows.
"""
import os
import sys

import pytest

import bottleneck
import flows
import harness

SECONDS = 5 if os.environ.get("UROCE_NET") == "long" else 2


def test_two_flows_with_marks_overrun_nothing(lab):
    """Two flows with ECN drop nothing; earlier versions lost thousands of packets per second."""
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
    """Few packets are sent again; earlier versions sent each packet up to four times."""
    lab.set(bottleneck.SHALLOW)
    run = flows.run(lab, lambda at: flows.RoceFlow(at, "write", SECONDS))
    assert run.queue.drops(run.started()[0], run.queue.samples[-1][0]) > 0
    assert run.flows[0].repeats() < 0.5


if __name__ == "__main__":
    sys.exit(pytest.main([__file__]))
