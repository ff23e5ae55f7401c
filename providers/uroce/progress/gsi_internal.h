/* SPDX-License-Identifier: GPL-2.0-only OR Linux-OpenIB */
/*
 * The insides of struct gsi.  Only gsi*.c include it.
 *
 * Locks: gsi.lock is never held where a turn is made or waited for; those of the link and of the
 * fault injector are inside of it; gsi.queue_lock is innermost, since the rx demux takes it
 * inside a turn.  No callback is called under any of them.
 *
 * fork: all descriptors are made, stored and closed under gsi.lock, which fork() waits for, so that
 * the child finds every one of them.
 */
#ifndef UROCE_PROGRESS_GSI_INTERNAL_H
#define UROCE_PROGRESS_GSI_INTERNAL_H

#include "gsi.h"
#include "gsi_target.h"
#include "instance.h"

enum {
	/* Paths to other hosts that are kept open. */
	GSI_PEERS = 64,
	GSI_PORT_BUCKETS = 4096,
	/* The port spaces of librdmacm. */
	GSI_PORT_SPACES = 4,
};

/* ---- a member's watch over the holder (gsi_standby.c) ---- */

enum gsi_standby_phase {
	GSI_STANDBY_RESTS,   /* it has been heard: no more questions until look_at */
	GSI_STANDBY_WATCHES, /* nothing has arrived for it since */
	GSI_STANDBY_ASKED,   /* at asked_at; its answer is looked for at look_at */
};

struct gsi_standby {
	enum gsi_standby_phase phase;
	uint64_t look_at;  /* or ENG_NEVER */
	uint64_t asked_at; /* GSI_STANDBY_ASKED */
	uint64_t heard_at;
	pid_t pid;	   /* the holder's; 0: not known */
	unsigned int slot; /* the holder's; LINK_SLOTS: it has not said */
	int socket;	   /* the link's, that is watched; or -1 */
};

/* ---- an address (gsi_address.c) ---- */

/* What an event of the epoll set is about. */
enum gsi_what {
	GSI_WHAT_LISTENER,
	GSI_WHAT_HOLDER,
	GSI_WHAT_GUEST,
	GSI_WHAT_BELL,
	GSI_WHAT_TRAFFIC,
};

enum gsi_role {
	GSI_SEEKING, /* neither yet: tried again at retry_at */
	GSI_MEMBER,  /* another process holds queue pair 1 */
	GSI_HOLDER,  /* this one does */
};

/* The holder's view of a member.  Which one it is it says itself. */
struct gsi_guest {
	int fd;		   /* -1: none */
	int will_fd;	   /* -1: it has given none */
	unsigned int slot; /* LINK_SLOTS: it has not said */
};

struct gsi_address {
	struct gsi_address *next;
	struct gsi *gsi;
	struct link_addr *addr;
	uint32_t id; /* for epoll: never used twice */
	unsigned int users;
	uint8_t gid[16];
	uint32_t scope_id;
	enum gsi_role role;
	uint64_t retry_at;  /* GSI_SEEKING */
	int seek_error;	    /* why it is still that */
	unsigned int tries; /* to find a holder, in vain so far */
	bool leaving;	    /* gsi_flush(): not to become the holder again */
	unsigned int level; /* of the holder's name; GSI_HOLDER: of its own */
	int bell_fd;	    /* of the holder; GSI_HOLDER: its own; or -1 */
	bool looks_up;	    /* GSI_HOLDER: another may have a higher level */
	uint64_t gave_way;  /* when; else 0 */
	uint64_t absent;    /* GSI_HOLDER: slots that were taken when it stepped in; not come yet */
	struct gsi_standby standby; /* GSI_MEMBER */
	int fd;			    /* GSI_MEMBER: the connection to the holder; else -1 */
	int will_fd;		    /* of the holder, or of the one before; or -1 */
	uint64_t held_since;	    /* GSI_HOLDER, and what follows too */
	struct gsi_guest guest[LINK_SLOTS];
	struct gsi_services services;
	struct gsi_requests requests;
};

/* How a MAD came to the queue. */
enum gsi_came {
	GSI_CAME_HERE,	 /* as a packet, or from a member that it came to: to be handed on */
	GSI_CAME_HANDED, /* from the holder: for this process */
};

/* What may be untold of queue pairs; where it is a first request, the RTU has to come then. */
#define GSI_NEWS_MAX 128

struct gsi_news {
	uint32_t qpn;
	bool credits_hidden; /* else its first request has come */
};

struct gsi_entry {
	struct gsi_mad mad;
	enum gsi_came came;
};

/* ---- a path to another host ---- */

struct gsi_peer {
	struct gsi_address *address; /* NULL: empty */
	uint8_t dgid[16];
	uint32_t scope_id;
	uint8_t traffic_class;
	uint64_t used; /* the gsi's count of sends then */
	struct eng_path path;
};

/* ---- a port (gsi_port.c) ---- */

struct gsi_port {
	struct gsi_port *next; /* in its bucket */
	struct gsi *gsi;
	uint16_t space, port;
	struct gsi_port_address address;
	unsigned int flags;
	bool chosen;	/* here: its names are taken when it listens */
	bool own;	/* chosen among the numbers of the slot */
	bool listening; /* it is among the services of addresses */
	bool named;	/* it has its names */
	/* Of the address; of any IPv4 too, if it takes that; and that it may be shared. */
	int name[3];
};

/* How many numbers were chosen in a port space: when all are in use, no search is made. */
struct gsi_port_count {
	uint16_t space; /* 0: of none yet */
	uint32_t chosen, own;
};

/* ---- what is said for the dead (gsi_will.c) ---- */

struct uroce_abi_will;

struct gsi_own_will {
	int fd; /* -1: there is none */
	struct uroce_abi_will *entry;
	/* The numbers of free entries: the last one is used next. */
	uint16_t free[GSI_WILLS];
	unsigned int free_count;
};

/* A will that this process has to execute, for what was sent from one address. */
struct gsi_heir {
	struct gsi_heir *next;
	int fd;
	uint8_t gid[16];
	unsigned int position; /* the next entry */
	unsigned int round;    /* how often all has been sent */
	unsigned int waits;    /* for the owner's end */
	bool found;	       /* there was anything in this round */
	bool patient;	       /* the owner stands still, and may do so for long */
	uint64_t due;
};

/* MADs that wait until it is known which process they are for. */
struct gsi_waiting {
	struct gsi_entry *entry; /* GSI_QUEUE_MAX */
	unsigned int count;
};

struct gsi {
	struct progress *progress;
	struct gsi_hooks hooks;
	unsigned int users; /* under the lock in gsi.c */
	int epoll_fd;	    /* of all connections and listeners */

	pthread_mutex_t lock;
	struct gsi_address *addresses;
	uint32_t next_address_id;
	struct gsi_port *ports[GSI_PORT_BUCKETS];
	struct gsi_port_count port_count[GSI_PORT_SPACES];
	struct gsi_peer peer[GSI_PEERS];
	uint64_t sends;
	uint32_t psn;
	uint64_t deadline; /* the caller's */
	struct gsi_own_will will;
	struct gsi_heir *heirs;
	struct gsi_waiting waiting;

	atomic_bool leaves;	/* gsi_flush(): the helper is to hand over what is held */
	atomic_bool delivering; /* the helper has something in hand that was in the queue */
	pthread_mutex_t queue_lock;
	struct gsi_entry *queue; /* GSI_QUEUE_MAX, a ring */
	unsigned int queue_first, queue_count;
	/* Of queue pairs; under queue_lock. */
	struct gsi_news news[GSI_NEWS_MAX];
	unsigned int news_count;
};

/* gsi_queue.c.  Queue a MAD for the callback; one too many is counted.  Any thread. */
void gsi_enqueue(struct gsi *gsi, const struct gsi_entry *entry);
/* In the helper thread, without locks: the callbacks for what is queued. */
void gsi_queue_deliver(struct gsi *gsi);
/* By a thread that makes a turn, or any other: the helper, if it is not that one, has to come. */
void gsi_want_service_in_turn(struct progress *progress);
/* Is the queue empty, and nothing of it in hand? */
bool gsi_queue_is_idle(struct gsi *gsi);

/* gsi.c.  Caller holds lock.  When the helper has to come next. */
void gsi_set_deadline(struct gsi *gsi);

/* gsi_news.c: what is noted is told, without locks. */
void gsi_tell_news(struct gsi *gsi);

/* gsi_send.c; caller holds lock. */
int gsi_send_locked(struct gsi *gsi, const struct gsi_path *path, const uint8_t mad[MAD_BYTES]);
void gsi_close_peers(struct gsi *gsi, const struct gsi_address *address);

/* gsi_will.c; caller holds lock, but for the first two. */
void gsi_will_open(struct gsi_own_will *will);
void gsi_will_close(struct gsi *gsi);
/*
 * Its owner seems to have ended: *fd is taken over.  What was sent from the address is due.  If it
 * only stands still (patient) that is when it ends, unless it comes back before.
 */
void gsi_will_inherit(struct gsi_address *address, int *fd, bool patient);
/* The owner of the will has come back. */
void gsi_will_return(const struct gsi_address *address, int fd);
void gsi_will_execute(struct gsi *gsi, uint64_t now);
/* When that has to be called again, or ENG_NEVER. */
uint64_t gsi_will_deadline(const struct gsi *gsi);
/* Has a process that died just now something to say from the address that was not sent yet? */
bool gsi_will_is_due(const struct gsi_address *address);
/* In a forked child. */
void gsi_will_abandon(struct gsi *gsi);

/* gsi_address.c; caller holds lock for all of them. */
struct gsi_address *gsi_address_find(struct gsi *gsi, const uint8_t gid[16], uint32_t scope_id);
/* Become holder or member, if it is neither and the time has come. */
void gsi_address_seek(struct gsi_address *address, uint64_t now);
/* As the holder, if there are members: leave it to one of them.  True when they have been told. */
bool gsi_address_step_down(struct gsi_address *address);
/* Give all up, as at the end. */
void gsi_address_leave(struct gsi_address *address);
/* Have gsi_address_event() called, by epoll's events, with what data tells then. */
int gsi_address_watch(const struct gsi_address *address, int fd, uint32_t events,
		      enum gsi_what what, unsigned int place);
void gsi_address_unwatch(const struct gsi_address *address, int fd);
/* Something has happened at a descriptor: which is what gsi_address_watch() was told. */
void gsi_address_event(struct gsi *gsi, uint64_t data);
/* GSI_MEMBER: read what the holder has said.  It may be none after that. */
void gsi_address_hear_holder(struct gsi_address *address);
/* GSI_MEMBER: the holder does not answer; be the holder in its place, if no other process is. */
void gsi_address_step_in(struct gsi_address *address, uint64_t now);
/*
 * GSI_HOLDER: true when another process has stepped in, and this is no holder any more.  To be
 * called before anything is done that only the holder may do.
 */
bool gsi_address_gives_way(struct gsi_address *address);
/* Close what may be watched, and make it -1. */
void gsi_address_close(const struct gsi_address *address, int *fd);
void gsi_replace_will(int *fd, int with);
/* Queue what came to the wrong process, or has been handed to this one. */
void gsi_address_enqueue(struct gsi_address *address, const struct link_mad *from,
			 enum gsi_came came);
/* Listening has begun or ended: tell the holder, or note it as the holder. */
void gsi_address_service(struct gsi_address *address, const struct link_service *service,
			 bool listen);
/* In a forked child. */
void gsi_address_abandon(struct gsi_address *address);
/* gsi_guests.c, of a holder; caller holds lock. */
void gsi_guests_accept(struct gsi_address *address);
void gsi_guest_read(struct gsi_address *address, struct gsi_guest *guest);
void gsi_guest_lose(struct gsi_address *address, struct gsi_guest *guest);
/* Before a process is said to be missing: read what all of them have sent. */
void gsi_address_hear_all(struct gsi_address *address);
/* The member that has the slot, or NULL. */
struct gsi_guest *gsi_address_guest(struct gsi_address *address, unsigned int slot);

/* gsi_standby.c, of a member; caller holds lock.  It has connected to a holder; it has no more. */
void gsi_standby_begin(struct gsi_address *address, uint64_t now);
void gsi_standby_end(struct gsi_address *address);
/* The holder has said something; something arrived for it; this process has sent a MAD. */
void gsi_standby_heard(struct gsi_address *address, uint64_t now);
void gsi_standby_traffic(struct gsi_address *address, uint64_t now);
void gsi_standby_sent(struct gsi_address *address);
/* To be called at its deadline, or ENG_NEVER; it may step in. */
void gsi_standby_look(struct gsi_address *address, uint64_t now);
uint64_t gsi_standby_deadline(const struct gsi_address *address);

/* gsi_route.c; caller holds lock. */
/* More is known now: what was kept until it is known which process it is for is looked at again. */
void gsi_take_kept(struct gsi *gsi, uint64_t now);
/*
 * Hand a MAD on.  True when it is for this process, with *reason set; else it has been sent to
 * another one, or is lost.
 */
bool gsi_address_route(struct gsi_address *address, const struct gsi_mad *mad,
		       enum gsi_for *reason);

/* gsi_port.c; caller holds lock.  The services of a port that listens: 1 or 2. */
unsigned int gsi_port_services(const struct gsi_port *port, struct link_service service[2]);
/* May what is for the service come to the address? */
bool gsi_port_concerns(const struct link_service *service, const struct gsi_address *address);
/* Of gsi.ports.  A process's own numbers are LINK_SLOTS apart: their lowest bits are the same. */
unsigned int gsi_port_bucket(uint16_t port);
/* In a forked child. */
void gsi_ports_abandon(struct gsi *gsi);
/* Does a process of this host own the port of a service at the address, or at any? */
bool gsi_port_is_owned(uint64_t service_id, const uint8_t gid[16], uint32_t scope_id);

#endif
