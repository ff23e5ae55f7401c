/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Common part of all management datagrams (MADs) of the connection manager: size, queue pair 1 and
 * its Q_Key, header, and attribute ids (IBA volume 1, 13.4 and chapter 12).  The messages
 * themselves are in cm/msg/mad.h.
 */
#ifndef UROCE_WIRE_MAD_HEADER_H
#define UROCE_WIRE_MAD_HEADER_H

#define MAD_BYTES 256
#define MAD_HEADER_BYTES 24
#define MAD_MESSAGE_BYTES 232
#define MAD_QPN 1
#define MAD_QKEY 0x80010000u

/* Offsets in the header, and the values in messages of the connection manager. */
enum mad_header_byte {
	MAD_AT_BASE_VERSION = 0,
	MAD_AT_CLASS = 1,
	MAD_AT_CLASS_VERSION = 2,
	MAD_AT_METHOD = 3,
	MAD_AT_ATTRIBUTE = 16,
};
#define MAD_BASE_VERSION 1
#define MAD_CLASS_CM 7
#define MAD_CLASS_VERSION 2
#define MAD_METHOD_SEND 3

/* Attribute ids of the connection manager's class. */
enum mad_attr {
	MAD_REQ = 0x10,
	MAD_MRA = 0x11,
	MAD_REJ = 0x12,
	MAD_REP = 0x13,
	MAD_RTU = 0x14,
	MAD_DREQ = 0x15,
	MAD_DREP = 0x16,
	MAD_SIDR_REQ = 0x17,
	MAD_SIDR_REP = 0x18,
	MAD_LAP = 0x19, /* path migration: recognised and dropped, as by the Linux kernel on RoCE */
	MAD_APR = 0x1a,
};

#endif
