# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""uroce-flow: schemes of flow control over uroce, and the negative controls that must fail."""
import json
import os

import pytest

import harness

PROMISING = ["rds", "rds-lowwater", "rds-mainline", "o2iblnd-v1", "o2iblnd-v2", "smbd", "rxm",
             "nccl", "rsockets", "perftest"]


def program(place):
    return os.path.join(place.scratch.bin, "uroce-flow")


def flow(place, *arguments, code=0, seconds=harness.PATIENCE):
    """Returns the runs of one call; code 1 means that a run did not end as predicted."""
    process = place.run(program(place), "--json", *arguments, seconds=seconds)
    assert process.popen.returncode == code, process
    return json.loads(process.output)


def one(place, scenario, scheme, *arguments):
    run, = flow(place, "--scenario", scenario, "--scheme", scheme, *arguments)
    assert run["verdict"] == run["predicted"], run
    return run


def test_rnr_and_a_promise(loopback):
    """Without credits messages are refused, with credits none are; data arrive in both cases."""
    rnr = one(loopback, "one-way", "rnr", "--count=200")
    assert rnr["rnr_naks"] > 0
    for scheme in PROMISING:
        run = one(loopback, "one-way", scheme, "--count=200")
        assert run["sides"][1]["consumed"] == 200
        assert sum(side["overruns"] for side in run["sides"]) == 0
        # An ACK of rds may overrun; with all other schemes nothing may.
        assert run["rnr_naks"] == 0 or scheme == "rds"
        assert run["control_per_data"] > 0


def test_low_water_mark_saves_updates(loopback):
    runs = [one(loopback, "one-way", scheme, "--count=500")
            for scheme in ("rds", "rds-lowwater")]
    assert runs[1]["control_per_data"] < runs[0]["control_per_data"]


@pytest.mark.parametrize("scenario, scheme, verdict", [
    ("one-way", "o2iblnd-nonoop", "stuck"),
    ("both-at-zero", "naive", "stuck"),
    ("requests", "smbd-chatty", "storm"),
    ("many-senders", "grant-early", "overrun"),
    ("mixed", "blind-imm", "overrun"),
])
def test_controls_fail(loopback, scenario, scheme, verdict):
    """The number of messages is large enough for a control to fail on a busy host, too, where the
    sender may have to wait for a processor while the receiver has one."""
    assert one(loopback, scenario, scheme)["verdict"] == verdict


def test_stuck_is_said(loopback):
    process = loopback.run(program(loopback), "--scheme=o2iblnd-nonoop")
    assert process.popen.returncode == 0, process
    assert "stuck, as predicted: nothing goes back that could return credits" in process.output
    assert "message 16 of 2000 may not go: 0 may be sent" in process.output


def test_what_is_not_predicted_is_an_error(loopback):
    """A negative control outside of its scenario is predicted to succeed, and does not."""
    run, = flow(loopback, "--scenario=bursts", "--scheme=o2iblnd-nonoop", "--count=50", code=1)
    assert run["verdict"] == "stuck" and run["predicted"] == "ok"


@pytest.mark.parametrize("scenario, scheme", [("mixed", "rds-lowwater"),
                                              ("shared-queue", "credits"), ("loss", "rxm")])
def test_other_scenarios(loopback, scenario, scheme):
    run = one(loopback, scenario, scheme, "--count=60")
    assert run["sides"][1]["consumed"] > 0


@pytest.mark.parametrize("meet", [[], ["--rdma-cm"]], ids=["tcp", "rdma-cm"])
def test_two_hosts(veth, meet):
    """Each end runs in its own namespace; both use the smaller of their depths."""
    command = [program(veth), *meet, "--json"]
    if meet:
        server = veth.start(*command, "--server", "--depth=12")
        harness.await_listener(veth, server, 18515)
        assert not veth.listens(18515)
    else:
        server = veth.serve(18515, *command, "--server", "--depth=12")
    client = veth.peer.run(*command, "--scheme=smbd", "--count=200", "--depth=40", veth.address)
    assert client.popen.returncode == 0, client
    runs = json.loads(server.done()), json.loads(client.output)
    for run, in runs:
        assert run["verdict"] == "ok" and run["depth"] == 12 and run["scheme"] == "smbd"
        assert run["sides"][1]["consumed"] == 200
        assert run["rnr_naks"] == 0


def test_too_much_is_refused(loopback):
    run, = flow(loopback, "--scenario=many-senders", "--scheme=rxm", "--depth=8192", code=1)
    assert run["verdict"] == "error"


def test_depth_shrinks(loopback):
    """The device has no room for 2 x 8192 + 2 receives: both ends take the most that fits."""
    run = one(loopback, "one-way", "o2iblnd-v2", "--depth=8192", "--count=50")
    assert 4000 < run["depth"] < 8192
    assert run["sides"][1]["receives"] == 2 * run["depth"] + 2


def test_latency_is_never_zero(loopback):
    """A message that arrives during a poll must count as received after it was sent."""
    for scheme in "smbd", "rxm":
        assert one(loopback, "mixed", scheme, "--count=300")["sides"][1]["p50_ns"] > 0


@pytest.mark.parametrize("arguments, word", [
    (["--scheme=nope"], "nope"), (["--scenario=nope"], "nope"), (["--depth=3"], "--depth"),
    (["--seed=-1"], "--seed"), (["--counters=x"], "--counters"), (["--all", "host"], "--all"),
    (["--rdma-cm"], "--rdma-cm"),
    (["--nope"], "usage")])
def test_wrong_use(loopback, arguments, word):
    process = loopback.run(program(loopback), *arguments)
    assert process.popen.returncode == 2
    assert process.output == "" and word in process.errors


def test_no_device(loopback):
    """Without the drop-in libraries there may be no device: uroce-flow prints a line and ends."""
    process = loopback.run(program(loopback), "--device=none", "--scheme=rnr")
    assert process.popen.returncode == 1
    assert "no RDMA device none" in process.output


@pytest.mark.skipif(not harness.LONG, reason="UROCE_INTEG_LONG=1")
def test_all(loopback, tmp_path):
    runs = flow(loopback, "--all", "--output", tmp_path, seconds=600)
    assert len(runs) > 150
    assert {run["scenario"] for run in runs} >= {"one-way", "requests", "bursts", "both-at-zero",
                                                 "mixed", "shared-queue", "many-senders", "loss"}
    for name in "table.txt", "results.json", "goodput.png", "control.png", "scenarios.png":
        assert (tmp_path / name).stat().st_size > 0
