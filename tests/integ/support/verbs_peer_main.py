# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""One end of a connection, a process of its own: does what it is told on standard input.

A line is a JSON list [method, argument ...] of End; the answer is a line of JSON.  Between lines it
sleeps in read(): an application that does not poll.
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

    # pyverbs 65 (Debian sid) has each name in the class of its enumeration, and nowhere else.
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
    """How long threads of processes have waited for a processor, from now on."""

    def __init__(self, processes):
        self.processes = processes
        self.before = self.look()

    def look(self):
        found = {}
        for process in self.processes:
            for thread in os.listdir(f"/proc/{process}/task"):
                # One of them may end meanwhile.
                with contextlib.suppress(OSError), open(f"/proc/{process}/task/{thread}/schedstat",
                                                        encoding="utf-8") as file:
                    found[thread] = int(file.read().split()[1])
        return found

    def seconds(self):
        """All together, without those that have ended."""
        return sum(waited - self.before.get(thread, 0)
                   for thread, waited in self.look().items()) / 1e9


class End:
    def __init__(self):
        self.marked = None
        self.others = {}

    def of(self, number, method, *arguments, **options):
        """The method of another End of this process."""
        return getattr(self.others.setdefault(number, End()), method)(*arguments, **options)

    def set(self, name, value):
        """A variable of the environment, for the next context that is opened."""
        os.environ[name] = value

    def open(self, device, gid_index, length=65536, access=FULL_ACCESS, depth=64, kind="RC"):
        """What the peer has to know of this end."""
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
        """With timeout 17 a peer may have no processor for four seconds, with 14 for less than two.
        """
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
        """mark: wait() counts the time from here."""
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
        """[status, wr_id, seconds since the marked post or now] of the next completions, by
        polling."""
        found, start = [], time.monotonic()
        since, self.marked = self.marked or start, None
        while len(found) < count and time.monotonic() - start < seconds:
            for wc in self.cq.poll(count - len(found))[1]:
                found.append([wc.status, wc.wr_id, time.monotonic() - since])
        return found

    def do(self, opcode, **options):
        """Post, wait, and say how it ended: the status."""
        self.post(opcode, **options)
        found = self.wait()
        return found[0][0] if found else None

    def stream(self, opcodes, seconds, depth=32, at_least=0, **options):
        """Keep so many requests under way, for some time and until there were at least so many:
        how many there were, and how many ended well.

        Where there are several opcodes, with blanks between them, they take turns.
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
        """Sleep until the channel has an event, then as wait()."""
        self.cq.req_notify()
        found = self.wait(seconds=0)
        if not found:
            self.channel.get_cq_event(self.cq)
            self.cq.ack_events(1)
            found = self.wait()
        return found

    def pace(self, seconds, sleeping=False, processes=()):
        """One write each millisecond or so: the longest that one was held up, the longest that one
        took, how many there were.

        Held up is what remains of the time when that is taken off for which threads of the
        processes were ready to run and had no processor: it is the scheduler's, and no message
        changes that.  What they slept, in locks or in the kernel's calls, and what they
        computed remains.
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
        """Until there is none left: how many there were."""
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
        """How many rounds of new data came back from the peer's memory as they went there.

        The peer may do the same: what comes from it is at 0, what goes and what came back is not.
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
        """SENDs to another End of this process and back, as ibv_rc_pingpong: how many were good."""
        other, good = self.others[number], 0
        for _ in range(rounds):
            for here, there in (self, other), (other, self):
                there.receive(length)
                good += here.do("send", length=length) == there.wait()[0][0] == e.IBV_WC_SUCCESS
        return good

    def flood(self, number, messages, length, receives, depth=32):
        """SENDs to another End of this process that has few receives, as ib_send_bw -r: how many
        ended well, and how many arrived."""
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
        # It is what the test is about: Python 3.12 and later say on stderr that it is risky.
        warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
        """A child that never uses the device: it sleeps, exits or becomes another program."""
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
        """How long it took without what the processor was with others, as in pace()."""
        waits, start = Waits([os.getpid()]), time.monotonic()
        getattr(self, method)(*arguments)
        return time.monotonic() - start - waits.seconds()

    def longest_sleep(self, seconds, processor):
        """Returns the longest time of a sleep of a millisecond on that processor, as held_up().

        If it is much longer, no process is the reason: a hypervisor has taken the processor.
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
