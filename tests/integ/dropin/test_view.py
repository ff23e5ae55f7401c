# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""The view of devices in /sys and /dev that uroce-run makes by a namespace or redirected calls."""
import itertools
import json
import os
import re
import shutil
import subprocess
import time

import pytest

from harness import (HERE, LONG, NOBODY, PATIENCE, PYTHON, await_listener, need_root,
                     ucx_has_verbs)

WAYS = ["namespace", "calls"]
# Root changes to a user without privileges, whom a user namespace can distinguish from others.
SOMEBODY = 12345
USER = SOMEBODY if os.geteuid() == 0 else None
UPDATER = "uroce-view"


def needs(program):
    return pytest.mark.skipif(not shutil.which(program), reason=f"{program} is not installed")


needs_ucx = pytest.mark.skipif(not ucx_has_verbs(), reason="no UCX for verbs is installed")


def view(place, way, *command, prefix=(), seconds=PATIENCE, **options):
    """The finished process of a command that uroce-run has started."""
    options.setdefault("user", USER)
    run = os.path.join(place.scratch.bin, "uroce-run")
    chosen = [f"--view={way}"] if way else []
    return place.run(*prefix, run, *chosen, *command, seconds=seconds, **options)


def output(*arguments, **options):
    process = view(*arguments, **options)
    assert process.popen.returncode == 0, process
    return process.output


def walk(place, way, **options):
    """Runs view_walk.py, which checks the view; returns the found devices, and its errors."""
    process = view(place, way, PYTHON, place.scratch.copy("dropin/view_walk.py"), **options)
    assert process.popen.returncode == 0, process
    return json.loads(process.output), process.errors


def permitted(place, way):
    process = view(place, way, "true")
    if process.popen.returncode:
        pytest.skip(process.errors)
    return way


@pytest.fixture(name="way", params=WAYS)
def each_way(request, loopback):
    return permitted(loopback, request.param)


@pytest.fixture(name="long_way", params=WAYS if LONG else WAYS[:1])
def way_in_the_long_form(request, loopback):
    """For tests that need only one of the ways in the short form."""
    return permitted(loopback, request.param)


def test_everything_is_there(loopback, way):
    devices, errors = walk(loopback, way)
    assert devices["uroce_lo"]["state"] == "4: ACTIVE" and errors == ""
    assert devices["uroce_lo"]["gids"]["0"] == "0000:0000:0000:0000:0000:ffff:7f00:0001"
    assert devices["uroce_lo"]["counters"] > 20


def test_as_root(loopback, long_way):
    need_root()
    assert "uroce_lo" in walk(loopback, long_way, user=None)[0]


@needs("ibstat")
def test_ibstat_and_ibstatus(loopback, way):
    text = output(loopback, way, "ibstat")
    assert "CA 'uroce_lo'" in text and "State: Active" in text and "Rate: 40" in text
    text = output(loopback, way, "ibstatus")
    assert "'uroce_lo' port 1" in text and "4: ACTIVE" in text and "Ethernet" in text


@needs_ucx
def test_ucx_sees_the_device(loopback, way):
    text = output(loopback, way, "ucx_info", "-d")
    assert "Memory domain: uroce_lo" in text
    assert "Transport: rc_verbs" in text and "Transport: ud_verbs" in text


def test_without_a_view_there_is_nothing(loopback):
    if os.path.exists("/sys/class/infiniband"):
        pytest.skip("this host has RDMA devices")
    script = "[ ! -e /sys/class/infiniband ] && ibv_devices"
    assert "uroce_lo" in output(loopback, "none", "sh", "-c", script)


def test_the_rest_stays_as_it_is(loopback, way):
    script = """id -u; id -g; pwd; echo $0 $*; ls /sys/class /dev; ls /sys/class/net
                readlink -f /dev/stdin
                stat -c '%t:%T %a' /dev/null /dev/zero /dev/tty; [ -w /dev/shm ] && echo shm"""
    options = {"prefix": ["env", "-C", "/usr/share"]}

    def seen(chosen):
        words = output(loopback, chosen, "sh", "-c", script, "a b", "c", **options).split("\n")
        return [word for word in words if not word.startswith("infiniband")]

    assert seen(way) == seen("none")


def test_the_exit_code_and_the_pid_are_the_programs(loopback, way):
    assert view(loopback, way, "sh", "-c", "exit 7").popen.returncode == 7
    assert view(loopback, way, "/nonexistent").popen.returncode == 127
    script = "import os, sys; sys.exit(os.getpid() != int(sys.argv[1]))"
    output(loopback, None, "sh", "-c", 'exec "$0" -c "$1" $$', PYTHON, script)


def test_no_child_that_the_program_has_not_started(loopback, way):
    script = """
import os
try:
    os.wait()
except ChildProcessError:
    print("none")
"""
    assert output(loopback, way, PYTHON, "-c", script) == "none\n"


def keepers(place):
    """Returns the number of uroce-view processes in the network namespace of the place."""
    mine = os.stat(f"/proc/{place.holder.pid if place.holder else 'self'}/ns/net").st_ino
    count = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
                name, rest = file.read().split("(", 1)[1].rsplit(")", 1)
            if name == UPDATER and rest.split()[0] != "Z":
                count += os.stat(f"/proc/{pid}/ns/net").st_ino == mine
        except OSError:
            pass
    return count


def await_no_keeper(place):
    until = time.monotonic() + PATIENCE
    while keepers(place):
        assert time.monotonic() < until
        time.sleep(0.02)


def test_nothing_is_left_behind(loopback, way):
    run = os.path.join(loopback.scratch.bin, "uroce-run")
    folder = loopback.scratch.file("tmp")
    os.mkdir(folder)
    os.chmod(folder, 0o777)
    # The keeper of the program that the fixture has run may end some time after the program.
    await_no_keeper(loopback)
    program = loopback.start(run, f"--view={way}", "sh", "-c", "echo ready; exec sleep 60",
                             user=USER, env={"TMPDIR": folder, "XDG_RUNTIME_DIR": ""})
    program.await_words("ready")
    assert keepers(loopback) == 1
    assert bool(os.listdir(folder)) == (way == "calls")
    os.kill(program.pid, 9)
    await_no_keeper(loopback)
    assert os.listdir(folder) == []


# PID 1 of a container without an init: it waits for its own child and for no other process.
NO_REAPER = """
import os, signal, subprocess, sys, time
def status(pid):
    with open(f"/proc/{pid}/status") as file:
        return dict(line.split(":\\t", 1) for line in file if ":\\t" in line)
def others():
    return [status(pid) for pid in os.listdir("/proc") if pid.isdigit() and pid != "1"]
assert os.getpid() == 1
codes = []
for signals in (), (signal.SIGTERM, signal.SIGSTOP, signal.SIGCONT, signal.SIGTERM):
    command = [*sys.argv[3:], "sh", "-c", sys.argv[2 if signals else 1]]
    program = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert program.stdout.readline() == "ready\\n"
    for number in signals:
        program.send_signal(number)
        if number == signal.SIGTERM:
            assert program.stdout.readline() == "TERM\\n"
        else:
            time.sleep(0.1)
    # Nothing but the program holds its output open.
    assert program.stdout.read() == ""
    codes.append(program.wait())
    until = time.monotonic() + 10
    while any(process["State"][0] != "Z" for process in others()):
        assert time.monotonic() < until, others()
        time.sleep(0.01)
print(codes, [process["Name"].strip() for process in others()])
"""
UNTIL_TWO_SIGNALS = """
trap 'echo TERM; count=$((count + 1)); [ $count -lt 2 ] || kill -9 $$' TERM
count=0
echo ready
while :; do sleep 0.01; done
"""


def in_pid_namespace(place, *command):
    prefix = ["unshare", "-pf", "--mount-proc", "--kill-child"]
    if os.geteuid():
        prefix.insert(1, "-Ur")
    if place.run(*prefix, "true").popen.returncode:
        pytest.skip("PID namespaces are not permitted here")
    process = place.run(*prefix, *command)
    assert (process.popen.returncode, process.errors) == (0, ""), process
    return process.output


def test_no_zombie_where_nobody_reaps(loopback, way):
    run = [os.path.join(loopback.scratch.bin, "uroce-run"), "--view=" + way]
    text = in_pid_namespace(loopback, PYTHON, "-c", NO_REAPER, "echo ready; exit 7",
                            UNTIL_TWO_SIGNALS, *run)
    assert text == "[7, -9] []\n"


def test_with_an_init_the_program_has_the_number_of_what_was_started(loopback, way):
    """bash takes the place of an init: it waits for all processes that have lost their parent."""
    run = [os.path.join(loopback.scratch.bin, "uroce-run"), "--view=" + way]
    numbers = in_pid_namespace(loopback, "bash", "-c", '"$@" & echo $!; wait', "bash", *run, "sh",
                               "-c", "echo $$").split()
    assert len(numbers) == 2 and len(set(numbers)) == 1, numbers


COME_AND_GO = """
import os, sys, time
device, node = "/sys/class/infiniband/uroce_vwa", "/dev/infiniband/uroce_vwa"
def wait_for(condition):
    until = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)
def holds(name, text):
    return text in open(device + "/ports/1/" + name).read()
def step():
    print("step", flush=True)
    sys.stdin.readline()
assert not os.path.exists(device)
step()
wait_for(lambda: os.path.exists(device))
assert os.path.exists(node) and holds("gids/0", "c000:0207")
assert os.listdir(device + "/device/net") == ["vwa"]
step()
wait_for(lambda: holds("state", "DOWN"))
step()
wait_for(lambda: not os.path.exists(device) and not os.path.exists(node))
assert os.path.exists("/sys/class/infiniband/uroce_lo")
print("done", flush=True)
"""


def test_interfaces_come_and_go(loopback, way):
    if not loopback.holder:
        pytest.skip("network namespaces are not permitted here")
    run = os.path.join(loopback.scratch.bin, "uroce-run")
    program = loopback.start(run, f"--view={way}", PYTHON, "-c", COME_AND_GO, user=USER,
                             interactive=True)

    def step(*commands):
        assert program.popen.stdout.readline() == "step\n", program
        for command in commands:
            loopback.output_of("ip", *command.split())
        program.popen.stdin.write("\n")
        program.popen.stdin.flush()

    step("link add vwa type veth peer vwb", "address add 192.0.2.7/24 dev vwa",
         "link set vwb up", "link set vwa up")
    step("link set vwa down")
    step("link del vwa")
    assert program.popen.stdout.readline() == "done\n", program
    program.done()


COUNTERS = """
import os, sys, time
base = "/sys/class/infiniband/uroce_lo/ports/1/"
def read(name):
    return int(open(base + name).read())
def reread(file):
    return int(os.pread(file.fileno(), 100, 0))
names = ("hw_counters/rcvd_pkts", "counters/port_rcv_packets", "counters/port_xmit_data")
with open(base + names[0]) as file:
    assert not any(map(read, names)) and read("hw_counters/retry_exceeded_err") == 0
    assert read("hw_counters/fast_retransmits") == read("hw_counters/repairs") == 0
    print("ready", flush=True)
    until = time.monotonic() + 20
    while not (all(map(read, names)) and reread(file) == read(names[0])):
        assert time.monotonic() < until, [read(name) for name in names]
        time.sleep(0.1)
"""


@needs("rping")
def test_counters_are_alive(loopback, long_way):
    run = os.path.join(loopback.scratch.bin, "uroce-run")
    reader = loopback.start(run, f"--view={long_way}", PYTHON, "-c", COUNTERS, user=USER,
                            interactive=True)
    assert reader.popen.stdout.readline() == "ready\n", reader
    port = loopback.free_port()
    # The server keeps running: when a process ends, what it has counted since the last query is
    # lost.
    server = loopback.start("rping", "-s", "-P", "-a", "127.0.0.1", "-p", port, user=USER)
    await_listener(loopback, server, port, user=USER)
    loopback.start("rping", "-c", "-a", "127.0.0.1", "-p", port, "-C", 10, user=USER).done()
    reader.done()
    server.kill()


def test_inside_of_a_view(loopback, long_way):
    run = os.path.join(loopback.scratch.bin, "uroce-run")
    assert "uroce_lo" in walk(loopback, long_way, prefix=[run, "--view=" + long_way])[0]


# Makes the visible files of a kernel device, in a mount namespace.
A_REAL_DEVICE = f"""
mount -t tmpfs none /sys/class
mkdir /sys/class/infiniband /sys/class/net
ln -s ../../kernel /sys/class/infiniband/mlx5_0
mount -t tmpfs none /dev
mkdir /dev/infiniband
mknod -m 666 /dev/null c 1 3
mknod -m 666 /dev/full c 1 7
mknod -m 666 /dev/infiniband/uverbs0 c 1 5
exec setpriv --reuid {SOMEBODY} --regid {SOMEBODY} --clear-groups "$0" "$@"
"""


def test_devices_of_the_kernel_stay(loopback, way):
    need_root()
    if loopback.run("unshare", "-m", "true").popen.returncode:
        pytest.skip("mount namespaces are not permitted here")
    script = """
ls /sys/class/infiniband /dev/infiniband
readlink -f /sys/class/infiniband/mlx5_0
[ -d /sys/class/infiniband/mlx5_0/. ] && cat /sys/class/infiniband/uroce_lo/node_type
head -c 3 /dev/infiniband/uverbs0 | tr '\\0' 0
"""
    text = output(loopback, way, "sh", "-c", script, user=None,
                  prefix=["unshare", "-m", "sh", "-ec", A_REAL_DEVICE])
    assert text.split("\n") == ["/dev/infiniband:", "uroce_lo", "uverbs0", "",
                                "/sys/class/infiniband:", "mlx5_0", "uroce_lo",
                                "/sys/kernel", "1: CA", "000"]


def test_nobody_in_particular(loopback):
    """A user namespace could not distinguish this user from others, so uroce-run uses the calls."""
    need_root()
    devices, errors = walk(loopback, None, user=NOBODY)
    assert "uroce_lo" in devices
    assert "stands for all others" in errors and "redirected calls" in errors
    refused = view(loopback, "namespace", "true", user=NOBODY)
    assert refused.popen.returncode == 125 and "stands for all others" in refused.errors


def test_without_new_privileges(loopback, long_way):
    assert "uroce_lo" in walk(loopback, long_way, prefix=["setpriv", "--no-new-privs"])[0]


def test_in_a_container_of_ones_own(loopback, long_way):
    if loopback.run("unshare", "-Urn", "true", user=USER).popen.returncode:
        pytest.skip("user namespaces are not permitted here")
    prefix = ["unshare", "-Urn", "sh", "-c", 'ip link set lo up && exec "$0" "$@"']
    assert "uroce_lo" in walk(loopback, long_way, prefix=prefix)[0]


# Runs a command under a filter that lets system calls fail with EPERM, as containers do: x86-64,
# arm64.
FILTERED = """
import ctypes, os, platform, struct, sys
numbers = {"x86_64": (165, 272, 308), "aarch64": (40, 97, 268)}[platform.machine()]
code = [(0x20, 0, 0, 0)]
CODE
code += [(0x06, 0, 0, 0x7fff0000), (0x06, 0, 0, 0x00050001)]
filter = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *c) for c in code))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(code), ctypes.addressof(filter)))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.c_void_p(ctypes.addressof(program)), 0, 0) == 0
os.execvp(sys.argv[1], sys.argv[1:])
"""
# mount, unshare and setns
NO_MOUNTS = FILTERED.replace("CODE", """
for i, number in enumerate(numbers):
    code.append((0x15, len(numbers) - i, 0, number))
""")
# mount with MS_REMOUNT: after /sys/class has been covered
NO_REMOUNT = FILTERED.replace("CODE", """
code += [(0x15, 0, 2, numbers[0]), (0x20, 0, 0, 40), (0x45, 1, 0, 32)]
""")
has_filter = pytest.mark.skipif(os.uname().machine not in ("x86_64", "aarch64"),
                                reason="no filter for it")


@has_filter
def test_where_mounts_are_refused(loopback):
    for user in {USER, None}:
        devices, errors = walk(loopback, None, prefix=[PYTHON, "-c", NO_MOUNTS], user=user)
        assert "uroce_lo" in devices
        # As root of a container, or of the place, a program may need its privileges.
        refused = "unshare" if user else "(unshare|a user namespace would take privileges away)"
        line = (rf"uroce-run: no namespaces here \({refused}: Operation not permitted\): "
                "/sys/class/infiniband and /dev/infiniband are shown by redirected calls\n")
        assert re.fullmatch(line, errors), errors


@has_filter
def test_mounts_that_fail_halfway(loopback):
    """Redirected calls replace the namespace, of which nothing remains visible."""
    permitted(loopback, "namespace")
    script = "ls /sys/class /dev; grep ^uroce /proc/self/mounts"
    before = view(loopback, "none", "sh", "-c", script)
    prefix = [PYTHON, "-c", NO_REMOUNT]
    seen = view(loopback, None, "sh", "-c", script, prefix=prefix)
    assert seen.output == before.output, seen
    assert "no namespaces here (mount: Operation not permitted)" in seen.errors
    assert "uroce_lo" in walk(loopback, None, prefix=prefix)[0]


def test_wrong_ways_are_refused(loopback):
    wrong = view(loopback, "nothing", "true")
    assert wrong.popen.returncode == 2 and "--view=namespace" in wrong.errors


OLD_PROGRAM = """
#include <sys/stat.h>
#define USE(name, node) __asm__(".symver " #name ", " #name "@GLIBC_" node)
int __xstat(int, const char *, struct stat *);
int __lxstat(int, const char *, struct stat *);
int __fxstatat(int, int, const char *, struct stat *, int);
USE(__xstat, "2.2.5");
USE(__lxstat, "2.2.5");
USE(__fxstatat, "2.4");
int main(void)
{
	const char *node = "/dev/infiniband/uroce_lo", *device = "/sys/class/infiniband/uroce_lo";
	struct stat status;

	if (__xstat(1, node, &status) || !S_ISCHR(status.st_mode))
		return 1;
	if (__lxstat(1, node, &status) || !S_ISLNK(status.st_mode))
		return 2;
	return __fxstatat(1, -1, device, &status, 0) || !S_ISDIR(status.st_mode) ? 3 : 0;
}
"""


@needs("cc")
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="versions are named for x86-64")
def test_programs_of_an_older_c_library(loopback, way):
    program = loopback.scratch.file("old")
    with open(program + ".c", "w", encoding="ascii") as file:
        file.write(OLD_PROGRAM)
    subprocess.run(["cc", "-w", program + ".c", "-o", program], check=True)
    output(loopback, way, program)


def test_rdma_shows_the_links(loopback, way):
    """pyverbs' tests find the interface of a device by this command."""
    rows = json.loads(output(loopback, way, "rdma", "link", "show", "-j"))
    rows = [row for row in rows if row["ifname"] == "uroce_lo"]
    assert [(row["port"], row["state"], row["netdev"]) for row in rows] == [(1, "ACTIVE", "lo")]
    text = output(loopback, way, "rdma", "link", "show", "uroce_lo/1")
    assert text == "link uroce_lo/1 state ACTIVE physical_state LINK_UP netdev lo \n"
    assert view(loopback, way, "rdma", "link", "show", "nothing").popen.returncode == 1


def test_the_variable_of_the_calls_is_known(loopback):
    process = view(loopback, "calls", "ibv_devinfo", "-d", "uroce_lo")
    assert (process.popen.returncode, process.errors) == (0, ""), process


UCX_TESTS = ["tag_lat", "tag_bw", "ucp_put_lat", "ucp_put_bw", "ucp_get", "ucp_am_lat", "ucp_am_bw",
             "ucp_add", "ucp_fadd", "ucp_swap", "ucp_cswap", "stream_lat", "stream_bw"]
UCX_SIZES = [8, 4096, 1 << 20]
UCX_SHORT = [("namespace", "rc", "tag_bw", 1 << 20), ("calls", "ud", "ucp_am_lat", 4096)]
UCX_LONG = [case for case in itertools.product(WAYS, ["rc", "ud"], UCX_TESTS, UCX_SIZES)
            if case[3] == 8 or case[2] not in ("ucp_add", "ucp_fadd", "ucp_swap", "ucp_cswap")]


def alone():
    """Options by which a ucx_perftest that was built with MPI (Debian 13) runs without MPI."""
    shown = subprocess.run(["ucx_perftest", "-h"], capture_output=True, text=True, check=False)
    return ["-P", "0"] if "-P <0|1>" in shown.stdout + shown.stderr else []


def ucx_pair(place, way, *words, env):
    run = [os.path.join(place.scratch.bin, "uroce-run"), f"--view={way}", "ucx_perftest", *alone()]
    port = place.free_port()
    options = {"user": USER, "env": {"UCX_WARN_UNUSED_ENV_VARS": "n", **env}}
    server = place.serve(port, *run, "-p", port, **options)
    client = place.peer.start(*run, "-p", port, place.address, *words, **options)
    client.done(120)
    server.done()


@needs_ucx
@pytest.mark.parametrize("way, transport, test, size", UCX_LONG if LONG else UCX_SHORT)
def test_ucx(loopback, way, transport, test, size):
    # Gets over ud are slow: their data is returned in pieces.
    count = 10 if size > 4096 else 100
    ucx_pair(loopback, permitted(loopback, way), "-t", test, "-s", size, "-n", count, "-w", 2,
             env={"UCX_TLS": transport + ",self", "UCX_NET_DEVICES": "uroce_lo:1"})


def test_the_loopback_device_can_be_left_out(veth):
    env = {"UROCE_LOOPBACK": "off"}
    names = "ls /sys/class/infiniband; ibv_devices"
    shown = view(veth, "calls", "sh", "-c", names, env=env)
    assert "uroce_ura" in shown.output and "uroce_lo" not in shown.output, shown
    shown = view(veth, "calls", "sh", "-c", names)
    assert shown.output.count("uroce_lo") == 2, shown


@needs_ucx
def test_ucx_between_hosts(veth):
    """Without UROCE_LOOPBACK=off UCX would use uroce_lo on both hosts."""
    ucx_pair(veth, "calls", "-t", "tag_bw", "-s", 65536, "-n", 20, "-w", 2,
             env={"UROCE_LOOPBACK": "off", "UCX_TLS": "rc,self"})


# Restrictions of a user by a container or an administrator.
TIED = {"container": ["unshare", "-Urn", "sh", "-c", 'ip link set lo up && exec "$0" "$@"'],
        "no-new-privileges": ["setpriv", "--no-new-privs"],
        "no-mounts": [PYTHON, "-c", NO_MOUNTS]}
TIED_LONG = list(itertools.product(TIED, ["rc", "ud"], UCX_TESTS))
# Both ends in one script, because some of these environments can be entered only once.
TIED_PAIR = """
run=$1 size=$2 test=$3
shift 3
$run ibstat uroce_lo | grep Active
$run ibstatus | grep uroce_lo
$run ucx_info -d | grep 'Memory domain: uroce_lo'
$run fi_info -p verbs | grep 'domain: uroce_lo'
$run ucx_perftest "$@" -p 18715 &
server=$!
until ss -Hltn 'sport = :18715' | grep -q .; do kill -0 $server; sleep 0.1; done
$run ucx_perftest "$@" -p 18715 -t $test -s $size -n 20 -w 2 127.0.0.1
wait $server
echo all
"""


@needs_ucx
@needs("ibstat")
@needs("fi_info")
@pytest.mark.skipif(os.uname().machine not in ("x86_64", "aarch64"), reason="no filter for it")
@pytest.mark.parametrize("how, transport, test",
                         TIED_LONG if LONG else [("no-mounts", "rc", "tag_bw")])
def test_ucx_where_little_is_permitted(loopback, how, transport, test):
    if loopback.run(*TIED["container"], "true", user=USER).popen.returncode:
        pytest.skip("user namespaces are not permitted here")
    atomic = test in ("ucp_add", "ucp_fadd", "ucp_swap", "ucp_cswap")
    run = os.path.join(loopback.scratch.bin, "uroce-run")
    text = loopback.output_of(
        *TIED[how], "bash", "-euo", "pipefail", "-c", TIED_PAIR, "tied", run,
        8 if atomic else 65536, test, *alone(), user=USER, seconds=120,
        env={"UCX_TLS": transport + ",self", "UCX_NET_DEVICES": "uroce_lo:1",
             "UCX_WARN_UNUSED_ENV_VARS": "n"})
    assert text.endswith("all\n")


MPI_SHORT = [("namespace", "rc", 2)]
MPI_LONG = list(itertools.product(WAYS, ["rc", "ud_verbs"], [2, 4]))
MPI_OPTIONS = ["--oversubscribe", "--mca", "pml", "ucx", "--mca", "osc", "ucx", "--mca", "btl",
               "^openib", "--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any"]


@needs("mpirun")
@needs("mpicc")
@needs_ucx
@pytest.mark.parametrize("way, transport, ranks", MPI_LONG if LONG else MPI_SHORT)
def test_open_mpi(loopback, way, transport, ranks):
    program = os.path.join(loopback.scratch.path, "mpi_check")
    if not os.path.exists(program):
        subprocess.run(["mpicc", "-O1", os.path.join(HERE, "dropin", "mpi_check.c"), "-o", program],
                       check=True)
    home = loopback.scratch.file("home")
    os.mkdir(home)
    os.chmod(home, 0o777)
    env = {"HOME": home, "TMPDIR": home, "UCX_TLS": transport + ",self",
           "UCX_NET_DEVICES": "uroce_lo:1", "OMPI_ALLOW_RUN_AS_ROOT": "1",
           "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    text = output(loopback, permitted(loopback, way), "mpirun", *MPI_OPTIONS, "-np", ranks,
                  program, env=env, seconds=200)
    assert f"{ranks} ranks: all data is right" in text
