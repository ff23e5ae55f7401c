# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Every operation in both roles, alone and mixed, with every byte looked at."""
import sys

import pytest

import ends
import harness

SIZES = "0,1,2,3,4,5,63,64,1023,1024,1025,4096,65535,262144"
EVERY_REQUEST = 14 * len(ends.ALL_KINDS)
MIXED_SECONDS = 120 if ends.LONG else 4
# 0.27 s, and eight of them are more than an emulated host is silent that others keep busy.
TIMEOUT = 16
FAULTS = "drop=0.02,dup=0.01,corrupt=0.01,seed=5"
REORDER = ",reorder=0.02"

# Two faults of newer rxe, each seen on the wire and in its source; the tests go around them.
# An ACK that comes behind the first response of a READ though it was sent before ends that READ, as
# a success with what has come so far, and stops the queue pair (Linux commit 5ac814e02ece).
NO_ACK_MAY_BE_LATE_SINCE = (6, 2)
# While the last READ or WRITE that was carried out was an empty one, any READ that is asked for
# again is refused, and an empty one that is asked for again is not answered (5ff31dfcd6d2).
NOTHING_MAY_BE_EMPTY_SINCE = (6, 3)


def sizes(host, largest):
    """At random; empty ones are among them if they may be asked for again."""
    least = 1 if host.peer.kernel >= NOTHING_MAY_BE_EMPTY_SINCE else 0
    return ["-L", least, "-S", largest]


@pytest.mark.parametrize("version", (4, 6), ids=("ipv4", "ipv6"))
@pytest.mark.parametrize("who", ("uroce", "rxe"))
def test_every_operation(host, who, version):
    """One after the other in all sizes, so that the one that fails is known by its number."""
    server = host.peer if who == "uroce" else host
    ours, theirs = ends.run(server, "-s", SIZES, "-n", EVERY_REQUEST, "-D", "c", version=version)
    asked, answered = (ours, theirs) if who == "uroce" else (theirs, ours)
    assert (asked.requests, answered.requests) == (EVERY_REQUEST, 0)
    assert not ours.refused()


@pytest.mark.parametrize("wait", ("poll", "events"))
@pytest.mark.parametrize("connections,depth", [(2, 8), (16, 4)], ids=("2-qps", "16-qps"))
def test_mixed(server, host, connections, depth, wait):
    """Both ask at once, for two minutes in the long form."""
    ours, theirs = ends.run(server, "-q", connections, "-o", depth, *sizes(host, 32768),
                            "-t", MIXED_SECONDS, *(["-e"] if wait == "events" else []),
                            seconds=MIXED_SECONDS + harness.PATIENCE)
    print(vars(ours), vars(theirs))
    assert ours.requests > connections * depth and theirs.requests > connections * depth
    assert not ours.refused()


@pytest.mark.parametrize("version", (4, 6), ids=("ipv4", "ipv6"))
def test_on_a_bad_wire(server, host, version):
    """Of what uroce sends: lost, twice, late and wrong."""
    late = host.peer.kernel < NO_ACK_MAY_BE_LATE_SINCE
    ours, _ = ends.run(server, "-q", 2, "-o", 4, *sizes(host, 16384), "-n", 150, "-T", TIMEOUT,
                       version=version, env={"UROCE_FAULT": FAULTS + (REORDER if late else "")},
                       seconds=90)
    counters = ours.stat["counters"]
    for name in ("dropped", "duplicated", "corrupted", *(["reordered"] if late else [])):
        assert counters["fault_" + name], counters
    # What comes was neither damaged nor doubtful.
    assert not ours.refused()


if __name__ == "__main__":
    sys.exit(pytest.main([__file__]))
