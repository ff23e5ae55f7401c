#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Makes corpus/ucm: inputs for fuzz_ucm (its format is described there) whose commands listen,
connect and use connections as programs do, as a basis for mutations."""
import socket
import struct

import corpus_files

DELIVER, LOSE, PASS, REOPEN = range(192, 196)
(CREATE_ID, DESTROY_ID, BIND_IP, RESOLVE_IP, RESOLVE_ROUTE, QUERY_ROUTE, CONNECT, LISTEN, ACCEPT,
 REJECT, DISCONNECT, INIT_QP_ATTR, GET_EVENT, _, SET_OPTION, NOTIFY, JOIN_IP, LEAVE, MIGRATE,
 QUERY, BIND, RESOLVE_ADDR, JOIN, _, WRITE_EVENT) = range(25)
TCP, UDP, IB = 0x106, 0x111, 0x13f
RC, UD = 2, 4
AF_IB = 27
SERVER, CLIENT = 0, 1  # channels
PORT = 7471
REUSE, AF_ONLY = 1, 2
ANSWER = bytes(8)  # address of the response; fuzz_ucm sets it


def step(what, how=0):
    return bytes([what, how])


def command(what, channel, body, length=None):
    length = len(body) if length is None else length
    return bytes([what, channel, (length + 1) // 2, 255, len(body)]) + body


def ipv4(address, port):
    return struct.pack("<H", socket.AF_INET) + struct.pack(">H", port) + socket.inet_aton(address)


def ipv6(port):
    return struct.pack("<H", socket.AF_INET6) + struct.pack(">H", port) + bytes(24)


def ib(address, port):
    gid = bytes(10) + b"\xff\xff" + socket.inet_aton(address)
    return (struct.pack("<HHI", AF_IB, 0xffff, 0) + gid +
            struct.pack(">QQ", IB << 16 | port, 2 ** 64 - 1) + bytes(8))


def create(channel, space=TCP, qp_type=RC):
    return command(CREATE_ID, channel, struct.pack("<Q", 77) + ANSWER +
                   struct.pack("<HB5x", space, qp_type))


def by_id(what, channel, handle, *arguments):
    """A command that consists of the address of its response, an id and numbers."""
    return command(what, channel, ANSWER + struct.pack(f"<{1 + len(arguments)}I", handle,
                                                       *arguments))


def destroy(channel, handle):
    return by_id(DESTROY_ID, channel, handle, 0)


def bind_ip(channel, handle, address):
    return command(BIND_IP, channel, ANSWER + address.ljust(28, b"\0") +
                   struct.pack("<I", handle))


def bind_any(channel, handle, address):
    body = struct.pack("<IHH", handle, len(address), 0) + address
    return command(BIND, channel, body, 8 + 128)


def listen(channel, handle, backlog=3):
    return command(LISTEN, channel, struct.pack("<II", handle, backlog))


def option(channel, handle, name, length=4, value=0):
    return command(SET_OPTION, channel | value << 6,
                   ANSWER + struct.pack("<IIII", handle, 0, name, length))


def get_event(channel):
    return command(GET_EVENT, channel, ANSWER)


def route(channel, handle):
    return (get_event(channel) +
            command(RESOLVE_ROUTE, channel, struct.pack("<II", handle, 2000)) +
            get_event(channel))


def resolve(channel, handle, address="10.0.0.1"):
    to = ipv4(address, PORT)
    return command(RESOLVE_IP, channel, bytes(28) + to.ljust(28, b"\0") +
                   struct.pack("<II", handle, 2000)) + route(channel, handle)


def resolve_ib(channel, handle):
    head = struct.pack("<IIHHI", handle, 2000, 0, 48, 0)
    return command(RESOLVE_ADDR, channel, head + bytes(128) + ib("10.0.0.1", PORT),
                   len(head) + 256) + route(channel, handle)


def parameters(number, length, valid=1):
    """Parameters before and after private data, of which only the length is given: it is zeros."""
    return struct.pack("<II", number, 0), bytes([length, 0, 3, 2, 0, 6, 5, valid])


def connect(channel, handle, length=5):
    head, tail = parameters(0x100 + handle, length)
    return command(CONNECT, channel, head + tail + struct.pack("<II", handle, 0), 288)


def accept(channel, handle, length=7, valid=1):
    head, tail = parameters(0x100 + handle, length, valid)
    return command(ACCEPT, channel, struct.pack("<Q", 88) + head + tail +
                   struct.pack("<II", handle, 0), 296)


def reject(channel, handle):
    return command(REJECT, channel, struct.pack("<IBB2x", handle, 2, 0) + b"no", 264)


def disconnect(channel, handle):
    return command(DISCONNECT, channel, struct.pack("<I", handle))


def notify(channel, handle, event=4):
    return command(NOTIFY, channel, struct.pack("<II", handle, event))


def migrate(to, handle):
    """fuzz_ucm sets the descriptor of the other channel."""
    return command(MIGRATE, to, ANSWER + struct.pack("<II", handle, 0))


def write_event(channel, handle, event):
    return command(WRITE_EVENT, channel, struct.pack("<IIIIQ", handle, 0, event, 0, 5))


def join(channel, handle):
    return command(JOIN_IP, channel, ANSWER + struct.pack("<Q", 99) +
                   ipv4("224.1.2.3", 0).ljust(28, b"\0") + struct.pack("<I", handle))


def scripts():
    deliver = step(DELIVER)
    # The listener is id 0, the client's id 1, and the request that it makes id 2.
    server = create(SERVER) + bind_ip(SERVER, 0, ipv4("0.0.0.0", PORT)) + listen(SERVER, 0)
    client = create(CLIENT) + resolve(CLIENT, 1)
    unread = server + client + connect(CLIENT, 1) + deliver
    asked = unread + get_event(SERVER)
    answered = asked + accept(SERVER, 2) + deliver + get_event(CLIENT)
    established = (answered + accept(CLIENT, 1, valid=0) + deliver + get_event(SERVER))
    attributes = b"".join(by_id(INIT_QP_ATTR, channel, channel and 1 or 2, state)
                          for channel in (SERVER, CLIENT) for state in (1, 2, 3))
    late = step(PASS, 11) * 3
    yield "connection", (established + attributes + by_id(QUERY_ROUTE, CLIENT, 1, 0) +
                         disconnect(CLIENT, 1) + deliver + get_event(SERVER) +
                         disconnect(SERVER, 2) + deliver + get_event(CLIENT) + late +
                         get_event(SERVER) + get_event(CLIENT))
    yield "destroyed", established + destroy(CLIENT, 1) + deliver + get_event(SERVER) + late
    yield "closed", established + step(REOPEN, CLIENT) + deliver + get_event(SERVER)
    yield "rejected", asked + reject(SERVER, 2) + deliver + get_event(CLIENT) + late
    yield "first_packet", answered + step(LOSE) + notify(SERVER, 2) + get_event(SERVER)
    yield "lost", unread + step(LOSE) + late * 12 + get_event(CLIENT)
    yield "unread", unread
    yield "unread_closed", unread + step(REOPEN, SERVER) + deliver + get_event(CLIENT)
    yield "unread_destroyed", unread + destroy(SERVER, 2) + get_event(SERVER) + deliver
    yield "unread_moved", unread + migrate(CLIENT, 2) + step(REOPEN, CLIENT) + get_event(SERVER)
    yield "listener_moved", (unread + migrate(CLIENT, 0) + step(REOPEN, SERVER) +
                             get_event(CLIENT) + accept(CLIENT, 2) + deliver)
    yield "written_moved", (unread + write_event(SERVER, 2, 18) + migrate(CLIENT, 0) +
                            destroy(CLIENT, 2) + get_event(SERVER) + get_event(CLIENT))
    yield "listener_goes", unread + destroy(SERVER, 0) + deliver + get_event(CLIENT)
    yield "full", (create(SERVER) + bind_ip(SERVER, 0, ipv4("0.0.0.0", PORT)) +
                   listen(SERVER, 0, 1) + client + connect(CLIENT, 1) + create(CLIENT) +
                   resolve(CLIENT, 2) + connect(CLIENT, 2) + deliver + get_event(CLIENT))
    nobody = create(SERVER) + create(CLIENT) + resolve(CLIENT, 1) + connect(CLIENT, 1) + deliver
    yield "nobody", nobody + (step(PASS, 7) + deliver) * 6 + get_event(CLIENT)
    yield "listens_late", (nobody + step(PASS, 3) + deliver +
                           bind_ip(SERVER, 0, ipv4("0.0.0.0", PORT)) + listen(SERVER, 0) +
                           (step(PASS, 5) + deliver) * 2 + get_event(SERVER) +
                           accept(SERVER, 2) + deliver)
    yield "waits_and_goes", nobody + destroy(CLIENT, 1) + step(PASS, 6) + deliver
    datagrams = (create(SERVER, UDP, UD) + bind_ip(SERVER, 0, ipv4("0.0.0.0", PORT)) +
                 listen(SERVER, 0) + create(CLIENT, UDP, UD) + resolve(CLIENT, 1) +
                 connect(CLIENT, 1, 180) + deliver)
    yield "datagrams", (datagrams + get_event(SERVER) + accept(SERVER, 2) + deliver +
                        get_event(CLIENT))
    yield "datagrams_unread", datagrams + step(REOPEN, SERVER) + deliver + get_event(CLIENT)
    yield "ib", (create(SERVER, IB) + bind_any(SERVER, 0, ib("0.0.0.0", PORT)) + listen(SERVER, 0) +
                 create(CLIENT, IB) + resolve_ib(CLIENT, 1) + connect(CLIENT, 1, 92) + deliver +
                 get_event(SERVER) + accept(SERVER, 2) + deliver + get_event(CLIENT))
    yield "ib_queried", (create(CLIENT, IB) + resolve_ib(CLIENT, 0) +
                         by_id(QUERY_ROUTE, CLIENT, 0, 0) +
                         b"".join(by_id(QUERY, CLIENT, 0, option) for option in range(3)))
    yield "ib_datagrams", (create(CLIENT, IB, UD) + resolve_ib(CLIENT, 0) +
                           connect(CLIENT, 0, 216) + deliver)
    yield "loopback", (create(SERVER) + bind_ip(SERVER, 0, ipv4("127.0.0.1", PORT)) +
                       listen(SERVER, 0) + create(CLIENT) +
                       bind_ip(CLIENT, 1, ipv4("127.0.0.2", 0)) +
                       resolve(CLIENT, 1, "127.0.0.1") + connect(CLIENT, 1) + deliver)
    bound = create(SERVER) + create(CLIENT) + bind_ip(SERVER, 0, ipv6(PORT))
    yield "options", (bound + option(SERVER, 0, REUSE, value=1) +
                      option(SERVER, 0, 0, 1) + option(SERVER, 0, 3, 1, value=1) +
                      option(CLIENT, 1, REUSE, value=1) + bind_ip(CLIENT, 1, ipv6(PORT)) +
                      listen(SERVER, 0) + listen(CLIENT, 1))
    yield "families", (bound + option(SERVER, 0, AF_ONLY, value=1) +
                       bind_ip(CLIENT, 1, ipv4("0.0.0.0", PORT)) + option(SERVER, 0, AF_ONLY) +
                       listen(SERVER, 0) + listen(CLIENT, 1))
    yield "events", (create(SERVER) + b"".join(write_event(SERVER, 0, event)
                                               for event in (4, 18, 19)) + get_event(SERVER) * 2)
    yield "groups", (create(SERVER, UDP, UD) + bind_ip(SERVER, 0, ipv4("10.0.0.1", PORT)) +
                     join(SERVER, 0) * 2 + get_event(SERVER) + migrate(CLIENT, 0) +
                     by_id(LEAVE, CLIENT, 0, 0) + get_event(CLIENT))


corpus_files.write("ucm", dict(scripts()))
