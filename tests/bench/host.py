# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""The machine that measures: paths, its use by other processes, and network namespaces."""
import contextlib
import os
import platform
import random
import re
import resource
import shutil
import socket
import subprocess
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("UROCE_BUILD_DIR", os.path.join(ROOT, "build"))
LIBRARIES = os.path.join(BUILD, "lib", "uroce")
PROVIDER = os.path.join(LIBRARIES, "liburoce-rdmav34.so")
SERVER_CPU, CLIENT_CPU = 1, 0
# Below the kernel's range of ephemeral ports.
PORTS = range(20000, 32000)


class Failed(Exception):
    """A program could not run, or has failed."""


class Skipped(Exception):
    """This machine, or this build, does not offer what the measurement needs."""


def check_build():
    if not os.path.exists(PROVIDER):
        raise Failed(f"{PROVIDER} is not built: ./build.sh, or set UROCE_BUILD_DIR")


def program(name):
    """The path of one of our bench programs."""
    path = os.path.join(BUILD, "tests", "bin", "bench_" + name)
    if not os.access(path, os.X_OK):
        raise Failed(f"{path} is not built")
    return path


# Settings of uroce for the current measure, from settings().
_SETTINGS = {}


@contextlib.contextmanager
def settings(chosen):
    """Start programs with these settings while the context is active."""
    _SETTINGS.update(chosen)
    try:
        yield
    finally:
        _SETTINGS.clear()


def environment(extra=()):
    """Our environment with uroce's libraries, and with no settings but settings() and extra."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("UROCE_")}
    env["LD_LIBRARY_PATH"] = LIBRARIES
    env.update(_SETTINGS)
    env.update(extra)
    return env


def knows_setting(name):
    """Returns true if the build reads this environment variable."""
    with open(PROVIDER, "rb") as file:
        return name.encode() + b"\0" in file.read()


def free_port():
    while True:
        port = random.choice(PORTS)
        with socket.socket() as probe:
            try:
                probe.bind(("", port))
                return port
            except OSError:
                continue


def listening(pid, port):
    """Returns true if a socket listens on the port in the network namespace of this process."""
    for table in ("tcp", "tcp6"):
        try:
            with open(f"/proc/{pid}/net/{table}", encoding="ascii") as file:
                for line in file.readlines()[1:]:
                    local, state = line.split()[1], line.split()[3]
                    if state == "0A" and int(local.rsplit(":", 1)[1], 16) == port:
                        return True
        except OSError:
            continue
    return False


def _busy_and_stolen():
    with open("/proc/stat", encoding="ascii") as file:
        ticks = [int(word) for word in file.readline().split()[1:]]
    hertz = os.sysconf("SC_CLK_TCK")
    user, nice, system, _, _, irq, softirq, steal = ticks[:8]
    return (user + nice + system + irq + softirq) / hertz, steal / hertz


def _own():
    total = 0.0
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        usage = resource.getrusage(who)
        total += usage.ru_utime + usage.ru_stime
    return total


class Watch:
    """Number of processors used by others from entry to exit; a running child counts as other."""

    def __enter__(self):
        self._start = time.monotonic(), _busy_and_stolen(), _own()
        return self

    def __exit__(self, *_):
        start, (busy, stolen), own = self._start
        elapsed = max(time.monotonic() - start, 1e-3)
        now_busy, now_stolen = _busy_and_stolen()
        others = (now_busy - busy) - (_own() - own) + (now_stolen - stolen)
        self.foreign = max(0.0, others / elapsed)


def _first_line(command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return "unknown"


def describe():
    """Facts about machine and build that a reader needs in order to judge the figures."""
    model = "unknown"
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    commit = _first_line(["git", "-C", ROOT, "-c", f"safe.directory={ROOT}", "describe",
                          "--always", "--dirty"])
    return {"date": time.strftime("%Y-%m-%d %H:%M:%S %z"), "kernel": platform.release(),
            "cpu": model, "cores": os.cpu_count(), "commit": commit,
            "loadavg_start": os.getloadavg()}


class Namespaces:
    """Two network namespaces and a veth between them, made at the first use."""

    INTERFACES = ("ub0", "ub1")
    ADDRESSES = ("10.91.7.1", "10.91.7.2")

    def __init__(self):
        self.names = None

    def _ip(self, *words):
        try:
            subprocess.run(["ip", *words], capture_output=True, text=True, check=True)
        except subprocess.CalledProcessError as error:
            raise Skipped(f"no network namespaces here: {error.stderr.strip()}") from error

    def _set_up(self):
        for name in self.names:
            self._ip("netns", "add", name)
        self._ip("-n", self.names[0], "link", "add", self.INTERFACES[0], "type", "veth", "peer",
                 "name", self.INTERFACES[1], "netns", self.names[1])
        for name, interface, address in zip(self.names, self.INTERFACES, self.ADDRESSES):
            self._ip("-n", name, "link", "set", "lo", "up")
            self._ip("-n", name, "addr", "add", address + "/24", "dev", interface)
            self._ip("-n", name, "link", "set", interface, "up")

    @staticmethod
    def _remove_orphans():
        """Remove namespaces that killed runs have left."""
        done = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=False)
        for name in re.findall(r"^uroce-bench-\d+-[sc]", done.stdout, re.M):
            if not os.path.exists("/proc/" + name.split("-")[2]):
                subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)

    def require(self):
        if os.geteuid() != 0 or not shutil.which("ip"):
            raise Skipped("network namespaces need root and ip")
        if self.names is None:
            self._remove_orphans()
            self.names = [f"uroce-bench-{os.getpid()}-{side}" for side in "sc"]
            self._set_up()
        return self

    def remove(self):
        for name in self.names or ():
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
        self.names = None


NAMESPACES = Namespaces()
