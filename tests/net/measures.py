# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Measurements of table: each runs one round of a group of rows into {(row, column): number}.

Goodput is a fraction of the line rate, 1 being 200 Mb/s.  A row need not have every column; table
prints "-" for a missing one.
"""
import functools

import bottleneck
import flows

LOSSES = (0.001, 0.01, 0.05)
TCP = ("cubic", "bbr")
SETTLE = 1.0     # seconds that flows have to find their rates
SHARED = 5.0     # seconds over which two flows are compared
ALONE = 3.0      # seconds after its start at which the measurement of a single flow ends
LASTS = 4.0      # duration of that flow, seconds: the end of the program is not measured
JOIN_AFTER = 2.0  # seconds that the first flow runs alone
HALF = 0.45      # fraction of the line rate, over STEP, that counts as half of the line
STEP = 0.2       # seconds
DELAY = {"UROCE_FAULT": "delay=1ms"}


def roce(seconds, kind="write", **options):
    return lambda lab: flows.RoceFlow(lab, kind, round(seconds), **options)


def tcp(seconds, congestion):
    return lambda lab: flows.TcpFlow(lab, congestion, seconds)


def of_line(rate):
    return rate / bottleneck.LINE


def alone(lab, flow, settle=0.5, seconds=ALONE):
    """Run one flow by itself; returns the run, and start and end of the time that is measured."""
    run = flows.Run(lab, (0, flow))
    start = run.started()[0] + settle
    return run, start, min(start + seconds - settle, run.flows[0].series.times[-1])


def until_half(series, start, patience=SHARED):
    """Returns the seconds until the flow reaches half of the line rate, or the time limit."""
    for when, rate in series.rates(start, start + patience, STEP):
        if of_line(rate) >= HALF:
            return when - start
    return patience


def join(lab, first, second):
    """Start a second flow while the first has the whole line.

    Returns the run, the start of the second flow, and start and end of the time that is measured.
    """
    run = flows.Run(lab, (0, first), (JOIN_AFTER, second))
    joined = run.started()[1]
    return run, joined, joined + SETTLE, joined + SETTLE + SHARED


def two(lab, what, make, marks, found):
    lab.set(marks=marks)
    seconds = JOIN_AFTER + SETTLE + SHARED
    run, joined, start, end = join(lab, make(seconds + 1), make(seconds - 1))
    rates = [flow.series.rate(start, end) for flow in run.flows]
    found[what, "Jain index"] = flows.jain(rates)
    found[what, "half after, s"] = until_half(run.flows[1].series, joined)
    found[what, "goodput"] = of_line(sum(rates))
    found[what, "backlog p95, kB"] = run.queue.p95(start, end) / 1000
    found[what, "drops"] = run.queue.drops(start, end)
    return run


def share(lab, found):
    run = two(lab, "two uroce, marks", functools.partial(roce, ect=True), True, found)
    two(lab, "two uroce, no marks", roce, False, found)
    for name in TCP:
        for marks in (True, False):
            two(lab, f"two {name}, {'' if marks else 'no '}marks",
                lambda seconds, name=name: tcp(seconds, name), marks, found)
    return run


def one(lab, what, flow, found):
    run, start, end = alone(lab, flow)
    found[what, "goodput"] = of_line(run.flows[0].series.rate(start, end))
    found[what, "backlog p95, kB"] = run.queue.p95(start, end) / 1000
    found[what, "drops"] = run.queue.drops(start, end)
    if isinstance(run.flows[0], flows.RoceFlow):
        found[what, "repeats per packet"] = run.flows[0].repeats()


def marks(lab, found):
    lab.set(marks=True)
    one(lab, "uroce, marks", roce(LASTS, ect=True), found)
    for name in TCP:
        one(lab, f"{name}, marks", tcp(LASTS, name), found)


def tail(lab, found):
    lab.set(bottleneck.SHALLOW)
    one(lab, "uroce, 60 kB tail drop", roce(LASTS), found)
    for name in TCP:
        one(lab, f"{name}, 60 kB tail drop", tcp(LASTS, name), found)


def beside(lab, found):
    for what, marked, queue in (("marks", True, bottleneck.DEEP),
                                ("60 kB tail drop", False, bottleneck.SHALLOW)):
        lab.set(queue, marks=marked)
        seconds = JOIN_AFTER + SETTLE + SHARED
        run, _, start, end = join(lab, tcp(seconds, "cubic"), roce(seconds - 1, ect=marked))
        cubic, ours = run.flows
        row = f"uroce beside cubic, {what}"
        found[row, "goodput"] = of_line(ours.series.rate(start, end))
        found[row, "least in 0.5 s"] = min(of_line(rate) for _, rate in
                                           ours.series.rates(start, end, 0.5))
        found[row, "cubic's goodput"] = of_line(cubic.series.rate(start, end))


def loss(lab, found):
    makers = [(kind.upper(), roce(LASTS, kind)) for kind in ("write", "send", "read")]
    makers += [(name, tcp(LASTS, name)) for name in TCP]
    free = {}
    for rate in (0, *LOSSES):
        lab.set(loss=rate)
        for name, make in makers:
            run, start, end = alone(lab, make)
            goodput = run.flows[0].series.rate(start, end)
            free.setdefault(name, goodput)
            row = f"{name}, loss {rate * 100:g} %"
            found[row, "goodput"] = of_line(goodput)
            found[row, "over loss-free"] = goodput / free[name] if free[name] else 0
            if isinstance(run.flows[0], flows.RoceFlow):
                found[row, "repeats per packet"] = run.flows[0].repeats()


def delay(lab, found):
    """Time to reach 0.9 of the line rate, and goodput after the first second."""
    lab.set()
    run = flows.Run(lab, (0, roce(LASTS, size=1 << 20, env=DELAY)))
    series = run.flows[0].series
    start = series.started()
    row = "1 ms of delay each way, 1 MiB"
    found[row, "goodput"] = of_line(series.rate(start + 1, start + 2.5))
    reached = (when - start for when, rate in series.rates(start, start + 2.5, STEP)
               if of_line(rate) >= 0.9)
    found[row, "0.9 after, s"] = next(reached, 2.5)


GROUPS = {"share": share, "marks": marks, "tail": tail, "beside": beside, "loss": loss,
          "delay": delay}
