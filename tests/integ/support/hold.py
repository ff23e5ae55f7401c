# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""The tests' side of hold.c: programs wait once their work is done, so that their counters can be
read."""
import os
import shutil
import time

import harness

# Seconds after which packets that have not arrived count as lost, on a busy host.
SETTLED = 5

REFUSED = ("icrc_err", "malformed_pkts", "unknown_qp", "wrong_source", "bad_pkey", "rx_overflow",
           "mad_no_listener", "mad_malformed", "mad_bad_qkey")


def all_arrived(shown):
    """Returns true if these processes have received all packets that they have sent to each other.

    An unsolicited ACK with the first credits may be lost: a queue pair that is not in RTR drops
    packets without counting them.
    """
    missing = early = 0
    for process in shown:
        numbers = process["counters"]
        missing += numbers["fault_duplicated"] - numbers["fault_dropped"]
        missing -= sum(numbers[name] for name in REFUSED)
        for queue_pair in process["qps"]:
            numbers = queue_pair["counters"]
            missing += numbers["sent_pkts"] - numbers["rcvd_pkts"]
            early += numbers["unsolicited_acks_sent"] - numbers["unsolicited_acks_rcvd"]
    return 0 <= missing <= max(0, early)


def quiet_stat(place):
    """Returns uroce-stat's reports by process id, once all packets have arrived, and a time at
    which these reports were valid, ns.

    The time is between two reports with the same counters: packets before that time have been
    counted, and packets after it have not.  Lost packets that no counter shows are waited for
    until SETTLED has passed.
    """
    until = time.monotonic() + SETTLED
    shown = place.stat()
    while True:
        time.sleep(0.025)
        moment, before = time.time_ns(), shown
        time.sleep(0.025)
        shown = place.stat()
        if [p["qps"] for p in shown] == [p["qps"] for p in before] and (
                all_arrived(shown) or time.monotonic() > until):
            return {process["pid"]: process for process in shown}, moment


class Hold:
    """Makes programs that are started with its env wait before they destroy a queue pair."""

    def __init__(self, place):
        self.place, self.until = place, place.scratch.file("hold")
        library = shutil.copy(os.path.join(harness.BUILD, "tests", "hold.so"),
                              place.scratch.file("so"))
        self.env = {"LD_PRELOAD": library, "HOLD_UNTIL": self.until}

    def wait(self, processes):
        """Waits until all of the processes are about to destroy a queue pair."""
        until = time.monotonic() + harness.PATIENCE
        while not all(os.path.exists(f"{self.until}.{process.pid}") for process in processes):
            assert time.monotonic() < until and all(process.running() for process in processes), \
                [str(process) for process in processes]
            time.sleep(0.01)

    def release(self):
        with open(self.until, "wb"):
            pass

    def counted(self, processes):
        """Returns quiet_stat() once all of the processes wait, and then lets them continue."""
        self.wait(processes)
        counted = quiet_stat(self.place)
        assert sorted(counted[0]) == sorted(process.pid for process in processes)
        self.release()
        return counted
