/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
#include "cm.h"

#include <string.h>

struct cm {
	struct cm_config config;
	struct cm_counters counters;
};

struct cm_conn {
	void *user;
	enum cm_state state;
};

struct cm_listener {
	struct cm_listen_param param;
	void *user;
};

size_t cm_bytes(void)
{
	return sizeof(struct cm);
}

size_t cm_conn_bytes(void)
{
	return sizeof(struct cm_conn);
}

size_t cm_listener_bytes(void)
{
	return sizeof(struct cm_listener);
}

struct cm *cm_init(void *memory, const struct cm_config *config)
{
	struct cm *cm = memory;

	memset(cm, 0, sizeof(*cm));
	cm->config = *config;
	return cm;
}

struct cm_conn *cm_conn_init(struct cm *cm, void *memory, void *user)
{
	struct cm_conn *conn = memory;

	(void)cm;
	memset(conn, 0, sizeof(*conn));
	conn->user = user;
	return conn;
}

void *cm_conn_user(const struct cm_conn *conn)
{
	return conn->user;
}

void cm_conn_set_user(struct cm_conn *conn, void *user)
{
	conn->user = user;
}

enum cm_state cm_conn_state(const struct cm_conn *conn)
{
	return conn->state;
}

enum cm_result cm_listen(struct cm *cm, void *memory, const struct cm_listen_param *param,
			 void *user, struct cm_listener **listener)
{
	(void)cm;
	*listener = memory;
	(*listener)->param = *param;
	(*listener)->user = user;
	return CM_OK;
}

void cm_unlisten(struct cm *cm, struct cm_listener *listener)
{
	(void)cm;
	(void)listener;
}

void *cm_listener_user(const struct cm_listener *listener)
{
	return listener->user;
}

const struct cm_listen_param *cm_listener_param(const struct cm_listener *listener)
{
	return &listener->param;
}

enum cm_result cm_connect(struct cm *cm, struct cm_conn *conn, const struct cm_connect_param *param,
			  uint64_t now)
{
	(void)cm, (void)conn, (void)param, (void)now;
	return CM_BAD_STATE;
}

enum cm_result cm_accept(struct cm *cm, struct cm_conn *conn, const struct cm_accept_param *param,
			 uint64_t now)
{
	(void)cm, (void)conn, (void)param, (void)now;
	return CM_BAD_STATE;
}

enum cm_result cm_rtu(struct cm *cm, struct cm_conn *conn, const uint8_t *private_data,
		      size_t length, uint64_t now)
{
	(void)cm, (void)conn, (void)private_data, (void)length, (void)now;
	return CM_BAD_STATE;
}

enum cm_result cm_reject(struct cm *cm, struct cm_conn *conn, const struct cm_reject_param *param,
			 uint64_t now)
{
	(void)cm, (void)conn, (void)param, (void)now;
	return CM_BAD_STATE;
}

enum cm_result cm_established(struct cm *cm, struct cm_conn *conn, uint64_t now)
{
	(void)cm, (void)conn, (void)now;
	return CM_BAD_STATE;
}

enum cm_result cm_disconnect(struct cm *cm, struct cm_conn *conn, uint64_t now)
{
	(void)cm, (void)conn, (void)now;
	return CM_BAD_STATE;
}

void cm_destroy(struct cm *cm, struct cm_conn *conn, uint64_t now)
{
	(void)now;
	cm->config.ops->released(cm->config.owner, conn, conn->user);
}

enum cm_result cm_sidr_request(struct cm *cm, struct cm_conn *conn,
			       const struct cm_sidr_request_param *param, uint64_t now)
{
	(void)cm, (void)conn, (void)param, (void)now;
	return CM_BAD_STATE;
}

enum cm_result cm_sidr_reply(struct cm *cm, struct cm_conn *conn,
			     const struct cm_sidr_reply_param *param, uint64_t now)
{
	(void)cm, (void)conn, (void)param, (void)now;
	return CM_BAD_STATE;
}

enum cm_verdict cm_receive(struct cm *cm, const struct cm_path *from, const uint8_t *bytes,
			   size_t length, uint64_t now)
{
	struct mad mad;

	(void)from, (void)now;
	cm->counters.mad_error[mad_decode(bytes, length, &mad)]++;
	return CM_DROP_MAD;
}

uint64_t cm_deadline(const struct cm *cm)
{
	(void)cm;
	return CM_NEVER;
}

void cm_expire(struct cm *cm, uint64_t now)
{
	(void)cm, (void)now;
}

enum cm_result cm_qp_attr(const struct cm_conn *conn, struct cm_qp_attr *attr)
{
	(void)conn, (void)attr;
	return CM_BAD_STATE;
}

void cm_conn_info(const struct cm_conn *conn, struct cm_conn_info *info)
{
	memset(info, 0, sizeof(*info));
	info->state = conn->state;
}

void cm_each_conn(const struct cm *cm, void (*visit)(void *arg, const struct cm_conn *conn),
		  void *arg)
{
	(void)cm, (void)visit, (void)arg;
}

void cm_each_listener(const struct cm *cm,
		      void (*visit)(void *arg, const struct cm_listener *listener), void *arg)
{
	(void)cm, (void)visit, (void)arg;
}

const struct cm_counters *cm_counters(const struct cm *cm)
{
	return &cm->counters;
}

uint64_t cm_code_ns(uint8_t code)
{
	return UINT64_C(4096) << code;
}

uint8_t cm_ack_timeout(uint8_t ack_delay, uint8_t packet_life)
{
	int delay = ack_delay, trip = packet_life + 1;

	if (trip >= delay)
		trip += delay >= trip - 1;
	else
		trip = delay + (trip >= delay - 1);
	return (uint8_t)(trip < 31 ? trip : 31);
}
