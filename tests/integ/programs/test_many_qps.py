# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Many queue pairs of one process share the room of its sockets, and all make progress."""

import pytest

import harness
import perftest

# Lower bound of ratio().  The memory of 64 queue pairs exceeds the caches, which reduces the rate
# by up to a third; a defect, waiting for ACKs that had not been requested, reduced it by nine
# tenths.
WORTH = 0.25


def rate(place, *arguments):
    """Returns the rate of 64 KiB WRITEs in MB/s; None if the program could not measure its clock.
    """
    server, client = perftest.start(place, "ib_write_bw", "-s", 65536, "-D", 2, "-f", 0, *arguments)
    perftest.finish(server, client)
    return None if perftest.had_no_clock(client) else perftest.rows(client)[0][3]


def ratio(place, *arguments):
    """Returns the ratio of the rate of 64 queue pairs to that of one."""
    alone, together = rate(place, *arguments), rate(place, "-q", 64, *arguments)
    return None if None in (alone, together) else together / alone


@pytest.mark.parametrize("signaled", [1, 16])
def test_many_get_on(loopback, signaled):
    harness.good_try(lambda: ratio(loopback, "-Q", signaled), lambda found: found >= WORTH)
