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
FAULTS = "drop=0.02,dup=0.01,reorder=0.02,corrupt=0.01,seed=5"


# Open: with rxe of Linux 6.12 what is asked for again goes wrong, and with that of 6.1 it does not.
# One reason is known, and rxe's: a READ that is repeated after an empty one was carried out is
# refused (remote access error).  Seen too, and not explained: wrong bytes in a READ, and silence.
NOT_UNDERSTOOD_SINCE = (6, 3)


@pytest.fixture(name="repeats")
def repeats_may_fail(request, host):
    if host.peer.kernel >= NOT_UNDERSTOOD_SINCE:
        request.applymarker(pytest.mark.xfail(reason="repeated requests and newer rxe: open"))


@pytest.mark.parametrize("version", (4, 6), ids=("ipv4", "ipv6"))
@pytest.mark.parametrize("who", ("uroce", "rxe"))
def test_every_operation(host, who, version):
    """One after the other in all sizes, so that the one that fails is known by its number."""
    server = host.peer if who == "uroce" else host
    ours, theirs = ends.run(server, "-s", SIZES, "-n", EVERY_REQUEST, "-D", "c", version=version)
    asked = ours if who == "uroce" else theirs
    assert (ours.requests, theirs.requests)[who == "rxe"] == asked.requests == EVERY_REQUEST
    assert not ours.refused()


@pytest.mark.usefixtures("repeats")
@pytest.mark.parametrize("wait", ("poll", "events"))
@pytest.mark.parametrize("lanes,depth", [(2, 8), (16, 4)], ids=("2-qps", "16-qps"))
def test_mixed(server, lanes, depth, wait):
    """Both ask at once, for two minutes in the long form."""
    ours, theirs = ends.run(server, "-q", lanes, "-o", depth, "-S", 32768, "-t", MIXED_SECONDS,
                            *(["-e"] if wait == "events" else []),
                            seconds=MIXED_SECONDS + harness.PATIENCE)
    print(vars(ours), vars(theirs))
    assert ours.requests > lanes * depth and theirs.requests > lanes * depth
    assert not ours.refused()


@pytest.mark.usefixtures("repeats")
@pytest.mark.parametrize("version", (4, 6), ids=("ipv4", "ipv6"))
def test_on_a_bad_wire(server, version):
    """Of what uroce sends: lost, twice, late and wrong."""
    ours, _ = ends.run(server, "-q", 2, "-o", 4, "-S", 16384, "-n", 150, "-T", TIMEOUT,
                       version=version, env={"UROCE_FAULT": FAULTS}, seconds=90)
    counters = ours.stat["counters"]
    assert all(counters[name] for name in ("fault_dropped", "fault_duplicated",
                                           "fault_reordered", "fault_corrupted")), counters
    # What comes was neither damaged nor doubtful.
    assert not ours.refused()


if __name__ == "__main__":
    sys.exit(pytest.main([__file__]))
