# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""kill -9 of either end during traffic: the other end gets an error, and new ends work at once."""
import sys
import time

import pytest

import ends
import harness

# A timeout is 0.27 s, and after seven of them a request fails: an emulated host that waits for a
# processor responds earlier.  With 7 retries rxe would retransmit forever.
TRAFFIC = ("-q", 4, "-o", 4, "-S", 16384, "-T", 16, "-R", 6)
FOR_EVER = 600
MANY = 100  # packets of each queue pair, before an end is killed
TOLD_WITHIN = 15  # seconds; the specification allows four times 1.9 s, and emulation is slow


def await_traffic(host, process):
    """Wait until each queue pair of the process has received more than MANY packets."""
    until = time.monotonic() + harness.PATIENCE
    while time.monotonic() < until:
        assert process.running(), process
        shown = [end for end in host.stat() if end["pid"] == process.pid]
        if shown and shown[0]["qps"] and all(qp["counters"]["rcvd_pkts"] > MANY
                                             for qp in shown[0]["qps"]):
            return
        time.sleep(0.05)
    raise harness.Timeout(f"no traffic: {process}")


@pytest.mark.parametrize("wait", ("poll", "events"))
@pytest.mark.parametrize("victim", ("uroce", "rxe"))
def test_kill_and_return(host, victim, wait):
    """rule S10 test"""
    more = ["-e"] if wait == "events" else []
    for times in range(3 if ends.LONG else 1):
        (ours, _), theirs = ends.start(host if times % 2 else host.peer, *TRAFFIC, *more,
                                       "-t", FOR_EVER)
        await_traffic(host, ours)
        killed, survivor = (ours, theirs) if victim == "uroce" else (theirs, ours)
        assert killed.running() and survivor.running(), f"{ours}\n{theirs}"
        killed.kill()
        assert survivor.wait(TOLD_WITHIN) == 1, survivor
        assert "transport retry counter exceeded" in survivor.said, survivor
        again, _ = ends.run(host, *TRAFFIC, *more, "-n", 50)
        assert not again.refused()


if __name__ == "__main__":
    sys.exit(pytest.main([__file__]))
