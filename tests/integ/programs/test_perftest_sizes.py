# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""perftest with -a: all sizes from 2 bytes to 8 MiB.

Slow, because the programs measure the processor's frequency for 0.4 s before each line of a report:
those that print latencies, 15 s each, run only when UROCE_INTEG_LONG is set.  ib_atomic_bw and
ib_atomic_lat have one size only and refuse -a.
"""

import pytest

import harness
import perftest

SIZED = [p for p in perftest.ALL if "atomic" not in p]
PROGRAMS = SIZED if harness.LONG else [p for p in SIZED if p in perftest.BANDWIDTH]
ITERATIONS = 200 if harness.LONG else 20
# Seconds; how long a pair may take on a host with load 4, with the programs' own work between
# lines.
PATIENCE = 150


@pytest.mark.parametrize("program", PROGRAMS)
def test_all_sizes(loopback, program):
    server, client = perftest.start(loopback, program, "-a", "-n", ITERATIONS)
    client.wait(PATIENCE)
    perftest.finish(server, client)
    perftest.check_report(client, perftest.SIZES_OF_ALL, ITERATIONS)


@pytest.mark.parametrize("program", ("ib_atomic_bw", "ib_atomic_lat"))
def test_size_of_atomics(loopback, program):
    refused = loopback.run(program, "-a")
    assert refused.popen.returncode != 0
    assert "Message size cannot be changed for Atomic tests" in refused.said
