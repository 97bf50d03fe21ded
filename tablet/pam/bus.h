// SPDX-License-Identifier: Apache-2.0

/* bus is a client of the system bus (D-Bus specification 0.42) for a program that must not wait: it sends everything at
 * once, the authentication included, and reads what has come. libsystemd would do the same, and would bring libraries
 * for compression and cryptography into each program that asks PAM. It has no timeouts of its own. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bus {
	int fd;           /* -1 without a connection; for poll(2) */
	uint32_t serial;  /* of the last call */
	bool accepted;    /* the bus has accepted the authentication */
	uint64_t skip;    /* bytes to drop: of the message that was returned, or of one that is too long */
	size_t have;      /* bytes in the buffer */
	unsigned char buffer[8192];
};

/* Types of messages, and fields of their headers. */
enum { NO_MESSAGE, RETURN = 2, FAILURE, SIGNAL };
enum { PATH = 1, INTERFACE, MEMBER, ERROR, REPLY_SERIAL, DESTINATION, SENDER, SIGNATURE };

/* message is valid until the next call of bus_read. */
struct message {
	int type;
	const char *text[SIGNATURE + 1]; /* by field; "" if it has none */
	uint32_t reply;                  /* serial of the call that it answers */
	const unsigned char *body;
	size_t size;
	bool big;                        /* big-endian */
};

/* Connects, and sends the greeting. Returns a negative errno on failure. */
int bus_open(struct bus *b);

void bus_close(struct bus *b);

/* Sends a call. The types of the arguments are s (const char *), and u and b (uint32_t). Returns a negative errno on
 * failure, also if the bus does not read; else b->serial is the call's. */
int bus_call(struct bus *b, const char *destination, const char *path, const char *interface, const char *member,
	const char *types, ...);

/* Reads once. Returns 1 if something came, 0 if there is nothing now, or a negative errno. If it was no whole message,
 * or one that cannot be understood, the type is NO_MESSAGE. */
int bus_read(struct bus *b, struct message *m);

/* Stores the arguments of a message, as const char * and uint32_t. Returns false if they have other types. */
bool message_read(const struct message *m, const char *types, ...);
