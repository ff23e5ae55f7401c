/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The messages of <rdma/uroce-broker.h>: checked when received, and begun to be sent.  Pure.
 */
#ifndef UROCE_BROKER_MESSAGE_H
#define UROCE_BROKER_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include <rdma/uroce-broker.h>

enum broker_message_error {
	BROKER_MESSAGE_OK,
	BROKER_MESSAGE_SHORT,	/* fewer bytes than the structure of its type */
	BROKER_MESSAGE_VERSION, /* of another UROCE_BROKER_VERSION */
	BROKER_MESSAGE_TYPE,	/* no type of this version */
	BROKER_MESSAGE_LENGTH,	/* more bytes than the structure, or other than a count says */
	BROKER_MESSAGE_VALUE,	/* a field that no sender of this version sets */
};

/* No message is longer, but for the bytes of a datagram. */
union broker_message {
	struct uroce_broker_header header;
	struct uroce_broker_hello hello;
	struct uroce_broker_welcome welcome;
	struct uroce_broker_slot slot;
	struct uroce_broker_address address;
	struct uroce_broker_switch on_off;
	struct uroce_broker_ports ports;
	struct uroce_broker_look look;
	struct uroce_broker_introduce introduce;
	struct uroce_broker_list list;
	struct uroce_broker_probed probed;
	struct uroce_broker_datagram datagram;
};

/* The largest UDP payload of a DATAGRAM. */
#define BROKER_DATAGRAM_MAX 65507
/* Descriptors of one message. */
#define BROKER_DESCRIPTORS_MAX 2

/*
 * Checks a received message of length bytes (any alignment).  If the result is BROKER_MESSAGE_OK
 * all of *message is set, and what was not sent is 0; else nothing is.  The datagram of a DATAGRAM
 * follows its structure in bytes and is not copied.
 */
enum broker_message_error broker_message_parse(const uint8_t *bytes, size_t length,
					       union broker_message *message);

/* Clears the message and fills in its header. */
void broker_message_begin(union broker_message *message, enum uroce_broker_type type,
			  uint32_t number);
/* The type of the reply to a request. */
enum uroce_broker_type broker_message_reply(enum uroce_broker_type request);
/* Number of bytes to send, by its type and counts; without the bytes of a datagram. */
size_t broker_message_bytes(const union broker_message *message);
/*
 * Number of descriptors that a correct message has with it.  A receiver closes those of a message
 * that has another number, and the connection.
 */
unsigned int broker_message_descriptors(const union broker_message *message);

#endif
