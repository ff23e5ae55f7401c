/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* An empty library with the name libibverbs-real.so.1, for the linker (CMakeLists.txt). */
typedef int real_stub_is_empty;
