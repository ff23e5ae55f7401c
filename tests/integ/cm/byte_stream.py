# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""A byte stream in both directions over plain socket calls, which librspreload turns into rsockets.

    byte_stream.py serve PORT            echoes all received bytes until the end of the stream
    byte_stream.py ask PORT ADDRESS      sends 2 MB, and exits with 0 if they return unchanged

The C library's functions are called as a C program does: Python's own sockets are opened with
SOCK_CLOEXEC, which rsockets refuse, so that librspreload leaves them with TCP.
"""
import ctypes
import os
import socket
import struct
import sys
import threading

TOTAL, PIECE = 2_000_000, 30_000
libc = ctypes.CDLL(None, use_errno=True)
for name in ("send", "recv"):
    getattr(libc, name).restype = ctypes.c_ssize_t


def call(name, *words):
    result = getattr(libc, name)(*words)
    if result < 0:
        raise OSError(ctypes.get_errno(), f"{name}: {os.strerror(ctypes.get_errno())}")
    return result


def name_of(address, port):
    packed = struct.pack("=H", socket.AF_INET) + struct.pack("!H", port)
    return packed + socket.inet_aton(address) + bytes(8)


def send_all(fd, data):
    at = 0
    while at < len(data):
        piece = data[at:at + PIECE]
        at += call("send", fd, piece, ctypes.c_size_t(len(piece)), 0)


def receive(fd):
    room = ctypes.create_string_buffer(PIECE)
    length = call("recv", fd, room, ctypes.c_size_t(PIECE), 0)
    return room.raw[:length]


def serve(fd, port):
    call("bind", fd, name_of("0.0.0.0", port), 16)
    call("listen", fd, 4)
    peer = call("accept", fd, None, None)
    data = receive(peer)
    while data:
        send_all(peer, data)
        data = receive(peer)
    call("close", peer)


def ask(fd, port, address):
    call("connect", fd, name_of(address, port), 16)
    sent = os.urandom(TOTAL)
    sender = threading.Thread(target=send_all, args=(fd, sent), daemon=True)
    sender.start()
    came = b""
    while len(came) < TOTAL:
        data = receive(fd)
        if not data:
            break
        came += data
    sender.join()
    assert came == sent, f"{len(came)} of {TOTAL} bytes came back, or others"


def main(what, port, *address):
    fd = call("socket", socket.AF_INET, socket.SOCK_STREAM, 0)
    {"serve": serve, "ask": ask}[what](fd, int(port), *address)
    call("close", fd)


if __name__ == "__main__":
    main(*sys.argv[1:])
