# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Every operation in both roles, alone and mixed; every byte is checked."""
import sys

import pytest

import ends
import harness

SIZES = "0,1,2,3,4,5,63,64,1023,1024,1025,4096,65535,262144"
EVERY_REQUEST = 14 * len(ends.ALL_KINDS)
MIXED_SECONDS = 120 if ends.LONG else 4
# 0.27 s; an emulated host responds within eight of them, even if other processes keep it busy.
TIMEOUT = 16
FAULTS = "drop=0.02,dup=0.01,corrupt=0.01,seed=5"
REORDER = ",reorder=0.02"

# Two bugs of newer rxe, each seen on the wire and in its source; the tests avoid them.
# An earlier ACK that arrives late, after the first response of a READ, completes that READ with
# success although data is missing, and stops the queue pair (Linux commit 5ac814e02ece).
NO_ACK_MAY_BE_LATE_SINCE = (6, 2)
# While the last executed READ or WRITE was an empty one, any retransmitted READ is refused, and a
# retransmitted empty one is not answered (5ff31dfcd6d2).
NOTHING_MAY_BE_EMPTY_SINCE = (6, 3)


def sizes(host, largest):
    """Options for random sizes; they include 0 if rxe handles retransmitted empty requests."""
    least = 1 if host.peer.kernel >= NOTHING_MAY_BE_EMPTY_SINCE else 0
    return ["-L", least, "-S", largest]


@pytest.mark.parametrize("version", (4, 6), ids=("ipv4", "ipv6"))
@pytest.mark.parametrize("who", ("uroce", "rxe"))
def test_every_operation(host, who, version):
    """One request after the other in all sizes; the number of the one that fails identifies it."""
    server = host.peer if who == "uroce" else host
    ours, theirs = ends.run(server, "-s", SIZES, "-n", EVERY_REQUEST, "-D", "c", version=version)
    asked, answered = (ours, theirs) if who == "uroce" else (theirs, ours)
    assert (asked.requests, answered.requests) == (EVERY_REQUEST, 0)
    assert not ours.refused()


@pytest.mark.parametrize("wait", ("poll", "events"))
@pytest.mark.parametrize("connections,depth", [(2, 8), (16, 4)], ids=("2-qps", "16-qps"))
def test_mixed(server, host, connections, depth, wait):
    """Both ends send requests at the same time, for two minutes with UROCE_INTEROP=long."""
    ours, theirs = ends.run(server, "-q", connections, "-o", depth, *sizes(host, 32768),
                            "-t", MIXED_SECONDS, *(["-e"] if wait == "events" else []),
                            seconds=MIXED_SECONDS + harness.PATIENCE)
    print(vars(ours), vars(theirs))
    assert ours.requests > connections * depth and theirs.requests > connections * depth
    assert not ours.refused()


@pytest.mark.parametrize("version", (4, 6), ids=("ipv4", "ipv6"))
def test_on_a_bad_wire(server, host, version):
    """Packets that uroce sends are lost, duplicated, reordered and corrupted."""
    late = host.peer.kernel < NO_ACK_MAY_BE_LATE_SINCE
    ours, _ = ends.run(server, "-q", 2, "-o", 4, *sizes(host, 16384), "-n", 150, "-T", TIMEOUT,
                       version=version, env={"UROCE_FAULT": FAULTS + (REORDER if late else "")},
                       seconds=90)
    counters = ours.stat["counters"]
    for name in ("dropped", "duplicated", "corrupted", *(["reordered"] if late else [])):
        assert counters["fault_" + name], counters
    # The packets from rxe are not changed, so uroce must refuse none.
    assert not ours.refused()


if __name__ == "__main__":
    sys.exit(pytest.main([__file__]))
