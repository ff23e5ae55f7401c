# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Starts unmodified programs on uroce for the tests of tests/integ, and ends all that it started.

A Place is a network namespace of its own (isolated from the rest of the host, and removed when its
holder process ends, however the test ends), or the host itself where namespaces are not permitted.
A Process is a program that runs in a Place, as some user, with a time limit; its output goes to
files.
"""
import contextlib
import functools
import glob
import ipaddress
import itertools
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import time

import pytest

# The directory tests/integ.
HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("UROCE_BUILD_DIR", os.path.join(ROOT, "build"))
# Debian's Python: others may come first in PATH and lack pyverbs.
PYTHON = "/usr/bin/python3"
NOBODY = 65534
PATIENCE = 30  # time limit of a program on a busy host, in seconds
TRIES = 4  # number of tries of a measurement
MORE_TRIES = 8  # number of tries including those that do not count
# UROCE_INTEG_LONG=1: the full durations and sizes that the issue names, for manual runs.
LONG = os.environ.get("UROCE_INTEG_LONG", "0") != "0"
FAULTS = "drop=0.05,dup=0.02,reorder=0.05,corrupt=0.02,seed=1"
TCP_LISTEN = "0A"
# On exit rping closes the event channel that another of its threads is about to read from.  If the
# channel is closed first, that thread ends the program with this error.
RPING_IS_OVER = "rdma_get_cm_event: Bad file descriptor\n"

# Some tests kill with signals that would leave a core file.
resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
# The background jobs of a script start with SIGINT ignored, and could not be ended by it.
signal.signal(signal.SIGINT, signal.default_int_handler)


class Scratch:
    """A directory that every user can read, with a copy of the build: the build itself may be
    accessible to its owner only, and may be rebuilt while the tests run."""

    def __init__(self):
        self.path = tempfile.mkdtemp(prefix="uroce-integ-")
        os.chmod(self.path, 0o755)
        self.lib = os.path.join(self.path, "lib", "uroce")
        self.bin = os.path.join(self.path, "bin")
        shutil.copytree(os.path.join(BUILD, "lib", "uroce"), self.lib, symlinks=True)
        shutil.copytree(os.path.join(BUILD, "bin"), self.bin)
        self.numbers = itertools.count()

    def copy(self, name):
        """Copies a file, whose name is relative to tests/integ, and returns the path of the copy.

        An existing copy is replaced atomically, as other processes may be reading it.
        """
        path = os.path.join(self.path, os.path.basename(name))
        os.replace(shutil.copy(os.path.join(HERE, name), self.file("copy")), path)
        return path

    def file(self, suffix):
        return os.path.join(self.path, f"{next(self.numbers)}.{suffix}")

    def remove(self):
        shutil.rmtree(self.path, ignore_errors=True)


@functools.cache
def cmtime_meets():
    """Returns true if the ends of cmtime synchronize through a TCP port, as in rdma-core 65."""
    if not shutil.which("cmtime"):
        return False
    shown = subprocess.run(["cmtime", "-h"], capture_output=True, text=True, check=False)
    return "-C controller_address" in shown.stdout + shown.stderr


def meet_by_cmtime(place, port, count):
    """Runs cmtime with count connections to a server in this place; returns the ended client."""
    words = ["cmtime", "-C", place.address, "-p", port, "-c", count, "-b"]
    server = place.serve(port, *words, place.address, "-L")
    client = place.peer.start(*words, place.peer.address)
    client.done()
    server.done()
    assert client.output.count("cm connect") == 2, client
    return client


def ucx_has_verbs():
    """Returns true if UCX has its verbs transports: Debian sid's UCX 1.23 is built without them."""
    found = [glob.glob(folder + "/ucx/libuct_ib.so*") for folder in ("/usr/lib/*", "/usr/lib64")]
    return bool(shutil.which("ucx_perftest") and any(found))


class Timeout(AssertionError):
    pass


def tries(measure, good=lambda _: True):
    """Repeats measure() until a result is good, and returns all results, at most TRIES.

    Other programs take processors away from a host's processes, and a hypervisor does so without
    a trace.  That spoils a measurement now and then; an error in our code spoils every one.  A
    measurement that returns None does not count.
    """
    found = []
    for _ in range(MORE_TRIES):
        one = measure()
        if one is not None:
            found.append(one)
            if good(one) or len(found) == TRIES:
                break
    assert found, f"nothing could be measured in {MORE_TRIES} tries"
    return found


def good_try(measure, good):
    """Returns the first good result of measure(), and fails if no try has one."""
    found = tries(measure, good)
    assert good(found[-1]), found
    return found[-1]


def in_time(measure, seconds):
    """Returns the first time from measure() that is less than seconds, and fails if no try has
    one."""
    return good_try(measure, lambda took: took < seconds)


class Process:
    """A program that was started; wait() or kill() ends it."""

    def __init__(self, place, *command, user=None, env=None, interactive=False, lib=None):
        scratch = place.scratch
        self.command = [str(word) for word in command]
        self.out_path, self.err_path = scratch.file("out"), scratch.file("err")
        # However the test ends, no process that it started outlives it.
        prefix = [*place.prefix, "setpriv", "--pdeathsig", "KILL"]
        if user is not None:
            prefix += ["--reuid", str(user), "--regid", str(user), "--clear-groups"]
        environment = {**os.environ, "LD_LIBRARY_PATH": lib or scratch.lib, **(env or {})}
        pipe = subprocess.PIPE if interactive else None
        with open(self.out_path, "wb") as out, open(self.err_path, "wb") as err:
            # In a session of its own, so that a program's children can be ended with it.
            self.popen = subprocess.Popen(prefix + self.command, cwd="/", env=environment,
                                          stdin=pipe or subprocess.DEVNULL, stdout=pipe or out,
                                          stderr=err, text=True, start_new_session=True)
        self.pid = self.popen.pid
        place.processes.append(self)

    @property
    def output(self):
        with open(self.out_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    @property
    def errors(self):
        with open(self.err_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    @property
    def said(self):
        """The text of both streams: a program in a guest has a single stream for them."""
        return self.output + self.errors

    def running(self):
        return self.popen.poll() is None

    def kill(self, number=signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)
        self.popen.wait(PATIENCE)

    def wait(self, seconds=PATIENCE):
        try:
            return self.popen.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise Timeout(f"not over after {seconds} s: {self}") from None

    def await_words(self, words, seconds=PATIENCE):
        """Waits until the program has printed the words."""
        until = time.monotonic() + seconds
        while words not in self.said:
            # The program may have printed the words after the check above, and then ended.
            ended = not self.running()
            assert words in self.said or not ended, self
            assert time.monotonic() < until, self
            time.sleep(0.01)

    def done(self, seconds=PATIENCE):
        """Waits for a program that must succeed; returns its standard output."""
        code = self.wait(seconds)
        if code == 255 and "rping" in self.command and RPING_IS_OVER in self.said:
            return self.output
        assert code == 0, f"exit code {code}: {self}"
        return self.output

    def ticks(self):
        """Processor time used so far, in seconds."""
        with open(f"/proc/{self.pid}/stat", encoding="utf-8") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def __str__(self):
        return (f"{' '.join(self.command)}\n--- output\n{self.output[-3000:]}\n"
                f"--- errors\n{self.errors[-3000:]}")

    __repr__ = __str__


class Place:
    ports = itertools.count(21000)

    def __init__(self, scratch, prefix, holder=None):
        self.scratch, self.prefix, self.holder = scratch, prefix, holder
        self.processes = []
        self.gid_indexes = {}
        self.device = "uroce_lo"
        self.address, self.address6 = "127.0.0.1", "::1"
        self.peer = self  # where the other end of a pair runs

    def start(self, *command, **options):
        return Process(self, *command, **options)

    def run(self, *command, seconds=PATIENCE, **options):
        """Runs a program to its end; returns its process, whatever the exit code."""
        process = self.start(*command, **options)
        process.wait(seconds)
        return process

    def output_of(self, *command, **options):
        process = self.run(*command, **options)
        assert process.popen.returncode == 0, process
        return process.output

    def net(self, name):
        """The lines of a table in /proc/net, as this place sees it."""
        holder = self.holder.pid if self.holder else "self"
        with open(f"/proc/{holder}/net/{name}", encoding="utf-8") as file:
            return file.read().splitlines()[1:]

    def listens(self, port):
        tables = itertools.chain(self.net("tcp"), self.net("tcp6"))
        fields = (line.split() for line in tables)
        return any(f[3] == TCP_LISTEN and int(f[1].split(":")[1], 16) == port for f in fields)

    def has_rdma_listener(self, port, **options):
        stat = self.run(os.path.join(self.scratch.bin, "uroce-stat"), "--json", **options)
        return stat.popen.returncode == 0 and any(
            listener["port"] == int(port) for process in json.loads(stat.output)
            for listener in process["listeners"])

    def await_rdma_listener(self, server, port, **options):
        until = time.monotonic() + PATIENCE
        while not self.has_rdma_listener(port, **options):
            assert server.running() and time.monotonic() < until, f"does not listen: {server}"
            time.sleep(0.01)

    def free_port(self):
        # Place.ports begins below the kernel's ephemeral ports.
        return next(port for port in Place.ports if not self.listens(port))

    def serve(self, port, *command, **options):
        """Start a server and wait until it listens."""
        server = self.start(*command, **options)
        self.await_listening(server, port)
        return server

    def await_listening(self, server, port):
        until = time.monotonic() + PATIENCE
        while not self.listens(port):
            assert server.running() and time.monotonic() < until, f"does not listen: {server}"
            time.sleep(0.01)

    def gids(self, **options):
        """Returns the GID index of each address, in the order of the GID table."""
        text = self.output_of("ibv_devinfo", "-v", "-d", self.device, **options)
        found = re.findall(r"GID\[ *(\d+)\]:\s+(\S+?),", text)
        return {ipaddress.ip_address(address): int(index) for index, address in found}

    def carrier(self):
        """Returns true if the kernel reports the device's interface as up."""
        shown = self.output_of("ip", "-json", "link", "show", self.device.removeprefix("uroce_"))
        return json.loads(shown)[0]["operstate"] == "UP"

    def gid_index(self, version):
        """Returns the GID index of the place's own IPv4 or IPv6 address, cached by the first call.
        """
        if version not in self.gid_indexes:
            address = "::ffff:" + self.address if version == 4 else self.address6
            self.gid_indexes[version] = self.gids()[ipaddress.ip_address(address)]
        return self.gid_indexes[version]

    def filled(self, word):
        """Replaces {device}, {gid4} and {gid6} in a word of a command line by this place's values.
        """
        if not isinstance(word, str):
            return word
        gids = {f"gid{version}": self.gid_index(version) for version in (4, 6)
                if f"{{gid{version}}}" in word}
        return word.format(device=self.device, **gids)

    def stat(self, pid=None, **options):
        """Returns uroce-stat's report of one process, or of all; repeats uroce-stat while a process
        does not answer, as it may have no processor."""
        command = [os.path.join(self.scratch.bin, "uroce-stat"), "--json", *([pid] if pid else [])]
        until = time.monotonic() + PATIENCE
        while True:
            asked = self.run(*command, **options)
            if "does not answer" not in asked.errors or time.monotonic() > until:
                break
        assert asked.popen.returncode == 0, asked
        shown = json.loads(asked.output)
        if pid is None:
            return shown
        assert len(shown) == 1, shown
        return shown[0]

    def sockets(self):
        """Returns the sockets of processes in this place: names of slots, and UDP sockets on port
        4791.

        The broker's own name is left out, as it stays for some seconds after the last process.
        """
        names = {line.split()[-1] for line in self.net("unix")
                 if "@uroce" in line and not re.search(r"@uroce-broker/\d+/\d+$", line)}
        udp = [line for table in ("udp", "udp6") for line in self.net(table)
               if line.split()[1].endswith(":12B7")]
        return names, udp

    def await_no_sockets(self):
        """Waits until the broker has closed all sockets, which it does when it reads that the last
        process has ended."""
        until = time.monotonic() + PATIENCE
        while (left := self.sockets()) != (set(), []):
            assert time.monotonic() < until, left
            time.sleep(0.01)

    def close(self):
        for process in self.processes:
            if process.running():
                process.kill()
        self.processes.clear()


def await_listener(place, server, port, **options):
    """Waits for a listener on this port of librdmacm; options: of uroce-stat, such as its user."""
    place.await_rdma_listener(server, port, **options)


def await_carrier(place):
    """Waits for a new interface's carrier: the kernel reports it asynchronously, late on a busy
    host."""
    until = time.monotonic() + PATIENCE
    while not place.carrier():
        assert time.monotonic() < until, "a new interface does not come up"
        time.sleep(0.01)


def need_root():
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")


def hold(*command):
    """Starts a process that keeps a new namespace; returns None where that is not permitted."""
    holder = subprocess.Popen([*command, "setpriv", "--pdeathsig", "KILL", "sh", "-c",
                               "echo ready && exec sleep 86400"], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
    if holder.stdout.readline() == "ready\n":
        return holder
    holder.wait()
    return None


def enter(holder, user_too):
    flags = ["-U", "--preserve-credentials"] if user_too else []
    return ["nsenter", "-t", str(holder.pid), "-n", *flags]


def new_namespace(scratch, beside=None):
    """Returns a new Place with a loopback interface, or None where namespaces are not permitted.

    beside: a Place that can be connected to the new one
    """
    if beside:
        user_too = "-U" in beside.prefix
        holder = hold(*beside.prefix, "unshare", "-n")
    else:
        user_too = os.geteuid() != 0
        holder = hold("unshare", "-rn" if user_too else "-n")
    if not holder:
        return None
    place = Place(scratch, enter(holder, user_too), holder)
    place.output_of("ip", "link", "set", "lo", "up")
    return place


def release(place):
    place.close()
    if place.holder:
        place.holder.kill()
        place.holder.wait()
        place.holder.stdout.close()


@contextlib.contextmanager
def one_place(scratch):
    """A Place with uroce_lo, which no other process uses if namespaces are permitted."""
    place = new_namespace(scratch) or Place(scratch, [])
    try:
        yield place
    finally:
        release(place)


@contextlib.contextmanager
def two_places(scratch):
    """Two namespaces connected by veth, with IPv4 and IPv6 addresses and an MTU of 9000 bytes."""
    first = new_namespace(scratch)
    second = first and new_namespace(scratch, first)
    try:
        if not second:
            pytest.skip("network namespaces are not permitted here")
        first.output_of("ip", "link", "add", "ura", "mtu", "9000", "type", "veth", "peer", "name",
                        "urb", "mtu", "9000", "netns", second.holder.pid)
        for place, name, number in (first, "ura", 1), (second, "urb", 2):
            place.device, place.address = "uroce_" + name, f"192.0.2.{number}"
            place.address6 = f"2001:db8::{number}"
            place.output_of("ip", "link", "set", name, "up")
            place.output_of("ip", "address", "add", place.address + "/24", "dev", name)
            place.output_of("ip", "address", "add", place.address6 + "/64", "dev", name, "nodad")
        first.peer, second.peer = second, first
        for place in first, second:
            await_carrier(place)
        yield first
    finally:
        for place in first, second:
            if place:
                release(place)


def start_pair(place, command, port_option="-p", client_env=None, **options):
    """Starts server and client of a program with the usual options, and returns both.

    The server runs in the place, the client in its peer; {device}, {gid4} and {gid6} in the command
    are replaced by the values of each.
    """
    port = place.free_port()

    def words(at):
        return [at.filled(word) for word in command] + [port_option, port]

    server = place.serve(port, *words(place), **options)
    if client_env is not None:
        options = {**options, "env": client_env}
    return server, place.peer.start(*words(place.peer), place.address, **options)
