/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNIB_ENGINE_REDIS_INTERNAL_H
#define SNIB_ENGINE_REDIS_INTERNAL_H

/*
 * What the files of the Redis engine share. redis.c is the interface and the order of things;
 * link.c one connection; op.c requests about objects and their answers, by the table rows of lock.c
 * (what one or many hold) and count.c (what is counted, and registers); renew.c renewals that go
 * together; names.c keys and channels; watch.c subscriptions, granted.c what is told to this client
 * alone; who.c who stands behind a client uuid; listing.c the list of all that is held; config.c
 * the URL; refusal.c error replies. All of it runs on the one thread that calls the engine.
 */

#include "base/list.h"
#include "base/prng.h"
#include "base/tree.h"
#include "engine/net/link.h"
#include "engine/outbox.h"
#include "engine/redis/redis.h"
#include "engine/redis/resp.h"
#include "engine/redis/script.h"

/* Holds that one script renews: it keeps the server for a fifth of a millisecond. */
#define SNIB__REDIS_RENEWALS_MAX 100
/* Room for the name of a key or channel beside an object: prefix, braces, the name, an id,
 * suffix. */
#define SNIB__DERIVED_MAX 1280

struct redis;
struct batch;

/* The keys and channels of an object; see names.c. */
enum redis_name {
        NAME_TAG = 1, /* the name in its braces, to begin computed names with */
        NAME_TOKEN,
        NAME_QUEUE,      /* fair: who waits, in order */
        NAME_TURNS,      /* fair: until when each may take its turn */
        NAME_WAITING,    /* fair: our own waiters, and until when they are believed to live */
        NAME_WAIT_QUEUE, /* plain, fenced: our own waiters, in order */
        NAME_PERMITS,
        NAME_REQUEST, /* memory of a request, with its id behind */
        NAME_HOLD,    /* what a reader's hold begins with, its id behind */
        NAME_LOCK_CHANNEL,
        NAME_RW_CHANNEL,
        NAME_SEMAPHORE_CHANNEL,
        NAME_LATCH_CHANNEL,
        NAME_REGISTER_CHANNEL,
        NAME_LISTENING, /* which of the lock channel's subscribers are ours */
        NAME_GRANTED,   /* of this client, whatever the object */
        NAMES
};

/* What a script is given, in this order: keys first. Values below NAMES are enum redis_name. */
enum put {
        PUT_END = 0,
        PUT_NAME = NAMES, /* the object's own key */
        PUT_VERB,         /* enum snib__verb, as a number */
        PUT_ID,
        PUT_LEASE,
        PUT_TOKEN,
        PUT_LAST_TOKEN, /* of the tokens that a hold has; with PUT_TOKENS, how many */
        PUT_TOKENS,
        PUT_ENQUEUE,      /* 1 or 0 */
        PUT_QUESTION,     /* of a waiter's, its number. Above 0: it is to stand in the queue, with "+" if not settled */
        PUT_WAITER_LEASE, /* how long a waiter that says nothing is believed to live */
        PUT_HOLD_KEY,     /* "{name}:id:rwlock_timeout:1": of a reader's hold */
        PUT_STREAK, /* of a hold that is handed on, plus 1; 0: an earlier request of this id may be executed late */
        PUT_UNDER,
        PUT_N,
        PUT_TTL,
        PUT_EXPECTED,
        PUT_IF_EXISTS, /* 1 or 0 */
        PUT_DATA,
        PUT_KIND,        /* enum snib_kind */
        PUT_REQUEST_KEY, /* "snib_request:{name}:id": the server's memory of this request, of PUT_DONE_MS */
        PUT_DONE_MS,
        PUT_REPEATED /* 1: an older copy of this request may arrive yet; or 0 */
};

struct request;
struct snib__resp_value;

/* How a request of one kind and verb is sent, and what its answer means. */
#define SNIB__REDIS_PUTS_MAX 12
struct row {
        enum snib__redis_script_id script;
        unsigned char keys; /* so many of `puts` are keys */
        unsigned char puts[SNIB__REDIS_PUTS_MAX];
        /* An answer that is an array of at least one integer, v[1]. Completes the request, or
         * answers false: nonsense. NULL: there is no such request. */
        bool (*decode)(struct redis *r, struct request *q, const struct snib__resp_value *v, size_t count,
                       snib__ns now);
};

enum request_kind {
        REQUEST_HANDSHAKE = 1, /* AUTH, SELECT, PING: all must succeed; HELLO, INFO: what they say of the server */
        REQUEST_PING,
        REQUEST_OP,       /* a script about an object */
        REQUEST_RENEWALS, /* renew_many.lua for many holds; see renew.c */
        REQUEST_OP_WHO,   /* the same request, whose answer waits for the holder's host and label */
        REQUEST_WAITERS,  /* PUBSUB NUMSUB for the QUERY behind it (`parent`) */
        REQUEST_FORGET,   /* UNLINK of the memory of a request that will not be repeated */
        REQUEST_WHO_SET,
        REQUEST_WHO_GET,   /* fills the cache */
        REQUEST_SUBSCRIBE, /* channel */
        REQUEST_UNSUBSCRIBE,
        REQUEST_SCAN,      /* listing */
        REQUEST_LIST_LOCK, /* listing, item */
        REQUEST_LIST_WHO   /* listing; id */
};

/* One command whose reply is awaited. Pooled; in exactly one of: in flight (by `flight`),
 * redis.free, redis.outbox (by letter.link). */
struct request {
        struct snib__letter letter;
        struct snib__flight flight;
        enum request_kind kind;
        struct snib__tag tag;
        struct request *parent;
        struct channel *channel;
        struct listing *listing;
        size_t item;
        const char *handshake; /* name of the command, for error texts */
        enum snib__redis_script_id script;
        bool by_text;       /* sent as EVAL */
        bool forget;        /* its memory at the server is to be taken back */
        struct snib__op op; /* what was asked; all that it points at is in `bytes`. PERMITS: `data` are the ids, 16
                               bytes each, in place of `permits` */
        const struct row *row;
        char *bytes; /* the name, NUL, then data: it may be sent again after NOSCRIPT; then data of the answer */
        size_t bytes_room;
        struct snib__reply reply;
        struct snib_error error;
};

/* One connection to the server. */
struct link {
        struct snib__link net;
        struct redis *redis;
        struct snib__resp *resp;     /* of this connection; NULL without one */
        bool by_text[SNIB__SCRIPTS]; /* this server may not know the script: send its text */
};

/* One subscription. Two names can share it: "{a}" as it is and "a" in braces. */
struct face {
        struct channel *channel;
        uint32_t watches;
        uint32_t elections; /* of them */
        bool all;           /* `changed` is for everybody */
        bool lingers;       /* its last watch is gone, its messages are still told; see watch.c */
        snib__ns since;     /* when that began to be so, of an effective channel */
        struct snib__letter changed, watching;
};
struct channel {
        struct snib__tree_node node;
        struct face face[2]; /* 0: the name is the tag; 1: the name is the tag without its braces */
        uint32_t in_flight;  /* SUBSCRIBE and UNSUBSCRIBE without an answer */
        bool effective;      /* confirmed, and not taken back */
        enum redis_name form;
        size_t tag_length;         /* behind the prefix */
        struct snib__id id;        /* of the one waiter that it is for; empty: for all */
        struct channel *listening; /* of a lock with a queue: the one that says that we are here. Shares its fate */
        struct snib__list idle;    /* in redis.idle: nobody watches it any more */
        snib__ns idle_until;
        const char *text;
        size_t length;
        char bytes[];
};

/* What is known about a client uuid, at the place that its first digits say. */
#define SNIB__WHO_CACHE 64
struct who_entry {
        char uuid[37]; /* empty: unused */
        bool known;
        bool foreign; /* known to have no record */
        struct snib__who who;
        snib__ns until; /* known: good until; else: asked, do not ask again before */
};

struct listing {
        struct snib__list link; /* in redis.listings, or .spent_listings */
        struct snib__tag tag;
        enum listing_phase {
                LISTING_NEXT = 0,
                LISTING_SCAN,
                LISTING_LOCKS,
                LISTING_WHO,
                LISTING_TOLD,
                LISTING_END
        } phase;
        unsigned outstanding;
        bool permits; /* the second scan: after hashes, sets of permits */
        bool scanned; /* the cursor came back to 0 */
        char cursor[24];
        char *page; /* keys of the last SCAN: 4 bytes of length, bytes, ... */
        size_t page_length, page_room, page_at;
        struct item *items; /* SNIB__LISTING_BATCH */
        size_t count;
        struct request *end; /* answers the listing */
};

#define SNIB__LISTING_BATCH 100
struct item {
        struct snib__letter letter;
        struct listing *listing;
        size_t name; /* in the page */
        size_t name_length;
        bool told;
        struct snib__reply reply;
};

struct redis_config {
        struct snib__address address;
        char host[SNIB__URL_PART_MAX];
        char unix_path[SNIB__URL_PATH_MAX];
        char user[SNIB__URL_PART_MAX];
        char password[SNIB__URL_PART_MAX];
        char password_file[SNIB__URL_PART_MAX];
        bool has_password;
        int db;
        snib__ns timeout;
        snib__ns connect_timeout;
};

struct redis {
        struct snib__engine base;
        struct redis_config config;
        const struct snib__transport *transport;
        void *transport_arg;
        struct snib__prng prng;
        void (*trace)(void *arg, const char *line);
        void *trace_arg;
        char uuid[37];
        struct snib__who who;
        struct link commands, subscriptions;
        char version[16];                    /* of the server, as it says; empty: it does not */
        char scratch[2 * SNIB__DERIVED_MAX]; /* of the request that is being written */
        struct snib__tree channels;
        uint32_t watched;       /* faces with at least one watch */
        bool sweep;             /* a channel may be free */
        struct snib__list idle; /* channels, the longest first */
        int idle_count;
        struct channel *granted; /* what is told to this client alone; NULL until it waits for the first time */
        struct snib__outbox outbox;
        struct snib__list free;
        int grants;             /* not yet given back */
        struct batch *renewals; /* gathered: they leave together before anything else. NULL: none */
        snib__ns renewals_at;   /* when the latest of them was submitted */
        struct snib__list free_batches;
        struct snib__list listings, spent_listings;
        struct snib__letter up, down;
        struct snib_error down_error;
        struct who_entry who_cache[SNIB__WHO_CACHE];
        snib__ns who_look_up; /* no other look-up before this */
        bool who_used;        /* this client has held or waited: others may want to know who it is */
        snib__ns who_due;     /* when to write its record again */
        int64_t who_left_ms;  /* the longest lease of what it left: its record stays so long */
};

/* redis.c */
struct request *snib__redis_request(struct redis *r, enum request_kind kind, snib__ns now);
void snib__redis_request_free(struct redis *r, struct request *q);
/* Gives unusually much memory back before it is used again. */
void snib__redis_request_trim(struct request *q);
/* A request about an object, not sent yet; NULL: memory is short. */
struct request *snib__redis_op(struct redis *r, struct snib__tag tag, const struct snib__op *op, snib__ns now);
/* Completes an op or a listing: its reply is set. */
void snib__redis_complete(struct redis *r, struct request *q);
__attribute__((format(printf, 4, 5))) void snib__redis_fail(struct redis *r, struct request *q, int code,
                                                            const char *format, ...);
__attribute__((format(printf, 2, 3))) void snib__redis_trace(struct redis *r, const char *format, ...);
/* A reply, to whom it belongs. False: it makes no sense there; *ret_why says so. */
bool snib__redis_reply(struct redis *r, struct request *q, const struct snib__resp_value *values, size_t count,
                       snib__ns now, const char **ret_why);
/* A request that has lost its connection. `sent`: bytes of it may have left. */
void snib__redis_orphan(struct redis *r, struct request *q, bool sent, const char *why);
void snib__redis_link_up(struct link *l, snib__ns now);
void snib__redis_link_down(struct link *l, const struct snib_error *why);

/* config.c */
int snib__redis_configure(struct redis_config *ret, struct snib__url *url, int64_t timeout_ms, struct snib_error *err);
int snib__redis_password(struct redis_config *config, struct snib_error *err);

/* link.c */
void snib__redis_link_init(struct link *l, struct redis *r, enum snib__redis_role role, snib__ns now);
void snib__redis_link_done(struct link *l);
/* A command is written at the end of what is to be sent: begin, each of the `argc` arguments, which
 * have at most `texts` bytes together, end. What was not ended was not written. */
struct writing {
        char *at;
        int left; /* arguments */
};
/* False: the connection is not up, the buffer is full, or there is no memory. */
bool snib__command_begin(struct link *l, struct writing *ret, int argc, size_t texts);
void snib__command_put(struct writing *w, const char *text, size_t length);
void snib__command_put_number(struct writing *w, int64_t number);
/* Where the caller writes an argument of so many bytes. */
char *snib__command_place(struct writing *w, size_t length);
/* Puts the request in flight. */
void snib__command_end(struct link *l, const struct writing *w, struct request *q, snib__ns now);
/* All of it. False as above; the request stays the caller's. */
bool snib__command_send(struct link *l, struct request *q, int argc, const char **argv, const size_t *length,
                        snib__ns now);

/* op.c */
bool snib__op_send(struct redis *r, struct request *q, snib__ns now);
bool snib__op_reply(struct redis *r, struct request *q, const struct snib__resp_value *values, size_t count,
                    snib__ns now, const char **ret_why);
/* Fails the request for an error reply, or sends it again after NOSCRIPT. */
void snib__op_refused(struct redis *r, struct request *q, const char *text, snib__ns now);
/* A later request about the same name has left already: executing this one after it would turn
 * their order round. */
bool snib__op_overtaken(const struct redis *r, struct snib__name name);
extern const char snib__redis_no_room[], snib__redis_forgotten[], snib__redis_unknown_script[]; /* error texts */
bool snib__op_waiters_reply(struct redis *r, struct request *q, const struct snib__resp_value *values, size_t count);
/* Takes over what was asked, with copies of what it points at. False: no memory. */
bool snib__op_keep(struct request *q, const struct snib__op *op);
const struct row *snib__op_row(const struct snib__op *op);
/* Copies data of the answer to where it lives until the request is recycled, in place of that of
 * the request. False: no memory. */
bool snib__op_keep_answer(struct request *q, const void *data, size_t length);

/* renew.c */
/* Takes a renewal, which is to be sent with others. */
bool snib__renewals_add(struct redis *r, struct snib__tag tag, const struct snib__op *op, snib__ns now);
/* Sends what was gathered. */
void snib__renewals_send(struct redis *r, snib__ns now);
bool snib__renewals_reply(struct redis *r, struct request *q, const struct snib__resp_value *values, size_t count,
                          snib__ns now);
void snib__renewals_orphan(struct redis *r, struct request *q, bool sent, const char *why);
/* Whom the reply is for next, into a note that has it. False: it was the last. */
bool snib__renewals_next(struct request *q, struct snib__note *ret);
bool snib__renewals_include(const struct request *q, struct snib__name name);
void snib__renewals_free(struct redis *r, struct request *q);

/* lock.c */
/* The row of a kind and a verb that there are, NULL if it is another's or none's. */
const struct row *snib__lock_row(int kind, enum snib__verb verb);
extern const struct row snib__any_row; /* QUERY of kind ANY */
/* Reads what query.lua answered into *ret. False: nonsense. ret->status FAILED: what is there is
 * none of ours. */
bool snib__lock_decode_any(struct redis *r, const struct snib__resp_value *values, size_t count,
                           struct snib__reply *ret);

/* The other answer of query.lua: a key that is none of ours. False: nonsense. */
bool snib__lock_foreign_key(const struct snib__resp_value *values, size_t count);

/* count.c: the rows of SEMAPHORE, PERMITS, LATCH and REGISTER */
const struct row *snib__count_row(int kind, enum snib__verb verb);
extern const struct row snib__release_ids_row; /* RELEASE of PERMITS by their ids */
/* How many bytes the ids of the permits take that `op` is about; 0: about none. */
size_t snib__count_ids_length(const struct snib__op *op);
/* Takes back the server's memory of a request that was answered, and whose answer was acted
 * upon. */
void snib__count_forget(struct redis *r, struct request *q, snib__ns now);
/* Writes them. False: they are not ids. */
bool snib__count_ids(const struct snib__op *op, char *ret);

/* decode.c: what answers are made of */
const char *snib__decode_text(const struct redis *r, const struct snib__resp_value *v);
/* A number as Redis writes it, decimal, above 0. */
bool snib__decode_token(const struct redis *r, const struct snib__resp_value *v, int64_t *ret);
/* Any number as Redis writes it, also below 0. */
bool snib__decode_number(const struct redis *r, const struct snib__resp_value *v, int64_t *ret);
/* Time left as PTTL says it, and whoever wrote the field, into held, left_ms, holder. False:
 * nonsense. */
void snib__decode_id(const struct redis *r, const struct snib__resp_value *v, struct snib__id *ret);
bool snib__decode_holder(struct redis *r, const struct snib__resp_value *left, const struct snib__resp_value *id,
                         struct snib__reply *ret);
/* Fails the request because the name is `found` on the server ("a read-write lock"), not what was
 * asked for. */
void snib__decode_wrong_kind(struct redis *r, struct request *q, const char *found);
/* Completes a request whose reply names a holder: with what the cache knows of it, after asking if
 * `ask`. */
void snib__decode_complete(struct redis *r, struct request *q, bool ask, snib__ns now);

/* names.c */
/* Writes a name of at most SNIB__DERIVED_MAX bytes; the object's has at most SNIB_NAME_MAX. */
size_t snib__name_write(enum redis_name which, struct snib__name name, char *ret);
/* The same for "<which>:<id>". */
size_t snib__name_write_id(enum redis_name which, struct snib__name name, const struct snib__id *id, char *ret);
/* How long it is, and just that much of it, for who knows already whether the object's tag is
 * `braced`. */
size_t snib__name_length(enum redis_name which, struct snib__name name, bool braced);
void snib__name_put(enum redis_name which, struct snib__name name, bool braced, char *ret);
/* Whether its tag is the name with braces around it. */
bool snib__name_braced(enum redis_name which, struct snib__name name);
size_t snib__name_prefix(enum redis_name which); /* length */
enum redis_name snib__name_channel(int kind);

/* watch.c */
int snib__watch_compare(const struct snib__tree_node *a, const struct snib__tree_node *b);
bool snib__watch_reply(struct redis *r, struct request *q, const struct snib__resp_value *values, size_t count,
                       snib__ns now);
bool snib__watch_message(struct redis *r, const struct snib__resp_value *values, size_t count);
void snib__watch_add(struct redis *r, const struct snib__topic *topic, snib__ns now);
void snib__watch_remove(struct redis *r, const struct snib__topic *topic, snib__ns now);
void snib__watch_subscribe_all(struct redis *r, snib__ns now);
void snib__watch_disconnected(struct redis *r);
void snib__watch_sweep(struct redis *r);
void snib__watch_done(struct redis *r);
/* Lets subscriptions go that nobody has come back for; the first is due at snib__watch_due(). */
void snib__watch_expire(struct redis *r, snib__ns now);
snib__ns snib__watch_due(const struct redis *r);
/* A grant would be heard. */
bool snib__watch_hears_grants(const struct redis *r);

/* granted.c */
/* What hand_over.lua told this client; nonsense is dropped. */
void snib__granted_message(struct redis *r, const char *text, size_t length);
/* Of one that nobody took. */
void snib__granted_free(struct snib__letter *l);
extern const struct snib__letter_kind snib__granted_letter;

/* who.c */
void snib__who_used(struct redis *r, snib__ns now);
/* Something stays behind for so long when the client is closed. */
void snib__who_left(struct redis *r, int64_t lease_ms);
void snib__who_refresh(struct redis *r, snib__ns now);
void snib__who_remove(struct redis *r, snib__ns now);
/* Who the holder is whose id stands there, and whether it is foreign, as far as is known. False: it
 * is to be asked. */
bool snib__who_find(struct redis *r, struct snib__reply *ret, snib__ns now);
/* Known to be no client of ours. */
bool snib__who_foreign(struct redis *r, const struct snib__id *id);
/* Asks for it, once in a while, without anybody waiting for the answer. */
void snib__who_look_up(struct redis *r, const struct snib__id *id, snib__ns now);
/* Sends a GET of the record with `q`, of any kind. */
bool snib__who_send_get(struct redis *r, struct request *q, const struct snib__id *id, snib__ns now);
/* Takes the answer to such a GET. False: nonsense. */
bool snib__who_reply(struct redis *r, const struct snib__id *id, const struct snib__resp_value *values, size_t count,
                     snib__ns now, struct snib__who *ret);

/* listing.c */
bool snib__listing_start(struct redis *r, struct snib__tag tag, snib__ns now);
void snib__listing_advance(struct redis *r, struct listing *l, snib__ns now);
bool snib__listing_reply(struct redis *r, struct request *q, const struct snib__resp_value *values, size_t count,
                         snib__ns now);
void snib__listing_orphan(struct redis *r, struct request *q, const char *why);
void snib__listing_free(struct redis *r, struct listing *l);

/* refusal.c */
struct refusal {
        const char *prefix;
        int code;
        bool close; /* the connection is of no further use */
        const char *advice;
};
/* The row for an error reply. Never NULL. */
const struct refusal *snib__refusal_find(const char *text);
/* Without what servers before 7 put in front of what a script was answered. */
const char *snib__refusal_text(const char *text);
/* Of a missing right (SNIB_EPERM): the command that may not be run, in lower case, as the server or
 * the script says it, or as it stands in the line of the script that the server names. False: it is
 * not said, or it is a key. */
bool snib__refusal_command(const char *text, const char *script, char *ret, size_t size);

#endif
