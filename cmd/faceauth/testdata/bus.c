// SPDX-License-Identifier: Apache-2.0

/* Has the client of the PAM module read streams of a bus from the standard input, and prints how many messages it
 * understood. A stream is pieces, each after its length; one without length ends it. A sanitizer notices when the client
 * reads what has not come. Built with -Drecv=feed. */

#include <sanitizer/asan_interface.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "../../../tablet/pam/bus.h"

static unsigned char piece[1 << 20];
static uint32_t length, at;

ssize_t feed(int fd, void *to, size_t room, int flags);

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

int main(void)
{
	struct bus *b = malloc(sizeof *b);
	size_t understood = 0, read = 0, letters = 0;
	struct message m;
	while (b != NULL && next() > 0) {
		const char *a, *c, *e;
		uint32_t x;
		ASAN_UNPOISON_MEMORY_REGION(b, sizeof *b);
		memset(b, 0, sizeof *b);
		ASAN_POISON_MEMORY_REGION(b->buffer, sizeof b->buffer);
		while (bus_read(b, &m) >= 0) {
			if (m.type == NO_MESSAGE)
				continue;
			understood++;
			for (size_t i = 0; i <= SIGNATURE; i++)
				letters += strlen(m.text[i]);
			if (message_read(&m, "sb", &a, &x) || message_read(&m, "s", &a)) {
				read++;
				letters += strlen(a);
			} else if (message_read(&m, "sss", &a, &c, &e)) {
				read++;
				letters += strlen(a) + strlen(c) + strlen(e);
			}
		}
		while (length > 0) /* the client has given up */
			next();
	}
	free(b);
	printf("%zu %zu %zu\n", understood, read, letters);
	return 0;
}
