# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""usage: qemu_migrate.py URI true|false

Migrates the guest of source.qmp to that of destination.qmp and writes the memory of both to
source.memory and destination.memory.  true: register all memory first.
"""
import json
import os
import socket
import sys
import time

MEMORY = 64 << 20


class Monitor:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.stream = self.socket.makefile("rw")
        self.stream.readline()
        self.command("qmp_capabilities")

    def command(self, name, **arguments):
        self.stream.write(json.dumps({"execute": name, "arguments": arguments}) + "\n")
        self.stream.flush()
        while True:
            reply = json.loads(self.stream.readline())
            if "error" in reply:
                sys.exit(f"{name}: {reply['error']['desc']}")
            if "return" in reply:
                return reply["return"]


def main():
    uri, pin_all = sys.argv[1], sys.argv[2] == "true"
    source, destination = Monitor("source.qmp"), Monitor("destination.qmp")
    # The loader has filled the memory, and the guest's firmware runs.
    time.sleep(2)
    for monitor in (source, destination):
        monitor.command("migrate-set-capabilities",
                        capabilities=[{"capability": "rdma-pin-all", "state": pin_all}])
    source.command("migrate", uri=uri)
    while (status := source.command("query-migrate")["status"]) not in ("completed", "failed"):
        time.sleep(0.1)
    if status == "failed":
        sys.exit("the source reports that the migration failed")
    while destination.command("query-migrate").get("status") != "completed":
        time.sleep(0.1)
    for monitor, name in ((source, "source"), (destination, "destination")):
        monitor.command("pmemsave", val=0, size=MEMORY, filename=os.path.abspath(name + ".memory"))
        monitor.command("quit")


main()
