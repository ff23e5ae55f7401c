/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * Connection manager of one process.  Its results depend only on messages, calls and the times
 * passed in: MADs are received by cm_receive(), MADs and events are sent by struct cm_ops, and the
 * next deadline is a number.  No socket, thread, clock, allocation or errno.
 *
 * The owner of a struct cm serialises all calls with a lock.  The ops are called during the calls
 * below and must not call the same cm.
 *
 *   active side    cm_conn_init, cm_connect ......... event REP ... cm_rtu
 *   passive side   cm_listen ... accept_conn, event REQ ... cm_accept ... event ESTABLISHED
 *   both           cm_disconnect or event DISCONNECTED ... cm_destroy ... ops->released
 *   datagrams      cm_sidr_request ... event SIDR_REP;  event SIDR_REQ ... cm_sidr_reply
 *
 * Times are nanoseconds of one monotonic clock that is never 0.  Multi-byte integers are in host
 * order.  GIDs are 16 bytes, with IPv4 addresses as ::ffff:a.b.c.d.
 */
#ifndef UROCE_CM_CM_H
#define UROCE_CM_CM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cm/msg/ip_header.h"
#include "cm/msg/mad.h"

#define CM_NEVER UINT64_MAX
/* Communication ids begin with the slot of their process, so that a MAD can be forwarded to it. */
#define CM_SLOT_BITS 12
#define CM_SLOTS (1u << CM_SLOT_BITS)
#define CM_ANY_DEVICE 0

/* Path of a MAD, seen from this host; also the path of the connection's data packets. */
struct cm_path {
	uint32_t device;	     /* owner's number of the device, not CM_ANY_DEVICE */
	uint8_t sgid[MAD_GID_BYTES]; /* local GID */
	uint8_t dgid[MAD_GID_BYTES]; /* GID of the peer */
	uint32_t flow_label;	     /* 20 bits */
	uint8_t traffic_class;
	uint8_t hop_limit;
	uint8_t sl;
};

/* Transport service of a listener or connection. */
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
	CM_MRA_REQ_RCVD, /* MRA received: the application of the peer needs more time */
	CM_REP_RCVD,	 /* event REP was reported; waits for cm_rtu() or cm_reject() */
	CM_REQ_RCVD,	 /* event REQ was reported; waits for cm_accept() or cm_reject() */
	CM_REP_SENT,
	CM_MRA_REP_RCVD,
	CM_ESTABLISHED,
	CM_DREQ_SENT,
	/* Event DISCONNECTED was reported; cm_disconnect() or a timer sends the DREP. */
	CM_DREQ_RCVD,
	CM_TIMEWAIT,
	CM_SIDR_REQ_SENT,
	CM_SIDR_REQ_RCVD, /* event SIDR_REQ was reported; waits for cm_sidr_reply() */
	CM_SIDR_REPLIED,  /* repeats its reply for each repeated request */
	CM_REJ_SENT,	  /* repeats its REJ for each repeated message of the peer, then IDLE */
	CM_STATES,
};
const char *cm_state_name(enum cm_state state);

enum cm_event_type {
	CM_EVENT_REQ, /* request for a new connection (created by accept_conn); mad: REQ */
	CM_EVENT_REP, /* the peer accepted; mad: REP */
	/*
	 * Passive side: the active side is ready; mad: RTU, or NULL if reported by cm_established()
	 * or cm_established_by_qpn().
	 */
	CM_EVENT_ESTABLISHED,
	/*
	 * mad: REJ.  If a new connection of the peer's queue pair was seen before this one was
	 * established, a locally made REJ with MAD_REJECT_STALE.
	 */
	CM_EVENT_REJECTED,
	CM_EVENT_UNREACHABLE, /* no reply in time; mad NULL */
	/* mad: DREQ, DREP, or a REJ received instead; NULL: no reply to our DREQ in time */
	CM_EVENT_DISCONNECTED,
	CM_EVENT_TIMEWAIT_EXIT, /* end of timewait, only after DISCONNECTED; mad NULL */
	CM_EVENT_SIDR_REQ,	/* as CM_EVENT_REQ; mad: SIDR_REQ */
	CM_EVENT_SIDR_REP,	/* reply with any status; mad: SIDR_REP */
	CM_EVENTS,
};

/*
 * An event of a connection.  Each type is reported at most once per connection attempt, in the
 * order of the states.  DISCONNECTED is reported once however the connection ends, and without
 * ESTABLISHED if the RTU was lost.  No events are reported after cm_destroy().
 */
struct cm_event {
	enum cm_event_type type;
	uint64_t now;
	const struct mad *mad; /* valid during the call only; completely decoded */
	/* REQ, SIDR_REQ, SIDR_REP: path on which the MAD was received */
	const struct cm_path *from;
	struct cm_listener *listener; /* REQ, SIDR_REQ: listener of the request */
};

struct cm;
struct cm_conn;
struct cm_listener;

struct cm_ops {
	/* Sends MAD_BYTES bytes to queue pair 1 of path->dgid, unreliably. */
	void (*send)(void *owner, const struct cm_path *path, const uint8_t *mad);
	void (*event)(void *owner, struct cm_conn *conn, const struct cm_event *event);
	/*
	 * Returns cm_conn_bytes() of memory for the connection that request (REQ or SIDR_REQ) opens
	 * at listener, and sets *user to the later result of cm_conn_user(); the event follows
	 * immediately.  Returns NULL if the backlog is full: the request is rejected
	 * (MAD_REJECT_NO_RESOURCES, or MAD_SIDR_REJECT).
	 */
	void *(*accept_conn)(void *owner, struct cm_listener *listener, const struct mad *request,
			     const struct cm_path *from, void **user);
	/* Returns the memory of conn to the owner: during cm_destroy() or later. */
	void (*released)(void *owner, struct cm_conn *conn, void *user);
	/*
	 * Sets the message to send along path if this process exits without sending it: a DREQ, or
	 * a copy of the REJ that was sent to the peer, because that may have been lost.  mad NULL
	 * clears it.  Set and clear calls alternate; the last call before released() is a clear.
	 * May be NULL.
	 */
	void (*last_message)(void *owner, struct cm_conn *conn, const struct cm_path *path,
			     const uint8_t *mad);
	/*
	 * Returns the code of the largest path MTU possible on path from: a REQ with a larger one
	 * is rejected (MAD_REJECT_INVALID_MTU).  May be NULL: no limit.
	 */
	uint8_t (*path_mtu)(void *owner, const struct cm_path *from);
};

struct cm_config {
	const struct cm_ops *ops; /* must outlive the cm */
	void *owner;
	/* Slot of this process, below CM_SLOTS: the upper bits of its communication ids. */
	unsigned int slot;
	/* Random start of the communication ids, so that restarted processes use other ids. */
	uint32_t id_start;
	uint32_t req_limit; /* maximum number of unanswered requests per peer; 0: CM_REQ_LIMIT */
};

/* Result of a call.  Nothing is changed unless it is CM_OK. */
enum cm_result {
	CM_OK,
	CM_BAD_STATE,	 /* not allowed in this state; the connection may just have ended */
	CM_BAD_ARGUMENT, /* private data too long, no device, or wrong service */
	CM_IN_USE,	 /* cm_listen(): another listener would receive the same requests */
};

/*
 * Sizes of the objects.  The owner allocates them, aligned as by malloc(), and must keep them from
 * the call that initialises them until they are released.
 */
size_t cm_bytes(void);
size_t cm_conn_bytes(void);
size_t cm_listener_bytes(void);

/* The struct cm may be freed after its listeners are removed and its connections are released. */
struct cm *cm_init(void *memory, const struct cm_config *config);

/* ---- Listeners ---- */

enum cm_family {
	CM_FAMILY_IPV4 = 1,
	CM_FAMILY_IPV6 = 2,
	CM_FAMILY_NONE = 4, /* requests without IP CM header (AF_IB) */
};

struct cm_listen_param {
	enum cm_service service;
	uint64_t service_id;
	uint32_t device;   /* or CM_ANY_DEVICE: all devices, also future ones */
	uint32_t families; /* bit set of enum cm_family */
	bool any_address;  /* false: only requests for address */
	/*
	 * Local address, compared with the destination in the IP CM header, or with the local GID
	 * of the MAD if there is no such header.
	 */
	uint8_t address[MAD_GID_BYTES];
};

/*
 * Listens for requests.  Of the listeners with the service id of a request, one that names its
 * address has precedence over one that names its device, and that over a wildcard.  If no listener
 * matches the IP CM header, listeners with CM_FAMILY_NONE are tried as if the request had no
 * header.  See CM_REFUSED_SERVICE and CM_REFUSED_MISMATCH for requests without a match.
 *
 * memory has cm_listener_bytes() bytes and belongs to the listener until cm_unlisten().  CM_IN_USE:
 * see enum cm_result.
 */
enum cm_result cm_listen(struct cm *cm, void *memory, const struct cm_listen_param *param,
			 void *user, struct cm_listener **listener);
/* Removes a listener at once; its memory is the owner's again.  Its connections continue. */
void cm_unlisten(struct cm *cm, struct cm_listener *listener);
void *cm_listener_user(const struct cm_listener *listener);

/* ---- Connections ---- */

/*
 * Initialises a connection in CM_IDLE.  Connections, also those from ops->accept_conn, keep their
 * memory until ops->released.
 */
struct cm_conn *cm_conn_init(struct cm *cm, void *memory, void *user);
void *cm_conn_user(const struct cm_conn *conn);

/*
 * Parameters of cm_connect().  Time codes n stand for 4.096 us x 2^n.  rdma_cm uses response_time
 * 20 (4.3 s), max_cm_retries 15, packet_life 16, ack_timeout by cm_ack_timeout().  private_data is
 * the complete field, with the IP CM header (cm_ip_header_put()).
 */
struct cm_connect_param {
	struct cm_path path;
	enum cm_service service; /* CM_RC, CM_UC or CM_XRC */
	uint64_t service_id;
	uint64_t ca_guid; /* GUID of the local device, not 0 */
	uint32_t qpn;
	uint32_t starting_psn; /* random; rq_psn of the local queue pair */
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t retry_count; /* larger values are reduced to 7 */
	uint8_t rnr_retry;   /* larger values are reduced to 7 */
	bool flow_control;   /* the local queue pair reports credits (rule C19) */
	bool srq;
	uint16_t pkey;
	uint8_t path_mtu;	/* code 1 to 5 */
	uint8_t response_time;	/* time code: how long either side may take to reply */
	uint8_t max_cm_retries; /* larger values are reduced to 15 */
	uint8_t packet_life;	/* time code: maximum one-way delay */
	/* Time code in the REQ: Local ACK Timeout of the peer's queue pair. */
	uint8_t ack_timeout;
	const uint8_t *private_data;
	size_t private_length; /* at most MAD_REQ_PRIVATE */
};

/*
 * Returns the time code of the Local ACK Timeout for the ACK delay of the local device and the
 * packet life time, both time codes (IBA 12.7.34).
 */
uint8_t cm_ack_timeout(uint8_t ack_delay, uint8_t packet_life);

/*
 * Sends a REQ: IDLE -> REQ_SENT.  Ends with event REP, REJECTED or UNREACHABLE.  UNREACHABLE is
 * reported after (2 packet lives + response time) x (max_cm_retries + 1), at most CM_GIVE_UP_NS; an
 * MRA of the peer extends that once.
 */
enum cm_result cm_connect(struct cm *cm, struct cm_conn *conn, const struct cm_connect_param *param,
			  uint64_t now);

/* Parameters of cm_accept(). */
struct cm_accept_param {
	uint64_t ca_guid;
	uint32_t qpn;
	uint32_t starting_psn;
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t target_ack_delay; /* time code: maximum delay of the ACKs of the local queue pair */
	uint8_t rnr_retry;	  /* for the queue pair of the active side */
	bool flow_control;	  /* the local queue pair reports credits (rule C19) */
	bool srq;
	const uint8_t *private_data;
	size_t private_length; /* at most MAD_REP_PRIVATE */
};

/* Sends a REP: REQ_RCVD -> REP_SENT.  Ends as ESTABLISHED, REJECTED, DISCONNECTED, UNREACHABLE. */
enum cm_result cm_accept(struct cm *cm, struct cm_conn *conn, const struct cm_accept_param *param,
			 uint64_t now);

/* Sends an RTU: REP_RCVD -> ESTABLISHED.  The RTU is repeated for each repeated REP. */
enum cm_result cm_rtu(struct cm *cm, struct cm_conn *conn, const uint8_t *private_data,
		      size_t length, uint64_t now);

/*
 * Parameters of cm_reject().  REQ_RCVD, REP_RCVD, REP_SENT -> REJ_SENT; SIDR_REQ_RCVD ->
 * SIDR_REPLIED with status 2, which has no reason and no ari.  Maximum length of the private data:
 * MAD_REJ_PRIVATE, or MAD_SIDR_REP_PRIVATE.
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
 * Call when the connection's queue pair has received a valid packet of the peer, so that the RTU
 * must be lost or late: REP_SENT -> ESTABLISHED with its event.  Returns CM_BAD_STATE if the
 * connection does not wait for an RTU; cm_conn_state() shows whether it is established already.
 */
enum cm_result cm_established(struct cm *cm, struct cm_conn *conn, uint64_t now);
/*
 * Calls cm_established() for the connection of local queue pair qpn that waits for an RTU.  Returns
 * CM_BAD_STATE if there is none.
 */
enum cm_result cm_established_by_qpn(struct cm *cm, uint32_t qpn, uint64_t now);
/*
 * Call when a packet shows that the peer of local queue pair qpn does not report credits (rule C3).
 * Returns true, once per connection, if the REQ or REP of the peer has announced them (rule C19).
 * Does not change the connection otherwise.
 */
bool cm_peer_reports_no_credits(struct cm *cm, uint32_t qpn);

/*
 * Ends a connection.  ESTABLISHED, REP_SENT: sends a DREQ, -> DREQ_SENT, later event DISCONNECTED
 * and TIMEWAIT (immediately if the DREQs of both sides cross).  DREQ_RCVD: sends a DREP, ->
 * TIMEWAIT.  Returns CM_OK without effect in DREQ_SENT and TIMEWAIT (a timer may have sent the DREP
 * already).
 */
enum cm_result cm_disconnect(struct cm *cm, struct cm_conn *conn, uint64_t now);

/*
 * Ends a connection, in any state, of which the owner needs no more events.  Sends the REJ, DREQ,
 * DREP or SIDR_REP that the peer waits for.  The connection stays in the background, to repeat that
 * message, until the peer has answered or is given up.  Calls ops->released then, or before this
 * call returns if there is nothing to wait for.
 */
void cm_destroy(struct cm *cm, struct cm_conn *conn, uint64_t now);

/* ---- Datagram services (SIDR) ---- */

struct cm_sidr_request_param {
	struct cm_path path;
	uint64_t service_id;
	uint16_t pkey;
	uint8_t response_time;	/* time code; rdma_cm uses 20 */
	uint8_t max_cm_retries; /* rdma_cm uses 15 */
	const uint8_t *private_data;
	size_t private_length; /* at most MAD_SIDR_REQ_PRIVATE */
};
/* Sends a SIDR_REQ: IDLE -> SIDR_REQ_SENT.  Ends in IDLE, with SIDR_REP or UNREACHABLE. */
enum cm_result cm_sidr_request(struct cm *cm, struct cm_conn *conn,
			       const struct cm_sidr_request_param *param, uint64_t now);

struct cm_sidr_reply_param {
	enum mad_sidr_status status;
	uint32_t qpn;
	uint32_t qkey; /* 0x01234567: newer kernels reject others */
	const uint8_t *private_data;
	size_t private_length; /* at most MAD_SIDR_REP_PRIVATE */
};
/* Sends a SIDR_REP: SIDR_REQ_RCVD -> SIDR_REPLIED.  Repeated for each repeated request. */
enum cm_result cm_sidr_reply(struct cm *cm, struct cm_conn *conn,
			     const struct cm_sidr_reply_param *param, uint64_t now);

/* ---- Messages and time ---- */

/* Result of a received MAD. */
enum cm_verdict {
	CM_HANDLED,	    /* changed a connection, or was answered */
	CM_REPEATED,	    /* repeated by the peer: dropped, or answered as before */
	CM_DROP_MAD,	    /* rejected by mad_decode() */
	CM_DROP_UNKNOWN_ID, /* no such connection, and no reply is required */
	CM_DROP_STATE,	    /* not allowed in the state of the connection */
	CM_DROP_QPN,	    /* DREQ with another QPN than the connection's */
	/* Rejected.  SIDR_REQ: MAD_SIDR_UNSUPPORTED without listener, otherwise MAD_SIDR_REJECT. */
	CM_REFUSED_SERVICE,  /* no listener with the service id: MAD_REJECT_INVALID_SERVICE_ID */
	CM_REFUSED_MISMATCH, /* only for other addresses, families, services: MAD_REJECT_CONSUMER */
	CM_REFUSED_BACKLOG,  /* accept_conn returned NULL: MAD_REJECT_NO_RESOURCES */
	CM_REFUSED_STALE,    /* the peer's queue pair has a connection: MAD_REJECT_STALE */
	CM_REFUSED_PATH,     /* MAD_REJECT_INVALID_GID or MAD_REJECT_INVALID_MTU */
	CM_REPLIED_UNKNOWN,  /* unknown connection: DREP, or MAD_REJECT_INVALID_COMM_ID */
	CM_VERDICTS,
};

/*
 * Handles a MAD received by queue pair 1.  from->dgid is the address of the sender, from->sgid the
 * local address.  bytes are read only during the call.
 *
 * A MAD for a communication id of another slot is answered like one for a released connection: pass
 * such a MAD only to the process that answers for processes that have exited.
 */
enum cm_verdict cm_receive(struct cm *cm, const struct cm_path *from, const uint8_t *bytes,
			   size_t length, uint64_t now);

/* Returns the time of the next cm_expire(), or CM_NEVER.  May change in every call above. */
uint64_t cm_deadline(const struct cm *cm);
/* Handles all timers due at now: repeats messages, gives up, ends timewaits. */
void cm_expire(struct cm *cm, uint64_t now);

/* ---- Queries ---- */

enum cm_state cm_conn_state(const struct cm_conn *conn);

/* Attributes of the connection's queue pair (ibv_modify_qp()), from event REP or REQ on. */
struct cm_qp_attr {
	struct cm_path path;
	enum cm_service service;
	uint32_t dest_qpn;
	uint32_t rq_psn;	    /* starting PSN in our REQ or REP (passive: from cm_accept()) */
	uint32_t sq_psn;	    /* starting PSN in the peer's REQ or REP */
	uint8_t path_mtu;	    /* code 1 to 5 */
	uint8_t max_rd_atomic;	    /* our initiator depth: responder resources of the peer */
	uint8_t max_dest_rd_atomic; /* our responder resources: initiator depth of the peer */
	uint8_t retry_count;
	uint8_t rnr_retry;
	/*
	 * RNR retry count of the peer's queue pair.  Active side: the count in our REQ.  Passive
	 * side: assumed to be the count in the peer's REQ, because librdmacm needs the attributes
	 * before it calls cm_accept(), which sends another count.
	 */
	uint8_t peer_rnr_retry;
	uint8_t ack_timeout; /* time code */
};
/*
 * Sets *attr.  Returns CM_BAD_STATE for CM_UD, and outside of REQ_RCVD, REP_RCVD, REP_SENT,
 * MRA_REP_RCVD and ESTABLISHED.
 */
enum cm_result cm_qp_attr(const struct cm_conn *conn, struct cm_qp_attr *attr);

/* State of a connection, for uroce-stat and tests. */
struct cm_conn_info {
	struct cm_path path;
	enum cm_state state;
	enum cm_service service;
	bool active;	/* this side sent the REQ */
	bool destroyed; /* cm_destroy() was called, but the connection is not released yet */
	uint32_t local_id, remote_id;
	uint32_t local_qpn, remote_qpn;
	uint64_t service_id;
	uint64_t remote_guid;
	uint64_t created, changed; /* times of the creation and of the last change of state */
	uint32_t resent;	   /* number of MADs repeated for lack of a reply */
	bool flow_control;	   /* bit in our REQ or REP (rule C19) */
	bool peer_flow_control;
	/* Bytes of private data in REQ or REP: sent, and received (up to the last byte not 0). */
	uint32_t private_length, peer_private_length;
	uint64_t deadline; /* next timer, or CM_NEVER */
};
void cm_conn_info(const struct cm_conn *conn, struct cm_conn_info *info);
/* Calls visit, which must not call the cm, for all connections, also destroyed ones. */
void cm_each_conn(const struct cm *cm, void (*visit)(void *arg, const struct cm_conn *conn),
		  void *arg);

/* Counters since cm_init().  Index of arrays of MAD_ATTRS: attribute id minus MAD_ATTR_FIRST. */
struct cm_counters {
	uint64_t sent[MAD_ATTRS];
	uint64_t received[MAD_ATTRS];
	uint64_t resent[MAD_ATTRS];   /* subset of sent: repeated for lack of a reply */
	uint64_t repeated[MAD_ATTRS]; /* subset of received: CM_REPEATED */
	uint64_t refused[MAD_ATTRS];  /* subset of received: CM_REFUSED_* */
	uint64_t rejected[64];	      /* REJs sent, by reason; reasons above 63 are counted at 0 */
};
const struct cm_counters *cm_counters(const struct cm *cm);

/* ---- Constants ---- */

/* Returns 4.096 us x 2^code, the encoding of all times in these messages. */
uint64_t cm_code_ns(uint8_t code);

#define CM_MS UINT64_C(1000000)
/* Maximum time for which any message is repeated; Linux 6.17 and later has given up by then. */
#define CM_GIVE_UP_NS (70000 * CM_MS)
/*
 * Delays of the first repetitions, shorter than the interval that the message specifies, because
 * packet loss is more likely than a slow peer.  Later repetitions use the interval.
 */
#define CM_FIRST_RETRY_DELAYS                         \
	{                                             \
		50 * CM_MS, 200 * CM_MS, 1000 * CM_MS \
	}
/*
 * Maximum number of unanswered requests (REQ, SIDR_REQ, DREQ) per peer; further requests are
 * queued.  The Linux kernel has the same limit, since it has receive buffers for 512.  DREQs of
 * destroyed connections are not limited, because the process may be about to exit.
 */
#define CM_REQ_LIMIT 128
/* The application answers a DREQ; after this time the DREP is sent without it. */
#define CM_DREP_DELAY_NS (1000 * CM_MS)
/*
 * Maximum duration of timewait, in which repeated messages for a closed connection are answered.
 * Its queue pair and port can be reused immediately.
 */
#define CM_TIMEWAIT_MAX_NS (512 * CM_MS)
/* How long the DREQ of a destroyed connection is repeated. */
#define CM_DESTROY_DREQ_NS (15000 * CM_MS)
/* How long the reply to a SIDR_REQ is kept.  The kernel repeats its request after 4.1 s. */
#define CM_SIDR_REPLY_CACHE_NS (5000 * CM_MS)
/* Delay before a REQ is repeated after MAD_REJECT_STALE; the peer ends its old connection. */
#define CM_STALE_RETRY_DELAY_NS (50 * CM_MS)

#endif
