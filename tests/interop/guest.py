# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""A qemu guest whose kernel has a soft RoCE device, as the peer of a Place of tests/integ.

The guest's network is a tap in the Place's namespace; all of it is gone when qemu ends.  Its
commands travel over a second network, from the namespace's loopback interface to the guest only.
"""
import itertools
import os
import re
import shlex
import shutil
import subprocess
import time

import harness

HERE = os.path.dirname(os.path.abspath(__file__))
QEMU = "qemu-system-x86_64"
CACHE = os.environ.get("UROCE_INTEROP_CACHE", f"/var/tmp/uroce-interop-{os.getuid()}")
MAC, CONTROL_MAC = "52:54:00:77:00:02", "52:54:00:77:ff:02"
CONTROL_PORT = 7000
BOOT_PATIENCE = 180  # seconds; five are usual, and 60 were too few on a busy host
MEMORY_MIB = 512
FIRST_MTU = 1500
PATH_MTU = {1500: 1024, 4200: 4096}  # by MTU of the interface
# Each command costs the guest a dozen emulated processes, so a single one polls for a listener.
AWAIT_LISTENER = (
    "while :; do for table in /proc/net/tcp /proc/net/tcp6; do "
    "while read -r number local remote state rest; do "
    "case $local/$state in *:{port:04X}/0A) exit 0;; esac; done <$table; done; sleep 0.02; done")
RDMA_LISTENER = "rdma resource show cm_id | grep -q ' state LISTEN .*:{port}\\>'"
AWAIT_RDMA_LISTENER = f"until {RDMA_LISTENER}; do sleep 0.02; done"


class Cannot(Exception):
    """The reason why this host cannot run a guest."""


def make_image():
    """Make the kernel and initramfs of the guest, if necessary; returns their directory."""
    if os.path.isdir(CACHE) and os.stat(CACHE).st_uid != os.getuid():
        raise Cannot(f"{CACHE} belongs to somebody else")
    if not shutil.which(QEMU):
        raise Cannot(f"{QEMU} is not installed")
    if not shutil.which("apt-get"):
        raise Cannot("the guest is made of Debian packages, and there is no apt-get")
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        raise Cannot("/dev/net/tun is not to be had")
    made = subprocess.run([os.path.join(HERE, "guest", "make-image"), CACHE], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if made.returncode:
        raise Cannot("no image for the guest: " + (made.stdout.strip() or "?").splitlines()[-1])
    return os.path.join(CACHE, "image")


class Command(harness.Process):
    """A program in the guest; killing it kills that program.  Its output includes standard error,
    since there is one stream from the guest."""

    def __init__(self, guest, *command, env=None, stdin=None, **_):
        words = [str(word) for word in command]
        line = " ".join([*(f"{name}={shlex.quote(value)}" for name, value in (env or {}).items()),
                         shlex.join(words)])
        super().__init__(guest, harness.PYTHON, os.path.join(HERE, "guest", "run"),
                         CONTROL_PORT, line, *([stdin] if stdin else []))
        self.command = words


class Guest(harness.Place):
    """Commands of this Place run in the guest; its peer is the Place that the tap is in."""

    def __init__(self, place, image):
        super().__init__(place.scratch, place.prefix, place.holder)
        self.device, self.address, self.address6 = "rxe0", "10.77.0.2", "fd77::2"
        place.device, place.address, place.address6 = "uroce_tap0", "10.77.0.1", "fd77::1"
        self.peer, place.peer = place, self
        self.mtu = FIRST_MTU
        with open(os.path.join(image, "version"), encoding="ascii") as file:
            self.kernel = tuple(map(int, re.findall(r"\d+", file.read())[:2]))
        self.console = self.scratch.file("console")
        self.add_tap(place)
        self.qemu = harness.Process(place, *self.qemu_command(image))
        place.processes.remove(self.qemu)  # it outlives a test
        self.await_boot()
        self.remote = itertools.count()

    def add_tap(self, place):
        for line in ("ip tuntap add dev tap0 mode tap vnet_hdr",
                     f"ip link set tap0 mtu {self.mtu}",
                     f"ip address add {place.address}/24 dev tap0",
                     f"ip address add {place.address6}/64 dev tap0 nodad",
                     "ip link set tap0 up"):
            added = place.run(*line.split())
            if added.popen.returncode:
                raise Cannot(f"no tap: {added.errors.strip()}")

    def qemu_command(self, image):
        settings = (f"guest.mac={MAC} guest.ip={self.address}/24 guest.ip6={self.address6}/64 "
                    f"guest.mtu={self.mtu}")
        return [QEMU, "-machine", "q35", "-cpu", "max", "-accel", "tcg,thread=multi", "-smp", 2,
                "-m", MEMORY_MIB, "-nodefaults", "-no-user-config", "-display", "none",
                "-no-reboot", "-kernel", os.path.join(image, "kernel"),
                "-initrd", os.path.join(image, "initramfs"),
                "-append", "console=ttyS0 quiet panic=-1 mitigations=off tsc=reliable nokaslr "
                           "audit=0 apparmor=0 no_timer_check " + settings,
                "-serial", f"file:{self.console}",
                "-netdev", "tap,id=test,ifname=tap0,script=no,downscript=no,vhost=off",
                "-device", f"virtio-net-pci,netdev=test,mac={MAC},romfile=",
                "-netdev", "user,id=control,restrict=on,ipv6=off,"
                           f"hostfwd=tcp:127.0.0.1:{CONTROL_PORT}-:7000",
                "-device", f"virtio-net-pci,netdev=control,mac={CONTROL_MAC},romfile=",
                "-object", "rng-random,id=rng,filename=/dev/urandom",
                "-device", "virtio-rng-pci,rng=rng"]

    def console_text(self):
        try:
            with open(self.console, encoding="utf-8", errors="replace") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def await_boot(self):
        until = time.monotonic() + BOOT_PATIENCE
        while "guest: ready" not in self.console_text():
            assert self.qemu.running() and time.monotonic() < until, \
                f"not booted: {self.qemu}\n--- console\n{self.console_text()[-2000:]}"
            time.sleep(0.05)
        # The guest prints this just before it serves commands: the first connection may be refused.
        while (asked := self.run("sh", "-c", "rdma link show rxe0/1 | grep -q 'state ACTIVE'",
                                 seconds=BOOT_PATIENCE)).popen.returncode:
            assert time.monotonic() < until, asked
            time.sleep(0.05)

    def set_mtu(self, mtu):
        """Set the MTU of both ends of the tap; programs that already run would not notice."""
        if mtu != self.mtu:
            self.peer.output_of("ip", "link", "set", "tap0", "mtu", mtu)
            self.output_of("ip", "link", "set", "test0", "mtu", mtu)
            self.mtu = mtu
        for place in self, self.peer:
            shown = place.output_of("ibv_devinfo", "-d", place.device)
            assert re.search(rf"active_mtu:\s+{PATH_MTU[mtu]} ", shown), shown

    def start(self, *command, **options):
        return Command(self, *command, **options)

    def push(self, path):
        """Copy this program into the guest; returns its path there."""
        there = f"/tmp/{os.path.basename(path)}"
        pushed = Command(self, "sh", "-c", f"cat >{there} && chmod 755 {there}", stdin=path)
        pushed.done()
        return there

    def free_port(self):
        # No program of the guest itself uses these ports.
        return next(harness.Place.ports)

    def await_listening(self, server, port):
        self.await_in_guest(server, AWAIT_LISTENER.format(port=port))

    def await_rdma_listener(self, server, port):
        self.await_in_guest(server, AWAIT_RDMA_LISTENER.format(port=port))

    def await_in_guest(self, server, script):
        """Run a script in the guest that waits for a listener; the server must not end before."""
        waiting = self.start("sh", "-c", script)
        until = time.monotonic() + harness.PATIENCE
        while waiting.running():
            assert server.running() and time.monotonic() < until, f"does not listen: {server}"
            time.sleep(0.01)
        assert waiting.popen.returncode == 0, waiting

    def net(self, name):
        return self.output_of("cat", f"/proc/net/{name}").splitlines()[1:]

    def has_rdma_listener(self, port):
        return self.run("sh", "-c", RDMA_LISTENER.format(port=port)).popen.returncode == 0

    def counters(self):
        """The counters of the guest's device."""
        words = self.output_of("rdma", "statistic", "show", "link", "rxe0/1").split()
        return {name: int(value) for name, value in zip(words, words[1:]) if value.isdigit()}

    def end(self):
        self.close()
        self.qemu.kill()
