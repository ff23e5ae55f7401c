/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The connection manager of one process, as a pure function of messages, calls and time: MADs in by
 * cm_receive(), MADs and events out by struct cm_ops, the next deadline as a number.  No socket,
 * thread, clock, allocation or errno.
 *
 * One caller at a time per struct cm (its owner holds a lock).  The ops are called inside the calls
 * below and must not call the same cm again.
 *
 *   active side    cm_conn_init, cm_connect ......... event REP ... cm_rtu
 *   passive side   cm_listen ... accept_conn, event REQ ... cm_accept ... event ESTABLISHED
 *   both           cm_disconnect or event DISCONNECTED ... cm_destroy ... ops->released
 *   datagrams      cm_sidr_request ... event SIDR_REP;  event SIDR_REQ ... cm_sidr_reply
 *
 * Times are nanoseconds of one monotonic clock that never stands at 0.  Multi-byte numbers are in
 * host order; GIDs are 16 bytes, IPv4 addresses as ::ffff:a.b.c.d.
 */
#ifndef UROCE_CM_CM_H
#define UROCE_CM_CM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "address.h"
#include "mad.h"

#define CM_NEVER UINT64_MAX
/*
 * Communication ids carry the slot of their process, so that a host can tell which process a MAD is
 * for.
 */
#define CM_SLOT_BITS 12
#define CM_SLOTS (1u << CM_SLOT_BITS)
#define CM_ANY_DEVICE 0

static inline unsigned int cm_id_slot(uint32_t comm_id)
{
	return comm_id >> (32 - CM_SLOT_BITS);
}

/* How a MAD comes and goes, seen from this host; also what the connection's own packets use. */
struct cm_path {
	uint32_t device;	     /* the owner's number of a device, not CM_ANY_DEVICE */
	uint8_t sgid[MAD_GID_BYTES]; /* ours */
	uint8_t dgid[MAD_GID_BYTES]; /* the peer's */
	uint32_t flow_label;	     /* 20 bits */
	uint8_t traffic_class;
	uint8_t hop_limit;
	uint8_t sl;
};

/* What a listener and a connection are for. */
enum cm_service {
	CM_RC,
	CM_UC,
	CM_XRC,
	CM_UD, /* SIDR */
	CM_SERVICES,
};
const char *cm_service_name(enum cm_service service);

enum cm_state {
	CM_IDLE,
	CM_REQ_SENT,
	CM_MRA_REQ_RCVD, /* the peer's application is known to be slow */
	CM_REP_RCVD,	 /* event REP was told: cm_rtu() or cm_reject() */
	CM_REQ_RCVD,	 /* event REQ was told: cm_accept() or cm_reject() */
	CM_REP_SENT,
	CM_MRA_REP_RCVD,
	CM_ESTABLISHED,
	CM_DREQ_SENT,
	CM_DREQ_RCVD, /* event DISCONNECTED was told: cm_disconnect(), or the grace time, sends DREP
		       */
	CM_TIMEWAIT,
	CM_SIDR_REQ_SENT,
	CM_SIDR_REQ_RCVD, /* event SIDR_REQ was told: cm_sidr_reply() */
	CM_SIDR_REPLIED,  /* repeats its answer when it is asked again */
	CM_REJ_SENT,	  /* repeats its refusal when it is asked again, then IDLE */
	CM_STATES,
};
const char *cm_state_name(enum cm_state state);

enum cm_event_type {
	CM_EVENT_REQ,	       /* a new connection (made by accept_conn) was asked for; mad: REQ */
	CM_EVENT_REP,	       /* the peer accepted; mad: REP */
	CM_EVENT_ESTABLISHED,  /* passive side: the active side is ready; mad: RTU, or NULL when the
				  first packet or the application said so */
	CM_EVENT_REJECTED,     /* mad: REJ; made up, with reason 10, when the peer's queue pair was
				  seen in a new connection before this one was established */
	CM_EVENT_UNREACHABLE,  /* no answer in the time; mad NULL */
	CM_EVENT_DISCONNECTED, /* mad: DREQ, DREP, or a REJ that came instead of it; NULL: our DREQ
				  was not answered in the time */
	CM_EVENT_TIMEWAIT_EXIT, /* after DISCONNECTED only: it is forgotten; mad NULL */
	CM_EVENT_SIDR_REQ,	/* as CM_EVENT_REQ; mad: SIDR_REQ */
	CM_EVENT_SIDR_REP,	/* whatever its status; mad: SIDR_REP */
	CM_EVENTS,
};
const char *cm_event_name(enum cm_event_type type);

/*
 * What happened to a connection.  Each is told at most once for each connection that is asked for,
 * in the order of the states; DISCONNECTED once however the connection ends, and without
 * ESTABLISHED when the RTU was lost.  After cm_destroy() nothing is told.
 */
struct cm_event {
	enum cm_event_type type;
	uint64_t now;
	const struct mad *mad;	      /* during the call only; all fields and the private data */
	const struct cm_path *from;   /* REQ, SIDR_REQ, SIDR_REP: where the MAD came from */
	struct cm_listener *listener; /* REQ, SIDR_REQ: the listener that it is for */
};

struct cm;
struct cm_conn;
struct cm_listener;

struct cm_ops {
	/* Send MAD_BYTES to queue pair 1 of path->dgid.  It may be lost. */
	void (*send)(void *owner, const struct cm_path *path, const uint8_t *mad);
	void (*event)(void *owner, struct cm_conn *conn, const struct cm_event *event);
	/*
	 * Memory of cm_conn_bytes() for a connection that request (REQ or SIDR_REQ) asks listener
	 * for, and in *user what cm_conn_user() gives back; the event follows at once.  NULL: no
	 * more may wait, the peer is refused (REJ 3, or SIDR status 2).
	 */
	void *(*accept_conn)(void *owner, struct cm_listener *listener, const struct mad *request,
			     const struct cm_path *from, void **user);
	/* After cm_destroy(), in that call or later: the memory is the owner's again. */
	void (*released)(void *owner, struct cm_conn *conn, void *user);
	/*
	 * The message to be sent along path if this process ends without having sent it: a DREQ, or
	 * the REJ that refuses the peer, which may have been lost.  NULL: there is none any more.
	 * The two come in turn, and NULL before released.  May be NULL.
	 */
	void (*last_message)(void *owner, struct cm_conn *conn, const struct cm_path *path,
			     const uint8_t *mad);
	/*
	 * Code of the largest path MTU that is possible where from came to: a REQ for a larger one
	 * is refused with it (REJ 26).  May be NULL: no limit.
	 */
	uint8_t (*path_mtu)(void *owner, const struct cm_path *from);
};

struct cm_config {
	const struct cm_ops *ops; /* outlives the cm */
	void *owner;
	unsigned int slot; /* of this process, below CM_SLOTS: the top bits of its ids */
	uint32_t id_start; /* random: where the ids begin, so that a new process has other ones */
	uint32_t quota;	   /* requests to a peer that may be unanswered, 0: CM_QUOTA */
};

/* What a call says; nothing is changed unless it is CM_OK. */
enum cm_result {
	CM_OK,
	CM_BAD_STATE,	 /* not in this state; the connection ended meanwhile, perhaps */
	CM_BAD_ARGUMENT, /* private data too long, no such device, not for this service */
	CM_IN_USE,	 /* cm_listen(): another listener hears exactly this */
	CM_RESULTS,
};
const char *cm_result_name(enum cm_result result);

/* Memory: the owner's, aligned as by malloc, in use from the init until the end that is named. */
size_t cm_bytes(void);
size_t cm_conn_bytes(void);
size_t cm_listener_bytes(void);

/* The struct cm may be freed when its listeners are gone and its connections are released. */
struct cm *cm_init(void *memory, const struct cm_config *config);

/* ---- Listeners ---- */

enum cm_family {
	CM_FAMILY_IPV4 = 1,
	CM_FAMILY_IPV6 = 2,
	CM_FAMILY_NONE = 4, /* requests without IP header (AF_IB) */
};

struct cm_listen_param {
	enum cm_service service;
	uint64_t service_id;
	uint32_t device;		/* or CM_ANY_DEVICE: also those that come later */
	uint32_t families;		/* set of enum cm_family */
	bool any_address;		/* otherwise address only */
	uint8_t address[MAD_GID_BYTES]; /* local, compared with the IP header's destination; without
					   such a header with the GID that the MAD came to */
};

/*
 * Hear requests.  A request goes to the listener of its service id whose address, else whose
 * device, is named, else to the wildcard; one whose IP header fits none, to those of CM_FAMILY_NONE
 * as if it had no header.  When none of that service id fits (address, family, service) it is
 * refused with REJ 28 (SIDR status 2), without any of that service id with REJ 8 (SIDR status 1).
 */
enum cm_result cm_listen(struct cm *cm, void *memory, const struct cm_listen_param *param,
			 void *user, struct cm_listener **listener);
/* At once; the memory is the owner's again.  Its connections live on. */
void cm_unlisten(struct cm *cm, struct cm_listener *listener);
void *cm_listener_user(const struct cm_listener *listener);

/* ---- Connections ---- */

/* A connection in CM_IDLE.  From here on, and from ops->accept_conn, it lasts until released. */
struct cm_conn *cm_conn_init(struct cm *cm, void *memory, void *user);
void *cm_conn_user(const struct cm_conn *conn);

/*
 * For cm_connect().  Time codes mean 4.096 us x 2^n.  What rdma_cm gives: response_time 20 (4.3 s),
 * max_cm_retries 15, packet_life 16, ack_timeout cm_ack_timeout().  private_data is the whole of
 * it, IP header included (cm_ip_header_put()).
 */
struct cm_connect_param {
	struct cm_path path;
	enum cm_service service; /* CM_RC, CM_UC or CM_XRC */
	uint64_t service_id;
	uint64_t ca_guid; /* our device's, not 0 */
	uint32_t qpn;
	uint32_t starting_psn; /* random; our queue pair's rq_psn */
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t retry_count; /* above 7 is 7 */
	uint8_t rnr_retry;   /* above 7 is 7 */
	bool flow_control;   /* our queue pair reports credits (rule C19) */
	bool srq;
	uint16_t pkey;
	uint8_t path_mtu;	/* code 1..5 */
	uint8_t response_time;	/* code: how long we and the peer may take to answer */
	uint8_t max_cm_retries; /* above 15 is 15 */
	uint8_t packet_life;	/* code: longest one-way trip */
	uint8_t ack_timeout;	/* code, for the REQ: what the peer's queue pair waits for an ACK */
	const uint8_t *private_data;
	size_t private_length; /* at most MAD_REQ_PRIVATE */
};

/* The local ACK timeout's code from our ACK delay's and the packet life time's (IBA 12.7.34). */
uint8_t cm_ack_timeout(uint8_t ack_delay, uint8_t packet_life);

/*
 * IDLE -> REQ_SENT.  Ends with event REP, REJECTED or UNREACHABLE (the latter after response_time
 * and packet life times the transmissions, at most CM_GIVE_UP_NS; twice that when the peer says
 * that its application is slow).
 */
enum cm_result cm_connect(struct cm *cm, struct cm_conn *conn, const struct cm_connect_param *param,
			  uint64_t now);

/* For cm_accept(). */
struct cm_accept_param {
	uint64_t ca_guid;
	uint32_t qpn;
	uint32_t starting_psn;
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t target_ack_delay; /* code: how late our ACKs may be */
	uint8_t rnr_retry;	  /* for the active side's queue pair */
	bool flow_control;	  /* rule C19 */
	bool srq;
	const uint8_t *private_data;
	size_t private_length; /* at most MAD_REP_PRIVATE */
};

/* REQ_RCVD -> REP_SENT.  Ends with event ESTABLISHED, REJECTED, DISCONNECTED or UNREACHABLE. */
enum cm_result cm_accept(struct cm *cm, struct cm_conn *conn, const struct cm_accept_param *param,
			 uint64_t now);

/* REP_RCVD -> ESTABLISHED, and the RTU, which is repeated for each repeated REP. */
enum cm_result cm_rtu(struct cm *cm, struct cm_conn *conn, const uint8_t *private_data,
		      size_t length, uint64_t now);

/*
 * REQ_RCVD, REP_RCVD, REP_SENT -> REJ_SENT; SIDR_REQ_RCVD -> SIDR_REPLIED with status 2, without
 * reason and ari.  Private data: at most MAD_REJ_PRIVATE, or MAD_SIDR_REP_PRIVATE.
 */
struct cm_reject_param {
	uint16_t reason; /* enum mad_reject */
	const uint8_t *ari;
	size_t ari_length; /* at most MAD_ARI_BYTES */
	const uint8_t *private_data;
	size_t private_length;
};
enum cm_result cm_reject(struct cm *cm, struct cm_conn *conn, const struct cm_reject_param *param,
			 uint64_t now);

/*
 * A valid packet of the peer has come to the connection's queue pair, so the RTU was lost or late:
 * REP_SENT -> ESTABLISHED with its event.  CM_BAD_STATE when there is nothing to heal; that it was
 * established already is seen by cm_conn_state().
 */
enum cm_result cm_established(struct cm *cm, struct cm_conn *conn, uint64_t now);
/* The same for the connection of our queue pair qpn, if there is one that waits for the RTU. */
enum cm_result cm_first_request(struct cm *cm, uint32_t qpn, uint64_t now);
/*
 * The peer of our queue pair qpn says that it does not report credits (rule C3).  True, once for
 * each connection, if its REQ or REP has promised them (rule C19).  Nothing changes by it.
 */
bool cm_credits_hidden(struct cm *cm, uint32_t qpn);

/*
 * ESTABLISHED, REP_SENT -> DREQ_SENT, then event DISCONNECTED and TIMEWAIT (at once when the peer's
 * DREQ crosses ours); DREQ_RCVD -> TIMEWAIT with a DREP.  In DREQ_SENT and TIMEWAIT (the grace time
 * may have sent the DREP already): CM_OK, and nothing happens.
 */
enum cm_result cm_disconnect(struct cm *cm, struct cm_conn *conn, uint64_t now);

/*
 * The owner has no more use of it, in any state: nothing is told about it any more.  What the peer
 * should know (REJ, DREQ, DREP, SIDR_REP) is sent, and repeated in the background until it is known
 * or given up; only then ops->released, which may be inside this call.
 */
void cm_destroy(struct cm *cm, struct cm_conn *conn, uint64_t now);

/* ---- Datagram services (SIDR) ---- */

struct cm_sidr_request_param {
	struct cm_path path;
	uint64_t service_id;
	uint16_t pkey;
	uint8_t response_time;	/* code: 20 */
	uint8_t max_cm_retries; /* 15 */
	const uint8_t *private_data;
	size_t private_length; /* at most MAD_SIDR_REQ_PRIVATE */
};
/* IDLE -> SIDR_REQ_SENT.  Ends with event SIDR_REP (whatever its status) or UNREACHABLE, and IDLE.
 */
enum cm_result cm_sidr_request(struct cm *cm, struct cm_conn *conn,
			       const struct cm_sidr_request_param *param, uint64_t now);

struct cm_sidr_reply_param {
	enum mad_sidr_status status;
	uint32_t qpn;
	uint32_t qkey; /* 0x01234567, else newer kernels refuse it */
	const uint8_t *private_data;
	size_t private_length; /* at most MAD_SIDR_REP_PRIVATE */
};
/* SIDR_REQ_RCVD -> SIDR_REPLIED: a request that is repeated gets the same answer. */
enum cm_result cm_sidr_reply(struct cm *cm, struct cm_conn *conn,
			     const struct cm_sidr_reply_param *param, uint64_t now);

/* ---- Messages and time ---- */

/* What became of a received MAD; counted in struct cm_counters. */
enum cm_verdict {
	CM_TAKEN,	     /* it changed something, or was answered */
	CM_REPEATED,	     /* known already: dropped, or answered as before */
	CM_DROP_MAD,	     /* mad_decode() refused it */
	CM_DROP_UNKNOWN_ID,  /* no such connection, and no answer is due */
	CM_DROP_STATE,	     /* does not belong into the connection's state */
	CM_DROP_QPN,	     /* DREQ for another queue pair */
	CM_REFUSED_SERVICE,  /* there is no listener: REJ 8, SIDR status 1 */
	CM_REFUSED_MISMATCH, /* there is a listener, but not for this: REJ 28, SIDR status 2 */
	CM_REFUSED_BACKLOG,  /* accept_conn gave no memory: REJ 3, SIDR status 2 */
	CM_REFUSED_STALE,    /* the peer's queue pair is in use: REJ 10 */
	CM_REFUSED_PATH,     /* the REQ is for another GID than it came to, or for a larger path MTU
				than is possible here: REJ 12, 26 */
	CM_ANSWERED_UNKNOWN, /* DREQ, REP or RTU of a connection that is forgotten: DREP, REJ 6 */
	CM_VERDICTS,
};
const char *cm_verdict_name(enum cm_verdict verdict);

/*
 * A MAD that came to queue pair 1, from->dgid being its sender's address and sgid the one it was
 * sent to.  One for an id of another slot is answered as if it were for one of ours that is gone:
 * it is to be given only to a process that answers for those that have ended.  bytes are read only
 * during the call.
 */
enum cm_verdict cm_receive(struct cm *cm, const struct cm_path *from, const uint8_t *bytes,
			   size_t length, uint64_t now);

/* When cm_expire() has something to do, or CM_NEVER.  Changes with every call above. */
uint64_t cm_deadline(const struct cm *cm);
/* Retries, gives up, ends timewaits: all that is due at now. */
void cm_expire(struct cm *cm, uint64_t now);

/* ---- Looking ---- */

enum cm_state cm_conn_state(const struct cm_conn *conn);

/* What a connection's queue pair needs (ibv_modify_qp); valid from event REP, or REQ, on. */
struct cm_qp_attr {
	struct cm_path path;
	enum cm_service service;
	uint32_t dest_qpn;
	uint32_t rq_psn;	    /* our starting PSN; passive side: known from cm_accept() on */
	uint32_t sq_psn;	    /* the peer's */
	uint8_t path_mtu;	    /* code */
	uint8_t max_rd_atomic;	    /* = initiator depth of our side (the peer's, swapped) */
	uint8_t max_dest_rd_atomic; /* = responder resources of our side (the peer's, swapped) */
	uint8_t retry_count;
	uint8_t rnr_retry;
	/*
	 * Of the peer, as this side has told it.  The passive side tells it by cm_accept(); until
	 * then, and then too, it is taken to be what the peer asks of this side.
	 */
	uint8_t peer_rnr_retry;
	uint8_t ack_timeout; /* code */
};
/* CM_BAD_STATE in IDLE, REQ_SENT, DREQ and TIMEWAIT states, and for datagrams. */
enum cm_result cm_qp_attr(const struct cm_conn *conn, struct cm_qp_attr *attr);

/* For uroce-stat and tests. */
struct cm_conn_info {
	struct cm_path path;
	enum cm_state state;
	enum cm_service service;
	bool active;	/* we sent the REQ */
	bool destroyed; /* lives on in the background */
	uint32_t local_id, remote_id;
	uint32_t local_qpn, remote_qpn;
	uint64_t service_id;
	uint64_t remote_guid;
	uint64_t created, changed; /* times: of the connection, of its last change of state */
	uint32_t resent;	   /* MADs repeated because there was no answer */
	bool flow_control;	   /* our bit in REQ or REP, and the peer's (rule C19) */
	bool peer_flow_control;
	/* Of REQ or REP: what we have sent, and what has come up to its last byte that is not 0. */
	uint32_t private_length, peer_private_length;
	uint64_t deadline; /* or CM_NEVER */
};
void cm_conn_info(const struct cm_conn *conn, struct cm_conn_info *info);
/* All connections, in no order, destroyed ones included.  visit must not call the cm. */
void cm_each_conn(const struct cm *cm, void (*visit)(void *arg, const struct cm_conn *conn),
		  void *arg);
void cm_each_listener(const struct cm *cm,
		      void (*visit)(void *arg, const struct cm_listener *listener), void *arg);

/* Since cm_init().  The first index is an attribute id minus MAD_ATTR_FIRST. */
struct cm_counters {
	uint64_t sent[MAD_ATTRS];
	uint64_t received[MAD_ATTRS];
	uint64_t resent[MAD_ATTRS];   /* of those sent: because there was no answer */
	uint64_t repeated[MAD_ATTRS]; /* of those received: CM_REPEATED */
	uint64_t refused[MAD_ATTRS];  /* of those received: CM_REFUSED_* */
	uint64_t rejected[64];	      /* REJs sent, by reason; above 63 counted at 0 */
	uint64_t mad_error[MAD_ERRORS];
	uint64_t verdict[CM_VERDICTS];
	uint64_t event[CM_EVENTS];
};
const struct cm_counters *cm_counters(const struct cm *cm);

/* ---- Numbers ---- */

/* 4.096 us x 2^code, IBA's unit of every time in these messages. */
uint64_t cm_code_ns(uint8_t code);

#define CM_MS UINT64_C(1000000)
/* Nothing is tried for longer: later than this the kernel (from 6.17 on) has given up, too. */
#define CM_GIVE_UP_NS (70000 * CM_MS)
/* The first repetitions come early, for loss is more likely than a slow peer: after these pauses,
 * then after the interval that the attributes say. */
#define CM_EARLY_RETRIES                              \
	{                                             \
		50 * CM_MS, 200 * CM_MS, 1000 * CM_MS \
	}
/* Unanswered requests (REQ, SIDR_REQ, DREQ) to a peer; more wait.  The kernel's limit is the same,
 * from its buffers for 512.  The DREQs of destroyed connections do not wait: the process may be
 * about to end. */
#define CM_QUOTA 128
/* A DREQ is answered by the application; when it does not in this time, we do. */
#define CM_DREP_GRACE_NS (1000 * CM_MS)
/* How long a closed connection is remembered at most, to answer repeated messages.  Its queue pair
 * and its port are free at once. */
#define CM_TIMEWAIT_MAX_NS (512 * CM_MS)
/* How long the DREQ of a destroyed connection is repeated. */
#define CM_FAREWELL_NS (15000 * CM_MS)
/* How long an answer to a SIDR_REQ is kept: one repetition of the kernel's (4.1 s) finds it. */
#define CM_SIDR_MEMORY_NS (5000 * CM_MS)
/* After a refusal because of a stale connection: time to close that one. */
#define CM_STALE_PAUSE_NS (50 * CM_MS)

#endif
