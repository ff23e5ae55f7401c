# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""ibv_rc_pingpong with data check: any two values of different settings are tried together."""
import itertools
import re

import pytest

import harness

FACTORS = {
    "size": (1, 64, 4096, 65536, 1 << 20),
    "mtu": (256, 1024, 4096),
    "wait": ("poll", "events"),
    "ip": (4, 6),
    "where": ("loopback", "veth"),
    "user": ("own", "nobody"),
    "faults": (False, True),
}


def pairs(row):
    return set(itertools.combinations(enumerate(row), 2))


def pairwise():
    """Yields rows of values, so that any two values of different factors are in a row together."""
    rows = list(itertools.product(*FACTORS.values()))
    missing = set().union(*map(pairs, rows))
    while missing:
        best = max(rows, key=lambda row: len(pairs(row) & missing))
        missing -= pairs(best)
        yield pytest.param(dict(zip(FACTORS, best)), id="-".join(map(str, best)))


def iterations(size, faults):
    many = 200 if size <= 65536 else 40
    if faults:
        many = max(4, min(100, (1 << 18) // size))
    return many


@pytest.mark.parametrize("row", pairwise())
def test_pingpong(row, request):
    if row["user"] == "nobody":
        harness.need_root()
    place = request.getfixturevalue(row["where"])
    count = iterations(row["size"], row["faults"])
    command = ["ibv_rc_pingpong", "-d", "{device}", "-g", place.gid_index(row["ip"]), "-c",
               "-s", row["size"], "-m", row["mtu"], "-n", count]
    if row["wait"] == "events":
        command.append("-e")
    env = {"UROCE_FAULT": harness.FAULTS} if row["faults"] else {}
    server, client = harness.start_pair(
        place, command, env=env, user=harness.NOBODY if row["user"] == "nobody" else None)
    # The program has no handshake at its end: an end exits once it has all that it waits for, and
    # must have made sure by then that its last ACK has arrived.
    for process in server, client:
        text = process.done()
        assert f"{2 * count * row['size']} bytes in" in text, process
        assert re.search(rf"^{count} iters in", text, re.MULTILINE), process
        # The program prints this and still exits with 0.
        assert "invalid data" not in text, process
        assert process.errors == "", process
