# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""The peer's link-layer address is not known yet, and the first neighbor solicitation is lost.

This happens on new interfaces; the kernel repeats the solicitation after a second.
"""
import re
import shutil
import time

import pytest

import harness

LOSES_FIRST = """
table ip6 lossy {
    chain input {
        type filter hook input priority 0;
        icmpv6 type nd-neighbor-solicit limit rate 1/day burst 1 packets counter drop
    }
}
"""


def lost(place):
    rules = place.output_of("nft", "list", "table", "ip6", "lossy")
    return int(re.search(r"counter packets (\d+)", rules).group(1))


@pytest.fixture
def forgetful(veth):
    """Both ends have empty neighbor caches and will drop the first solicitation."""
    if not shutil.which("nft"):
        pytest.skip("nft is not installed")
    rules = veth.scratch.file("lossy.nft")
    with open(rules, "w", encoding="utf-8") as file:
        file.write(LOSES_FIRST)
    if veth.run("nft", "-f", rules).popen.returncode:
        pytest.skip("the kernel has no nftables")
    veth.peer.output_of("nft", "-f", rules)
    for place in veth, veth.peer:
        place.output_of("ip", "-6", "neighbour", "flush", "all")
    yield veth
    for place in veth, veth.peer:
        place.output_of("nft", "delete", "table", "ip6", "lossy")


@pytest.mark.parametrize("program", ("ibv_rc_pingpong", "ibv_srq_pingpong"))
def test_first_question_is_lost(forgetful, program):
    """The programs succeed, although their retries last only half a second."""
    began = time.monotonic()
    server, client = harness.start_pair(
        forgetful, [program, "-d", "{device}", "-g", forgetful.gid_index(6), "-n", 100])
    for process in client, server:
        process.done()
    assert lost(forgetful) + lost(forgetful.peer) > 0
    assert time.monotonic() - began >= 0.9
