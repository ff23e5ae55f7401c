#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Makes corpus/broker: one message of each type between uroce-broker and its clients, and some that
are refused.  Run it again whenever UROCE_BROKER_VERSION or a structure changes.
"""
import pathlib
import re
import struct

import corpus_files

HERE = pathlib.Path(__file__).parent
HEADER = (HERE.parent.parent / "kernel-headers/rdma/uroce-broker.h").read_text()
VERSION = int(re.search(r"#define UROCE_BROKER_VERSION (\d+)", HEADER)[1])
NO_SLOT = 0xffffffff


def numbers(name):
    """The enumerators of an enum that counts from 1."""
    body = re.search(rf"enum {name} {{(.*?)}};", HEADER, re.S)[1]
    return {found: number for number, found in enumerate(re.findall(r"UROCE_BROKER_(\w+)", re.sub(
        r"/\*.*?\*/", "", body, flags=re.S)), 1)}


TYPE = numbers("uroce_broker_type")
WORKER, RETURNING, GUEST = numbers("uroce_broker_role").values()
SHARED_MEMORY, STATISTICS = numbers("uroce_broker_purpose").values()
ENDPOINT = bytes(10) + b"\xff\xff\x7f\0\0\1" + bytes(8)


def message(name, *words, error=0, version=VERSION):
    """A message of a header and words, which are 32-bit numbers or bytes."""
    return struct.pack("<IIIi", TYPE[name], version, 7, error) + b"".join(
        word if isinstance(word, bytes) else struct.pack("<I", word) for word in words)


def port(number, flags):
    return ENDPOINT + struct.pack("<HHIII", 0x106, number, flags, 5, 0)


def datagram(reason, payload):
    return message("DATAGRAM", ENDPOINT, ENDPOINT,
                   struct.pack("<HHBBH", 0xc000, len(payload), 2, 64, reason), payload)


MESSAGES = {
    "hello": message("HELLO", WORKER, 0),
    "hello_guest": message("HELLO", GUEST, 0),
    "hello_returning": message("HELLO", RETURNING, 3, 5, 6, 4095),
    "hello_slot": message("HELLO", RETURNING, 1, 4096),
    "hello_count": message("HELLO", RETURNING, 65, *range(65)),
    "welcome": message("WELCOME", WORKER, 4095, 0x12345678, 0),
    "welcome_refused": message("WELCOME", 0, 0, 0, 0, error=-28),
    "slot": message("SLOT", NO_SLOT, 0),
    "slot_reply": message("SLOT_REPLY", 9, 0),
    "address": message("ADDRESS", ENDPOINT, 0, 0),
    "address_claim": message("ADDRESS", ENDPOINT, 1, 0),
    "address_reply": message("ADDRESS_REPLY", ENDPOINT, 2, 0),
    "address_refused": message("ADDRESS_REPLY", ENDPOINT, 0, 0, error=-98),
    "address_end": message("ADDRESS_END", ENDPOINT, 0, 0),
    "gsi": message("GSI", 3, 0),
    "gsi_reply": message("GSI_REPLY", 1, 0),
    "port": message("PORT", 1, 0, port(0, 1)),
    "port_returning": message("PORT", 2, 0, port(1, 4), port(18515, 31)),
    "port_mixed": message("PORT", 2, 0, port(1, 4), port(18515, 0)),
    "port_listen": message("PORT_LISTEN", 1, 0, port(18515, 0)),
    "port_reply": message("PORT_REPLY", 1, 0, port(18515, 0)),
    "port_end": message("PORT_END", 1, 0, port(18515, 0)),
    "lookup": message("LOOKUP", ENDPOINT, 9, 0),
    "lookup_reply": message("LOOKUP_REPLY", ENDPOINT, 9, 0),
    "connect": message("CONNECT", 9, STATISTICS),
    "connect_reply": message("CONNECT_REPLY", 9, STATISTICS),
    "connection": message("CONNECTION", NO_SLOT, SHARED_MEMORY),
    "list": message("LIST", 64, 0),
    "list_reply": message("LIST_REPLY", 64, 2, 70, 1234, 80, 0),
    "list_order": message("LIST_REPLY", 0, 2, 80, 1234, 70, 0),
    "ping": message("PING"),
    "ping_version": message("PING", version=VERSION + 1),
    "pong": message("PONG"),
    "supersede": message("SUPERSEDE"),
    "probed": message("PROBED", ENDPOINT, 300, 1),
    "watch": message("WATCH", 1, 0),
    "datagram": datagram(2, bytes(range(40))),
    "datagram_empty": datagram(1, b""),
    "datagram_reason": datagram(5, b"1"),
    "datagram_short": datagram(1, b"12")[:-1],
}


def main():
    corpus_files.write("broker", MESSAGES)


if __name__ == "__main__":
    main()
