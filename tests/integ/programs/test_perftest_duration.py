# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""perftest with -D: as many iterations as possible within some seconds."""

import pytest

import harness
import perftest

SECONDS = 5 if harness.LONG else 2


def run(place, program):
    server, client = perftest.start(place, program, "-D", SECONDS)
    perftest.finish(server, client)
    return client


def counted_something(client):
    """Returns true if the report counts iterations: there are none if a program had no processor.
    """
    return any(row[1] for row in perftest.rows(client))


@pytest.mark.parametrize("program", perftest.ALL)
def test_duration(loopback, program):
    client = harness.good_try(lambda: run(loopback, program), counted_something)
    perftest.check_report(client, [perftest.usual_size(program)], None, duration=True)
