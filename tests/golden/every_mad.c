/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * every_mad: prints one message of each kind with a different value in each field, for judges that
 * share no code with uroce: a line "message NAME BYTES" (hexadecimal), then a line "field NAME
 * VALUE" for each of its numeric fields.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cm/msg/mad.h"

#define LONGEST_NUMBER 64

/* Returns a value for the field of this row; any constant that makes them differ will do. */
static uint64_t value_of(uint64_t row, unsigned int width)
{
	uint64_t value = (row + 1) * UINT64_C(0x9e3779b97f4a7c15);

	return (value ^ value >> 29) >> (LONGEST_NUMBER - width);
}

static void set(struct mad *mad, const struct mad_field *field, uint64_t value)
{
	uint8_t *at = (uint8_t *)mad + field->member;

	if (field->size == 1)
		memcpy(at, &(uint8_t){ (uint8_t)value }, 1);
	else if (field->size == 2)
		memcpy(at, &(uint16_t){ (uint16_t)value }, 2);
	else if (field->size == 4)
		memcpy(at, &(uint32_t){ (uint32_t)value }, 4);
	else
		memcpy(at, &value, 8);
}

static void print_message(uint16_t attr)
{
	struct mad mad = { .attr = attr };
	const struct mad_field *field;
	uint8_t bytes[MAD_BYTES];

	for (size_t row = 0; (field = mad_field_at(row)) != NULL; row++)
		if ((field->attr == 0 || field->attr == attr) && field->width <= LONGEST_NUMBER)
			set(&mad, field, value_of(row, field->width));
	mad_encode(&mad, bytes);
	printf("message %s ", mad_attr_name(attr));
	for (size_t i = 0; i < sizeof(bytes); i++)
		printf("%02x", bytes[i]);
	printf("\n");
	for (size_t row = 0; (field = mad_field_at(row)) != NULL; row++)
		if ((field->attr == 0 || field->attr == attr) && field->width <= LONGEST_NUMBER)
			printf("field %s %" PRIu64 "\n", field->name, value_of(row, field->width));
}

int main(void)
{
	for (uint16_t attr = MAD_REQ; attr <= MAD_SIDR_REP; attr++)
		print_message(attr);
	return 0;
}
