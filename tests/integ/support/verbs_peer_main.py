# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""One end of a connection, in a process of its own that executes commands from standard input.

A line is a JSON list [method of End, arguments, options]; the answer is a line of JSON.  Between
lines the process sleeps in read(), like an application that does not poll.
"""
import contextlib
import json
import os
import random
import resource
import sys
import time
import types
import warnings

from pyverbs.addr import AHAttr, GID, GlobalRoute
from pyverbs.cq import CQ, CompChannel
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import RecvWR, SendWR, SGE

try:
    from pyverbs import enums as e
except ImportError:
    from pyverbs import libibverbs_enums

    # pyverbs 65 (Debian sid) has each name in the class of its enumeration only.
    e = types.SimpleNamespace(**{
        name: int(value) for kind in vars(libibverbs_enums).values()
        for name, value in getattr(kind, "__members__", {}).items()})

FULL_ACCESS = (e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ |
               e.IBV_ACCESS_REMOTE_ATOMIC)
QP_REMOTE_ACCESS = FULL_ACCESS & ~e.IBV_ACCESS_LOCAL_WRITE
KINDS = {"RC": e.IBV_QPT_RC, "UC": e.IBV_QPT_UC}
OPCODES = {"send": e.IBV_WR_SEND, "write": e.IBV_WR_RDMA_WRITE, "read": e.IBV_WR_RDMA_READ,
           "cmp_swp": e.IBV_WR_ATOMIC_CMP_AND_SWP, "fetch_add": e.IBV_WR_ATOMIC_FETCH_AND_ADD}


class Waits:
    """Measures how long the threads of processes wait for a processor, from its creation on."""

    def __init__(self, processes):
        self.processes = processes
        self.before = self.look()

    def look(self):
        found = {}
        for process in self.processes:
            for thread in os.listdir(f"/proc/{process}/task"):
                # The thread may have ended since listdir().
                with contextlib.suppress(OSError), open(f"/proc/{process}/task/{thread}/schedstat",
                                                        encoding="utf-8") as file:
                    found[thread] = int(file.read().split()[1])
        return found

    def seconds(self):
        """Returns the sum of all threads, without those that have ended."""
        return sum(waited - self.before.get(thread, 0)
                   for thread, waited in self.look().items()) / 1e9


class End:
    def __init__(self):
        self.marked = None
        self.others = {}

    def of(self, number, method, *arguments, **options):
        """Calls a method of another End of this process."""
        return getattr(self.others.setdefault(number, End()), method)(*arguments, **options)

    def set(self, name, value):
        """Sets an environment variable for the next context that is opened."""
        os.environ[name] = value

    def open(self, device, gid_index, length=65536, access=FULL_ACCESS, depth=64, kind="RC"):
        """Creates the objects of this end; returns the attributes that the peer needs."""
        self.context = Context(name=device)
        self.gid_index = gid_index
        self.pd = PD(self.context)
        self.channel = CompChannel(self.context)
        self.cq = CQ(self.context, 2 * depth, None, self.channel, 0)
        self.mr = MR(self.pd, length, access)
        self.mr.write(bytes(length).decode(), length)
        cap = QPCap(max_send_wr=depth, max_recv_wr=depth, max_send_sge=1, max_recv_sge=1)
        self.qp = QP(self.pd, QPInitAttr(qp_type=KINDS[kind], scq=self.cq, rcq=self.cq, cap=cap,
                                         sq_sig_all=1))
        gid = self.context.query_gid(1, gid_index).gid
        return {"pid": os.getpid(), "qpn": self.qp.qp_num, "gid": gid, "addr": self.mr.buf,
                "rkey": self.mr.rkey}

    def connect(self, peer, timeout=17, retry_count=7, access=QP_REMOTE_ACCESS, mtu=3):
        """With timeout 17 the peer may be without a processor for four seconds, with 14 for less
        than two."""
        self.peer = peer
        attr = QPAttr(port_num=1)
        attr.qp_access_flags = access
        self.qp.to_init(attr)
        route = GlobalRoute(dgid=GID(peer["gid"]), sgid_index=self.gid_index)
        route.hop_limit = 64
        attr.ah_attr = AHAttr(is_global=1, port_num=1, gr=route)
        attr.dest_qp_num = peer["qpn"]
        attr.path_mtu = mtu
        attr.max_dest_rd_atomic = attr.max_rd_atomic = 8
        attr.min_rnr_timer = 1
        attr.timeout = timeout
        attr.retry_cnt = retry_count
        attr.rnr_retry = 7
        self.qp.to_rts(attr)

    def post(self, opcode, length=8, offset=0, remote_offset=0, compare_add=0, swap=0, rkey=None,
             wr_id=0, mark=False):
        """mark: wait() measures times from this post on."""
        sge = SGE(self.mr.buf + offset, length, self.mr.lkey)
        wr = SendWR(wr_id=wr_id, num_sge=1, sg=[sge], opcode=OPCODES[opcode],
                    send_flags=e.IBV_SEND_SIGNALED)
        rkey = self.peer["rkey"] if rkey is None else rkey
        addr = (self.peer["addr"] + remote_offset) % (1 << 64)
        if opcode in ("cmp_swp", "fetch_add"):
            wr.set_wr_atomic(rkey, addr, compare_add, swap)
        elif opcode != "send":
            wr.set_wr_rdma(rkey, addr)
        if mark:
            self.marked = time.monotonic()
        self.qp.post_send(wr)

    def receive(self, length=8, offset=0, wr_id=0):
        self.qp.post_recv(RecvWR(wr_id=wr_id, num_sge=1,
                                 sg=[SGE(self.mr.buf + offset, length, self.mr.lkey)]))

    def wait(self, count=1, seconds=20):
        """Polls for completions; returns [status, wr_id, seconds since the marked post or the call]
        of each."""
        found, start = [], time.monotonic()
        since, self.marked = self.marked or start, None
        while len(found) < count and time.monotonic() - start < seconds:
            for wc in self.cq.poll(count - len(found))[1]:
                found.append([wc.status, wc.wr_id, time.monotonic() - since])
        return found

    def do(self, opcode, **options):
        """Posts a request; returns the status of its completion, or None after a time limit."""
        self.post(opcode, **options)
        found = self.wait()
        return found[0][0] if found else None

    def stream(self, opcodes, seconds, depth=32, at_least=0, **options):
        """Keeps depth requests outstanding, for this time and until at_least requests have been
        posted.  Returns the numbers of requests posted and completed successfully.

        Several opcodes, separated by blanks, take turns.
        """
        posted, found, end = 0, [], time.monotonic() + seconds
        opcodes = opcodes.split()
        while time.monotonic() < end or posted < at_least:
            while posted - len(found) < depth:
                self.post(opcodes[posted % len(opcodes)], **options)
                posted += 1
            found += self.cq.poll(depth)[1]
        good = sum(wc.status == e.IBV_WC_SUCCESS for wc in found)
        return posted, good + sum(not status for status, *_ in self.wait(posted - len(found)))

    def wait_event(self):
        """Sleeps until the channel has an event, then returns like wait()."""
        # uroce also sends an event for a completion that has arrived since the last poll.
        self.cq.req_notify()
        self.channel.get_cq_event(self.cq)
        self.cq.ack_events(1)
        return self.wait()

    def pace(self, seconds, sleeping=False, processes=()):
        """Posts a write about every millisecond.  Returns [longest delay, longest time of a write,
        number of writes], or None if a write failed.

        The delay of a write is its time without the time for which threads of the processes were
        ready to run but had no processor: the scheduler causes that, and no message changes it.
        Time that they slept, in locks or in system calls, and time that they computed is included.
        """
        held_up, took, end = [], [], time.monotonic() + seconds
        while time.monotonic() < end:
            waits, start = Waits(processes), time.monotonic()
            if sleeping:
                self.cq.req_notify()
            self.post("write")
            found = self.wait_event() if sleeping else self.wait()
            took.append(time.monotonic() - start)
            held_up.append(took[-1] - waits.seconds())
            if not found or found[0][0] != e.IBV_WC_SUCCESS:
                return None
            time.sleep(0.001)
        return [max(held_up), max(took), len(took)]

    def use_up_descriptors(self):
        """Opens descriptors until none is left; returns how many it opened."""
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
        count = 0
        try:
            while True:
                os.dup(0)
                count += 1
        except OSError:
            return count

    def put(self, text, offset=0):
        self.mr.write(text, len(text), offset)

    def get(self, length, offset=0):
        return self.mr.read(length, offset).decode("latin-1")

    def exchange(self, rounds, length, seed):
        """Writes new data to the peer's memory and reads them back in each round; returns the
        number of rounds in which they came back unchanged.

        The peer may do the same: its data arrive at offset 0, which this end does not use itself.
        """
        rng, right, goes, back = random.Random(seed), 0, 16384, 32768
        for _ in range(rounds):
            text = "".join(rng.choices("abcdefgh", k=length))
            self.put(text, goes)
            if (self.do("write", length=length, offset=goes) or
                    self.do("read", length=length, offset=back)):
                break
            right += self.get(length, back) == text
        return right

    def pingpong(self, number, rounds, length):
        """Exchanges SENDs with another End of this process, like ibv_rc_pingpong; returns how many
        succeeded."""
        other, good = self.others[number], 0
        for _ in range(rounds):
            for here, there in (self, other), (other, self):
                there.receive(length)
                good += here.do("send", length=length) == there.wait()[0][0] == e.IBV_WC_SUCCESS
        return good

    def flood(self, number, messages, length, receives, depth=32):
        """SENDs messages to another End of this process that has few receives, like ib_send_bw -r;
        returns how many SENDs succeeded, and how many messages arrived."""
        other, posted, sent, came = self.others[number], 0, [], []
        for _ in range(receives):
            other.receive(length)
        end = time.monotonic() + 20
        while len(sent) + len(came) < 2 * messages and time.monotonic() < end:
            while posted < messages and posted - len(sent) < depth:
                self.post("send", length)
                posted += 1
            for wc in other.cq.poll(receives)[1]:
                came.append(wc.status)
                other.receive(length)
            sent += [wc.status for wc in self.cq.poll(depth)[1]]
        return sent.count(e.IBV_WC_SUCCESS), came.count(e.IBV_WC_SUCCESS)

    def fork(self, what):
        """Makes a child that never uses the device: it sleeps, exits or executes another program.
        Returns its process id."""
        # Python 3.12 and later warn on stderr that such a fork is risky; the test is about it.
        warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
        child = os.fork()
        if child == 0:
            if what == "sleep":
                time.sleep(60)
            elif what == "exec":
                os.execv("/bin/sleep", ["sleep", "60"])
            elif what == "exit":  # by way of all exit handlers
                sys.exit(0)
            os._exit(0)
        return child

    def reap(self, child):
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    def held_up(self, method, *arguments):
        """Returns the time of a call in seconds, without the time that threads waited for a
        processor, as in pace()."""
        waits, start = Waits([os.getpid()]), time.monotonic()
        getattr(self, method)(*arguments)
        return time.monotonic() - start - waits.seconds()

    def longest_sleep(self, seconds, processor):
        """Returns the longest time of a sleep of 1 ms on that processor, as measured by held_up().

        A time much longer than 1 ms is not due to other processes: a hypervisor has taken the
        processor.
        """
        os.sched_setaffinity(0, [processor])
        found, end = [], time.monotonic() + seconds
        while time.monotonic() < end:
            found.append(self.held_up("sleep", 0.001))
        return max(found)

    sleep = staticmethod(time.sleep)

    def close(self):
        for one in (self.qp, self.cq, self.channel, self.mr, self.pd, self.context):
            one.close()


def main():
    end = End()
    for line in sys.stdin:
        method, arguments, options = json.loads(line)
        print(json.dumps(getattr(end, method)(*arguments, **options)), flush=True)


main()
