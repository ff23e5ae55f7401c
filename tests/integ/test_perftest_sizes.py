# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""perftest with -a: all sizes from 2 bytes to 8 MiB.

Slow, because the programs measure the processor's frequency for 0.4 s before each line of a report:
those that print latencies run only when UROCE_INTEG_LONG is set.
"""
import sys

import pytest

import harness
import perftest

SHORT = ("ib_send_bw", "ib_write_bw", "ib_read_bw")
PROGRAMS = SHORT + (("ib_send_lat", "ib_write_lat", "ib_read_lat") if harness.LONG else ())
ITERATIONS = 1000 if harness.LONG else 20


@pytest.mark.parametrize("program", PROGRAMS)
def test_all_sizes(loopback, program):
    server, client = perftest.start(loopback, program, "-a", "-n", ITERATIONS)
    # An 8 MiB message of each iteration takes the time that it takes.
    client.wait(60 + ITERATIONS)
    perftest.finish(server, client)
    perftest.check_report(client, perftest.SIZES_OF_ALL, ITERATIONS)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__]))
