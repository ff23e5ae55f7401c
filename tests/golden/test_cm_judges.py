# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""tshark decodes each field of our connection manager's messages to the value that was encoded.
UROCE_EVERY_MAD names the program every_mad."""
import os
import pathlib
import shutil
import subprocess

import pytest

import check_icrc
import judge_capture

CAPTURES = pathlib.Path(__file__).parent / "captures"
needs_tshark = pytest.mark.skipif(not shutil.which("tshark"), reason="tshark is not installed")
MAD_AT = 20  # in the UDP payload, after BTH and DETH
MAD_BYTES = 256

HEADER = {
    "status": "mad.status", "class_specific": "mad.classspecific",
    "transaction_id": "mad.transactionid", "attr_modifier": "mad.attributemodifier",
}
# Our names of fields and tshark's.  Fields that tshark does not know (vendor ids), or that 4.0
# decodes wrongly (flow label and rate of the path), are left out.
MESSAGES = {
    "REQ": {
        "local_id": "cm.req", "service_id": "cm.req.serviceid", "ca_guid": "cm.req.localcaguid",
        "local_qkey": "cm.req.localqkey", "local_qpn": "cm.req.localqpn",
        "responder_resources": "cm.req.responderres", "local_eecn": "cm.req.localeecn",
        "initiator_depth": "cm.req.initdepth", "remote_eecn": "cm.req.remoteeecn",
        "remote_response_time": "cm.req.remoteresptout", "transport": "cm.req.transpsvctype",
        "flow_control": "cm.req.e2eflowctrl", "starting_psn": "cm.req.startpsn",
        "local_response_time": "cm.req.localresptout", "retry_count": "cm.req.retrcount",
        "pkey": "cm.req.pkey", "path_mtu": "cm.req.pppmtu", "rdc_exists": "cm.req.rdcexist",
        "rnr_retry": "cm.req.rnrretrcount", "max_cm_retries": "cm.req.maxcmretr",
        "srq": "cm.req.srq", "extended_transport": "cm.req.ext_transport",
        "primary_local_lid": "cm.req.prim_locallid",
        "primary_remote_lid": "cm.req.prim_remotelid", "traffic_class": "cm.req.prim_tfcclass",
        "hop_limit": "cm.req.prim_hoplim", "sl": "cm.req.prim_sl",
        "subnet_local": "cm.req.prim_subnetlocal", "ack_timeout": "cm.req.prim_localacktout",
    },
    "REJ": {
        "local_id": "cm.rej.localcommid", "remote_id": "cm.rej.remotecommid",
        "refers_to": "cm.rej.msgrej", "ari_length": "cm.rej.rejinfolen", "reason": "cm.rej.reason",
    },
    "REP": {
        "local_id": "cm.rep", "remote_id": "cm.rep.remotecommid", "local_qkey": "cm.rep.localqkey",
        "local_qpn": "cm.rep.localqpn", "local_eecn": "cm.rep.localeecn",
        "starting_psn": "cm.rep.startpsn", "responder_resources": "cm.rep.respres",
        "initiator_depth": "cm.rep.initdepth", "target_ack_delay": "cm.rep.tgtackdelay",
        "failover_accepted": "cm.rep.failoveracc", "flow_control": "cm.rep.e2eflowctrl",
        "rnr_retry": "cm.rep.rnrretrcount", "srq": "cm.rep.srq",
        "ca_guid": "cm.rep.localcaguid",
    },
    "RTU": {"local_id": "cm.rtu.localcommid", "remote_id": "cm.rtu.remotecommid"},
    "DREQ": {
        "local_id": "cm.dreq.localcommid", "remote_id": "cm.dreq.remotecommid",
        "remote_qpn": "cm.req.remoteqpneecn",
    },
    "DREP": {"local_id": "cm.drsp.localcommid", "remote_id": "cm.drsp.remotecommid"},
}


def every_mad():
    """name -> (bytes, {field: value})"""
    listing = subprocess.run([os.environ["UROCE_EVERY_MAD"]], stdout=subprocess.PIPE, text=True,
                             check=True).stdout
    messages, name = {}, None
    for line in listing.splitlines():
        kind, key, value = line.split()
        if kind == "message":
            name = key
            messages[name] = (bytes.fromhex(value), {})
        else:
            messages[name][1][key] = int(value)
    return messages


def frame_with(mad):
    """The REQ of rping's capture with another message in its place."""
    _, _, frame, _ = next(iter(check_icrc.read_capture(CAPTURES / "cm_rping.pcap")))
    at = check_icrc.Packet(1, frame).udp + 8 + MAD_AT
    return frame[:at] + mad + frame[at + MAD_BYTES:]


def number(text):
    return int(text.replace(":", ""), 16 if text.startswith("0x") or ":" in text else 0)


def seen_by_tshark(path, fields):
    arguments = ["tshark", "-r", path, "-T", "fields", "-E", "occurrence=f", "-E", "separator=|"]
    for field in fields:
        arguments += ["-e", f"infiniband.{field}"]
    line = subprocess.run(arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          check=True).stdout.rstrip("\n")
    return line.split("|")


@needs_tshark
@pytest.mark.parametrize("name", MESSAGES)
def test_tshark_reads_what_we_mean(tmp_path, name):
    mad, values = every_mad()[name]
    path = str(tmp_path / "mad.pcap")
    with open(path, "wb") as out:
        judge_capture.write_capture(out, 1, [(0, frame_with(mad))])
    names = {**HEADER, **MESSAGES[name]}
    seen = dict(zip(names, seen_by_tshark(path, names.values())))
    wrong = {key: (text, values[key]) for key, text in seen.items()
             if not text or number(text) != values[key]}
    assert not wrong, f"{name}: (tshark, meant)"


def test_no_field_left_out():
    """Every numeric field is compared above, except those that tshark cannot judge."""
    unjudged = {"REQ": {"vendor_id", "flow_label", "packet_rate"},
                "REP": {"vendor_id_high", "vendor_id_middle", "vendor_id_low"}}
    messages = every_mad()
    assert set(messages) - set(MESSAGES) == {"MRA", "SIDR_REQ", "SIDR_REP"}
    for name, known in MESSAGES.items():
        assert set(messages[name][1]) == set(HEADER) | set(known) | unjudged.get(name, set())
