# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Many queue pairs of one process share the room of its sockets, and each gets on."""
import sys

import pytest

import harness
import perftest

# Their memory, which no cache holds, costs them up to a third of the rate of one; waiting for ACKs
# that had not been asked for cost nine tenths.
WORTH = 0.25
# Other processes of the host may take a measurement's time.
TRIES = 3


def rate(place, *arguments):
    """Megabytes a second of 64 KiB WRITEs."""
    for _ in range(TRIES):
        server, client = perftest.start(place, "ib_write_bw", "-s", 65536, "-D", 2, "-f", 0,
                                        *arguments)
        perftest.finish(server, client)
        if not perftest.had_no_clock(client):
            return perftest.rows(client)[0][3]
    pytest.fail(f"the program could not time the processor's clock in {TRIES} tries")


@pytest.mark.parametrize("signaled", [1, 16])
def test_many_get_on(loopback, signaled):
    ratios = []
    for _ in range(TRIES):
        alone = rate(loopback, "-Q", signaled)
        ratios.append(rate(loopback, "-q", 64, "-Q", signaled) / alone)
        if ratios[-1] >= WORTH:
            return
    pytest.fail(f"64 queue pairs together make {ratios} of the rate of one")


if __name__ == "__main__":
    sys.exit(pytest.main([__file__]))
