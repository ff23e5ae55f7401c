/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/* Parses and builds the messages of <rdma/uroce-broker.h>.  Pure. */
#ifndef UROCE_BROKER_MESSAGE_H
#define UROCE_BROKER_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include <rdma/uroce-broker.h>

enum broker_message_error {
	BROKER_MESSAGE_OK,
	BROKER_MESSAGE_SHORT,	/* fewer bytes than the structure of its type */
	BROKER_MESSAGE_VERSION, /* version other than UROCE_BROKER_VERSION */
	BROKER_MESSAGE_TYPE,	/* unknown type */
	BROKER_MESSAGE_LENGTH,	/* length other than that of the structure with count entries */
	BROKER_MESSAGE_VALUE,	/* invalid value of a field */
};

/* Largest message, without the bytes of a datagram. */
union broker_message {
	struct uroce_broker_header header;
	struct uroce_broker_hello hello;
	struct uroce_broker_welcome welcome;
	struct uroce_broker_slot slot;
	struct uroce_broker_address address;
	struct uroce_broker_switch on_off;
	struct uroce_broker_ports ports;
	struct uroce_broker_lookup lookup;
	struct uroce_broker_connect connect;
	struct uroce_broker_list list;
	struct uroce_broker_probed probed;
	struct uroce_broker_datagram datagram;
};

/* Largest UDP payload that follows a DATAGRAM message. */
#define BROKER_DATAGRAM_MAX 65507
/* Maximum number of descriptors in a message. */
#define BROKER_DESCRIPTORS_MAX 2

/*
 * Checks a received message of length bytes (any alignment).  On BROKER_MESSAGE_OK *message is set,
 * and fields that were not sent are 0; otherwise *message is unchanged.  The payload of a DATAGRAM
 * stays in bytes, after its structure, and is not copied.
 */
enum broker_message_error broker_message_parse(const uint8_t *bytes, size_t length,
					       union broker_message *message);

/* Clears the message and fills in its header. */
void broker_message_init(union broker_message *message, enum uroce_broker_type type,
			 uint32_t number);
/* Returns the type of the reply to a request. */
enum uroce_broker_type broker_message_reply_type(enum uroce_broker_type request);
/*
 * Returns the number of bytes to send according to the message's type and count, without the
 * payload of a DATAGRAM.
 */
size_t broker_message_bytes(const union broker_message *message);
/*
 * Returns the number of descriptors that the message must be accompanied by.  If another number was
 * received, the receiver closes them and the connection.
 */
unsigned int broker_message_descriptor_count(const union broker_message *message);

#endif
