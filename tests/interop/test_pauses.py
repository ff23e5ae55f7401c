# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Packets that arrive after a pause are accepted like those without one.

The ICRC covers the IPv4 identification of a peer's packet, which a socket does not report, so uroce
must find it; Linux's identification counters advance while nothing is sent.
"""
import sys

import pytest

import ends
import harness

PAUSES = (0, 5, 60) if ends.LONG else (0, 2)
TIMEOUT = 21  # of the queue pairs: 8.6 s, far more than a SEND takes even on a busy host
TIMEOUT_SECONDS = 4.096e-6 * 2 ** TIMEOUT
ASKS = ("-D", "c", "-T", TIMEOUT, "-S", 4096, "-k", "s")
SERVICES = [(*kind, *wait) for kind in ((), ("-u",)) for wait in ((), ("-e",))]
# Receives that an end keeps posted (end.h): this many UC SENDs find one, however slow the end is.
RECEIVES = 16
# Another pair that sends as fast as it can; all of rxe's packets share one identification counter.
BUSY = ("-q", 2, "-o", 16, "-k", "s", "-S", 200)
PAUSE_BESIDE = 5 if ends.LONG else 2
BUSY_SECONDS = 2 * PAUSE_BESIDE + 5  # two pauses, and the time that the pairs take to start
MANY = 1000  # packets of the other pair; a guest sent 4,567 while other tests ran


def check(who, count, ours, theirs):
    assert not ours.refused()
    asked = ours if who == "uroce" else theirs
    assert asked.requests == count
    assert asked.slowest < TIMEOUT_SECONDS, (ours.stat, vars(theirs))
    # rxe's counter of timeouts is no use: it includes expiries of its timer after the response.
    assert not ours.sum("timeouts")


@pytest.mark.parametrize("pause", PAUSES)
@pytest.mark.parametrize("who", ("uroce", "rxe"))
def test_pause(host, who, pause):
    """rule S14 test: no packet with a right ICRC is refused, and no SEND takes a QP timeout.

    RC and UC, polling and sleeping, all pausing at the same time.
    """
    server = host.peer if who == "uroce" else host
    counts = [3 if pause else RECEIVES if "-u" in words else 50 for words in SERVICES]
    pairs = [ends.start(server, *ASKS, *words, "-n", count, "-i", pause or 0.01)
             for words, count in zip(SERVICES, counts)]
    ends.finish(*(process for pair in pairs for process in ends.processes(pair)),
                seconds=3 * pause + harness.PATIENCE)
    for pair, count in zip(pairs, counts):
        check(who, count, *ends.reports(pair))


@pytest.mark.parametrize("who", ("uroce", "rxe"))
def test_pause_beside_traffic(host, who):
    """rule S14 test: the same while the peer sends many packets by another queue pair."""
    server = host.peer if who == "uroce" else host
    before = host.peer.counters()["sent_pkts"]
    busy = ends.start(server, *BUSY, "-t", BUSY_SECONDS)
    pairs = [ends.start(server, *ASKS, *words, "-n", 3, "-i", PAUSE_BESIDE)
             for words in SERVICES[::2]]
    ends.finish(*(process for pair in (busy, *pairs) for process in ends.processes(pair)),
                seconds=BUSY_SECONDS + harness.PATIENCE)
    for pair in pairs:
        check(who, 3, *ends.reports(pair))
    assert host.peer.counters()["sent_pkts"] - before > MANY
    assert not ends.reports(busy)[0].refused()


if __name__ == "__main__":
    sys.exit(pytest.main([__file__]))
