# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""perftest with -D: for some seconds, as many as go."""

import pytest

import harness
import perftest

SECONDS = 5 if harness.LONG else 2


@pytest.mark.parametrize("program", perftest.ALL)
def test_duration(loopback, program):
    server, client = perftest.start(loopback, program, "-D", SECONDS)
    perftest.finish(server, client)
    perftest.check_report(client, [perftest.usual_size(program)], None, duration=True)
