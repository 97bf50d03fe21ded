// SPDX-License-Identifier: Apache-2.0

/* The client of the PAM module, for tests. Built with -Drecv=feed -Dsend=keep.
 *
 * Without arguments it reads streams of a bus from the standard input. A stream is pieces, each after its length; one
 * without length ends it. It prints a line for each message that the client understood: type, serial, fields and
 * arguments, divided by bars. After each stream it prints why the client gave up. A sanitizer notices when the client
 * reads what has not come.
 *
 *   open                        connects; the answer is the errno, or 255 if a program could write on the socket
 *   call ROOM TYPES S U S S S   prints a call with as many arguments as there are types; the answer is the errno */

#include <errno.h>
#include <sanitizer/asan_interface.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "../../../tablet/pam/bus.h"

static struct bus *b;
static unsigned char piece[1 << 20];
static uint32_t length, at;
static size_t most; /* bytes that the bus takes at once */

ssize_t feed(int fd, void *to, size_t room, int flags);
ssize_t keep(int fd, const void *data, size_t n, int flags);

/* Reads the next piece, and returns its length. */
static uint32_t next(void)
{
	at = 0;
	if (fread(&length, sizeof length, 1, stdin) != 1 || length > sizeof piece ||
	    fread(piece, 1, length, stdin) != length)
		length = 0;
	return length;
}

ssize_t feed(int fd, void *to, size_t room, int flags)
{
	size_t n = 1 + (size_t)rand() % 3000;
	(void)fd, (void)flags;
	if (room > (size_t)(b->buffer + sizeof b->buffer - (unsigned char *)to))
		abort(); /* more room than there is */
	if (rand() % 8 == 0) {
		errno = rand() % 2 == 0 ? EAGAIN : EINTR;
		return -1;
	}
	if (at == length && next() == 0)
		return 0;
	if (n > room)
		n = room;
	if (n > length - at)
		n = length - at;
	ASAN_UNPOISON_MEMORY_REGION(to, room);
	memcpy(to, piece + at, n);
	ASAN_POISON_MEMORY_REGION((unsigned char *)to + n, room - n);
	at += (uint32_t)n;
	return (ssize_t)n;
}

ssize_t keep(int fd, const void *data, size_t n, int flags)
{
	(void)fd, (void)flags;
	errno = EAGAIN;
	return most == 0 ? -1 : (ssize_t)fwrite(data, 1, n < most ? n : most, stdout);
}

int main(int argc, char **argv)
{
	struct message m;
	int r = 0;
	b = calloc(1, sizeof *b);
	if (argc == 2) {
		most = sizeof piece;
		r = bus_open(b);
		r = r < 0 && b->fd >= 0 ? 254 : r < 0 ? -r : b->fd < 3 ? 255 : 0;
		bus_close(b);
	} else if (argc == 9) {
		most = strtoul(argv[2], NULL, 10);
		r = -bus_call(b, "a.b", "/p", "c.d", "M", argv[3], argv[4], (uint32_t)strtoul(argv[5], NULL, 10), argv[6],
			argv[7], argv[8]);
	}
	while (argc == 1 && next() > 0) {
		const char *a, *c, *e;
		uint32_t x;
		ASAN_UNPOISON_MEMORY_REGION(b, sizeof *b);
		memset(b, 0, sizeof *b);
		ASAN_POISON_MEMORY_REGION(b->buffer, sizeof b->buffer);
		while ((r = bus_read(b, &m)) >= 0) {
			if (m.type == NO_MESSAGE)
				continue;
			printf("%d|%u", m.type, m.reply);
			for (size_t i = 0; i <= SIGNATURE; i++)
				printf("|%s", m.text[i]);
			if (message_read(&m, "s", &a))
				printf("|%s", a);
			if (message_read(&m, "sb", &a, &x))
				printf("|%s|%u", a, x);
			if (message_read(&m, "sss", &a, &c, &e))
				printf("|%s|%s|%s", a, c, e);
			putchar('\n');
		}
		printf("%s\n", strerror(-r));
		while (length > 0) /* the client has given up */
			next();
		r = 0;
	}
	free(b);
	return r;
}
