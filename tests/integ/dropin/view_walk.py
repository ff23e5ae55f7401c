# SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB
"""Reads /sys and /dev as NCCL, UCX, pyverbs and scripts do, for each device that libibverbs lists.

Prints one JSON object, for test_view.py.
"""
import ctypes
import glob
import json
import os
import re
import stat

CLASS = "/sys/class/infiniband"


def read(*names):
    with open(os.path.join(CLASS, *names), encoding="ascii") as file:
        return file.read().rstrip("\n")


def listed():
    """Lists names and GUIDs by libibverbs, loaded by dlopen() with the name that NCCL uses."""
    lib = ctypes.CDLL("libibverbs.so")
    lib.ibv_get_device_list.restype = ctypes.POINTER(ctypes.c_void_p)
    lib.ibv_get_device_name.restype = ctypes.c_char_p
    lib.ibv_get_device_name.argtypes = [ctypes.c_void_p]
    lib.ibv_get_device_guid.restype = ctypes.c_uint64
    lib.ibv_get_device_guid.argtypes = [ctypes.c_void_p]
    count = ctypes.c_int()
    devices = lib.ibv_get_device_list(ctypes.byref(count))
    for i in range(count.value):
        guid = lib.ibv_get_device_guid(devices[i]).to_bytes(8, "little").hex(":", 2)
        yield lib.ibv_get_device_name(devices[i]).decode(), guid


def port(device):
    base = device, "ports", "1"
    gids = {int(i): read(*base, "gids", i) for i in os.listdir(os.path.join(CLASS, *base, "gids"))}
    used = {i: gid for i, gid in gids.items() if gid.strip("0:")}
    for index in used:
        assert read(*base, "gid_attrs", "types", str(index)) == "RoCE v2"
        netdev = read(*base, "gid_attrs", "ndevs", str(index))
        # A view follows changes of interfaces after a moment.
        assert os.path.exists("/sys/class/net/" + netdev) or device != "uroce_lo", netdev
    assert len(gids) == 16 and re.fullmatch(r"[\d.]+ Gb/sec \(\d+X.*\)", read(*base, "rate"))
    assert read(*base, "pkeys", "0") == "0xffff" and read(*base, "link_layer") == "Ethernet"
    counters = glob.glob(os.path.join(CLASS, *base, "*counters", "*"))
    for path in counters:
        assert read(path).isdigit(), path
    return {"state": read(*base, "state"), "gids": used, "counters": len(counters)}


def device_of(name, guid):
    # NCCL uses this path as the position of the device in its topology.
    parent = os.path.realpath(os.path.join(CLASS, name, "device"), strict=True)
    assert os.path.isdir(parent) and os.listdir(os.path.join(CLASS, name, "device", "net"))
    # UCX opens no device without this node.
    node = "/dev/infiniband/" + name
    assert stat.S_ISCHR(os.stat(node).st_mode) and os.access(node, os.R_OK | os.W_OK)
    assert read(name, "node_guid") == guid == read(name, "sys_image_guid")
    assert read(name, "node_type") == "1: CA" and read(name, "fw_ver")
    verbs = f"/sys/class/infiniband_verbs/{name}/ibdev"
    assert read(verbs) == name
    return port(name)


def main():
    devices = dict(listed())
    assert sorted(devices) == sorted(os.listdir(CLASS)), (devices, os.listdir(CLASS))
    print(json.dumps({name: device_of(name, guid) for name, guid in devices.items()}))


main()
