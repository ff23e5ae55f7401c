# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""The tests' side of hold.c: stock programs wait when their work is done, and can be asked."""
import os
import shutil
import time

import harness


def quiet_stat(place):
    """What uroce-stat says of the processes once nothing comes any more, and when."""
    shown, before = place.stat(), None
    while before is None or [p["qps"] for p in shown] != [p["qps"] for p in before]:
        time.sleep(0.05)
        before, shown = shown, place.stat()
    return {process["pid"]: process for process in shown}, time.time_ns()


class Hold:
    """Of programs that are started with its env."""

    def __init__(self, place):
        self.place, self.until = place, place.scratch.file("hold")
        library = shutil.copy(os.path.join(harness.BUILD, "tests", "hold.so"),
                              place.scratch.file("so"))
        self.env = {"LD_PRELOAD": library, "HOLD_UNTIL": self.until}

    def wait(self, processes):
        """Until all of them have come so far."""
        until = time.monotonic() + harness.PATIENCE
        while not all(os.path.exists(f"{self.until}.{process.pid}") for process in processes):
            assert time.monotonic() < until and all(process.running() for process in processes), \
                [str(process) for process in processes]
            time.sleep(0.01)

    def release(self):
        with open(self.until, "wb"):
            pass

    def counted(self, processes):
        """What uroce-stat says when they are there, and until when; then they go on."""
        self.wait(processes)
        counted = quiet_stat(self.place)
        assert sorted(counted[0]) == sorted(process.pid for process in processes)
        self.release()
        return counted
