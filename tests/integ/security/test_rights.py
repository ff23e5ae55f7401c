# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Between two processes: memory that a peer must not access is unchanged, and the peer gets an
error."""

import pytest

import verbs_peer

LOCAL_WRITE, REMOTE_WRITE, REMOTE_READ, REMOTE_ATOMIC = 1, 2, 4, 8
ALL = LOCAL_WRITE | REMOTE_WRITE | REMOTE_READ | REMOTE_ATOMIC
LENGTH = 65536
PATTERN = "keep" * (LENGTH // 4)

# (name, rights of the region, rights of the queue pair, request, its options)
CASES = [
    ("write-region", ALL & ~REMOTE_WRITE, ALL & ~LOCAL_WRITE, "write", {}),
    ("read-region", ALL & ~REMOTE_READ, ALL & ~LOCAL_WRITE, "read", {}),
    ("atomic-region", ALL & ~REMOTE_ATOMIC, ALL & ~LOCAL_WRITE, "fetch_add", {"compare_add": 1}),
    ("swap-region", ALL & ~REMOTE_ATOMIC, ALL & ~LOCAL_WRITE, "cmp_swp",
     {"compare_add": int.from_bytes(b"keepkeep", "little"), "swap": 1}),
    ("write-key", ALL, ALL & ~LOCAL_WRITE, "write", {"rkey": 0x12345678}),
    ("read-key", ALL, ALL & ~LOCAL_WRITE, "read", {"rkey": 0x12345678}),
    ("write-beyond", ALL, ALL & ~LOCAL_WRITE, "write", {"remote_offset": LENGTH - 4}),
    ("write-before", ALL, ALL & ~LOCAL_WRITE, "write", {"remote_offset": -4}),
    ("write-much-beyond", ALL, ALL & ~LOCAL_WRITE, "write",
     {"remote_offset": LENGTH - 30000, "length": 30004}),
    ("read-beyond", ALL, ALL & ~LOCAL_WRITE, "read",
     {"remote_offset": LENGTH - 30000, "length": 30004}),
    ("write-far-away", ALL, ALL & ~LOCAL_WRITE, "write", {"remote_offset": 1 << 63}),
]


@pytest.mark.parametrize("case", CASES, ids=[case[0] for case in CASES])
def test_access_outside_the_rights(loopback, case):
    _, region, queue_pair, request, options = case
    first = verbs_peer.start(loopback, length=LENGTH)
    target = verbs_peer.start(loopback, length=LENGTH, access=region)
    first.connect(target.here)
    target.connect(first.here, access=queue_pair)
    target.put(PATTERN)
    first.put("evil" * (LENGTH // 4))
    assert first.do(request, **options) == verbs_peer.REM_ACCESS_ERR
    assert target.get(LENGTH) == PATTERN
    # Nothing was read either.
    assert first.get(LENGTH) == "evil" * (LENGTH // 4)
    # The connection has failed, but the processes continue.
    assert first.do("write") == verbs_peer.WR_FLUSH_ERR
    for end in first, target:
        end.close()
        end.end()


@pytest.mark.parametrize("request_name, right", [("write", REMOTE_WRITE), ("read", REMOTE_READ),
                                                 ("fetch_add", REMOTE_ATOMIC)])
def test_queue_pair_without_the_right(loopback, request_name, right):
    first = verbs_peer.start(loopback, length=LENGTH)
    target = verbs_peer.start(loopback, length=LENGTH)
    first.connect(target.here)
    target.connect(first.here, access=ALL & ~LOCAL_WRITE & ~right)
    target.put(PATTERN)
    assert first.do(request_name, compare_add=1) in (
        verbs_peer.REM_ACCESS_ERR, verbs_peer.REM_INV_REQ_ERR)
    assert target.get(LENGTH) == PATTERN
