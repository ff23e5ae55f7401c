# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""End-to-end flow control, seen from outside: one receive at a time, and hardly any RNR NAK."""
import sys
import time

import pytest

import perftest

SECONDS = 2
AT_LEAST = 1000  # messages, so that a percentage means something


def check_flow(place, sender, receiver, most_rnr=0.01):
    """rules C2, C3, C10 and C13 test: the receiver says what it has, the sender goes by it."""
    sending = place.stat(sender.pid)["qps"]
    receiving = place.stat(receiver.pid)["qps"]
    for qp in sending:
        messages = qp["counters"]["rdma_sends"]
        assert messages > AT_LEAST
        assert qp["credits_heard"] is not None and not qp["unlimited"]
        # One receive at a time: never more than one was promised, but for what MSN lags behind.
        assert 0 <= qp["credits_heard"] <= 2
        assert qp["counters"]["rcvd_rnr_err"] < messages * most_rnr, qp
    for qp in receiving:
        messages = qp["counters"]["rdma_recvs"]
        assert messages > AT_LEAST
        assert qp["counters"]["send_rnr_err"] < messages * most_rnr, qp
    volunteered = sum(qp["counters"]["unsolicited_acks_sent"] for qp in receiving)
    heard = sum(qp["counters"]["unsolicited_acks_rcvd"] for qp in sending)
    assert volunteered > 0 and heard > 0


@pytest.mark.parametrize("arguments", [("ib_send_bw", "-s", 64), ("ib_send_bw", "-s", 65536),
                                       ("ib_send_bw", "-s", 1024, "-q", 4),
                                       ("ib_send_lat", "-s", 64)])
def test_one_receive(loopback, arguments):
    server, client = perftest.start(loopback, *arguments, "-r", 1, "-D", SECONDS)
    time.sleep(SECONDS * 0.75)
    check_flow(loopback, client, server, 0.05 if "-q" in arguments else 0.01)
    perftest.finish(server, client)
    perftest.check_report(client, [arguments[2]], None, duration=True)


def test_one_receive_in_both_directions(loopback):
    server, client = perftest.start(loopback, "ib_send_bw", "-s", 1024, "-b", "-r", 1,
                                    "-D", SECONDS)
    time.sleep(SECONDS * 0.75)
    # Each is sender and receiver by turns on a processor that it shares: it posts later.
    check_flow(loopback, client, server, most_rnr=0.25)
    check_flow(loopback, server, client, most_rnr=0.25)
    perftest.finish(server, client)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__]))
