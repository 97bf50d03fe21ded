// SPDX-License-Identifier: Apache-2.0

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "bus.h"

#define SYSTEM_BUS "/run/dbus/system_bus_socket"
#define PREFIX "unix:path="
#define DBUS "org.freedesktop.DBus"
#define GREETING "\0AUTH EXTERNAL\r\nDATA\r\nBEGIN\r\n" /* the bus knows who is calling */
#define HEAD 16 /* bytes before the fields: order, type, flags, version, length of the body, serial, length of the fields */

static int transmit(struct bus *b, const void *data, size_t n)
{
	ssize_t sent = send(b->fd, data, n, MSG_NOSIGNAL | MSG_DONTWAIT);
	return sent < 0 ? -errno : (size_t)sent < n ? -EAGAIN : 0;
}

int bus_open(struct bus *b)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	const char *address = secure_getenv("DBUS_SYSTEM_BUS_ADDRESS"), *path = SYSTEM_BUS;
	size_t n = strlen(path);
	int fd, r;
	*b = (struct bus){.fd = -1};
	if (address != NULL && strncmp(address, PREFIX, strlen(PREFIX)) == 0) {
		path = address + strlen(PREFIX);
		n = strcspn(path, ",;");
	}
	if (n >= sizeof at.sun_path)
		return -ENAMETOOLONG;
	memcpy(at.sun_path, path, n);
	if ((fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) < 0)
		return -errno;
	b->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3); /* never where a program writes what it says */
	close(fd);
	if (b->fd < 0)
		return -errno;
	if (connect(b->fd, (const struct sockaddr *)&at, sizeof at) < 0)
		r = -errno;
	else if ((r = transmit(b, GREETING, sizeof GREETING - 1)) >= 0)
		r = bus_call(b, DBUS, "/org/freedesktop/DBus", DBUS, "Hello", "");
	if (r < 0)
		bus_close(b);
	return r;
}

void bus_close(struct bus *b)
{
	if (b->fd >= 0)
		close(b->fd);
	b->fd = -1;
}

/* out is a message that is written. */
struct out {
	unsigned char data[2048];
	size_t size;
	bool over; /* there was no room */
};

static void put(struct out *o, const void *data, size_t n)
{
	if ((o->over = o->over || n > sizeof o->data - o->size))
		return;
	memcpy(o->data + o->size, data, n);
	o->size += n;
}

static void put_padding(struct out *o, size_t to)
{
	put(o, "\0\0\0\0\0\0\0", (to - o->size % to) % to);
}

static void put_word(struct out *o, uint32_t x)
{
	const unsigned char bytes[] = {
		(unsigned char)x, (unsigned char)(x >> 8), (unsigned char)(x >> 16), (unsigned char)(x >> 24)};
	put_padding(o, 4);
	put(o, bytes, sizeof bytes);
}

static void put_text(struct out *o, const char *text)
{
	put_word(o, (uint32_t)strlen(text));
	put(o, text, strlen(text) + 1);
}

static void put_field(struct out *o, unsigned char field, char type, const char *text)
{
	const unsigned char head[] = {field, 1, (unsigned char)type, 0}, length = (unsigned char)strlen(text);
	put_padding(o, 8);
	put(o, head, sizeof head);
	if (type == 'g') {
		put(o, &length, 1);
		put(o, text, (size_t)length + 1);
	} else {
		put_text(o, text);
	}
}

int bus_call(struct bus *b, const char *destination, const char *path, const char *interface, const char *member,
	const char *types, ...)
{
	struct out o = {.size = 0}, length = {.size = 0};
	size_t fields, body;
	va_list all;
	put(&o, "l\1\0\1", 4); /* little-endian, a call, no flags, version 1 */
	put_word(&o, 0);
	put_word(&o, ++b->serial);
	put_word(&o, 0);
	put_field(&o, PATH, 'o', path);
	put_field(&o, DESTINATION, 's', destination);
	put_field(&o, INTERFACE, 's', interface);
	put_field(&o, MEMBER, 's', member);
	if (*types != '\0')
		put_field(&o, SIGNATURE, 'g', types);
	fields = o.size - HEAD;
	put_padding(&o, 8);
	body = o.size;
	va_start(all, types);
	for (const char *type = types; *type != '\0'; type++)
		if (*type == 's')
			put_text(&o, va_arg(all, const char *));
		else
			put_word(&o, va_arg(all, uint32_t));
	va_end(all);
	if (o.over)
		return -E2BIG;
	put_word(&length, (uint32_t)(o.size - body));
	put_word(&length, (uint32_t)fields);
	memcpy(o.data + 4, length.data, 4);
	memcpy(o.data + 12, length.data + 4, 4);
	return transmit(b, o.data, o.size);
}

/* in is a part of a message that is read. Behind its end everything is 0 or "", and bad is set. */
struct in {
	const unsigned char *data;
	size_t size, at;
	bool big, bad;
};

static const unsigned char *take(struct in *i, size_t n, size_t aligned)
{
	static const unsigned char none[4];
	const unsigned char *p;
	size_t at = (i->at + aligned - 1) / aligned * aligned;
	if (i->bad || n > i->size || at > i->size - n) {
		i->bad = true;
		return none;
	}
	p = i->data + at;
	i->at = at + n;
	return p;
}

static uint32_t word(struct in *i)
{
	const unsigned char *p = take(i, 4, 4);
	return i->big ? (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3]
		: (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

/* A text of n bytes, which ends with a zero byte. */
static const char *text(struct in *i, size_t n)
{
	const char *p = n < i->size ? (const char *)take(i, n + 1, 1) : NULL;
	if (p != NULL && !i->bad && memchr(p, '\0', n + 1) == p + n)
		return p;
	i->bad = true;
	return "";
}

/* Reads the fields of a whole message. */
static bool understand(struct message *m, const unsigned char *data, size_t size)
{
	struct in i = {.data = data, .size = size, .at = 4, .big = data[0] == 'B'};
	uint32_t body = word(&i);
	word(&i); /* serial */
	i.size = HEAD + word(&i);
	*m = (struct message){.type = data[1], .body = data + (size - body), .size = body, .big = i.big};
	for (size_t field = 0; field <= SIGNATURE; field++)
		m->text[field] = "";
	while (i.at < i.size) {
		unsigned char field = *take(&i, 1, 8);
		const char *types = text(&i, *take(&i, 1, 1)), *value = "";
		if (strcmp(types, "g") == 0)
			value = text(&i, *take(&i, 1, 1));
		else if (strcmp(types, "s") == 0 || strcmp(types, "o") == 0)
			value = text(&i, word(&i));
		else if (strcmp(types, "u") != 0)
			return false;
		else if (field == REPLY_SERIAL)
			m->reply = word(&i);
		else
			word(&i);
		if (field <= SIGNATURE)
			m->text[field] = value;
	}
	return !i.bad;
}

bool message_read(const struct message *m, const char *types, ...)
{
	struct in i = {.data = m->body, .size = m->size, .big = m->big};
	va_list all;
	if (strcmp(m->text[SIGNATURE], types) != 0)
		return false;
	va_start(all, types);
	for (; *types != '\0'; types++)
		if (*types == 's')
			*va_arg(all, const char **) = text(&i, word(&i));
		else
			*va_arg(all, uint32_t *) = word(&i);
	va_end(all);
	return !i.bad;
}

/* The length of the message at the beginning of the buffer, or 0 if its head is unusable. */
static uint64_t length(const struct bus *b)
{
	struct in i = {.data = b->buffer, .size = HEAD, .at = 4, .big = b->buffer[0] == 'B'};
	uint64_t body = word(&i);
	word(&i); /* serial */
	return (b->buffer[0] != 'l' && b->buffer[0] != 'B') || b->buffer[3] != 1 ? 0
		: HEAD + ((uint64_t)word(&i) + 7) / 8 * 8 + body;
}

int bus_read(struct bus *b, struct message *m)
{
	uint64_t n;
	m->type = NO_MESSAGE;
	n = b->skip < b->have ? b->skip : b->have;
	memmove(b->buffer, b->buffer + n, b->have - n);
	b->have -= n;
	b->skip -= n;
	if (!b->accepted) { /* lines: DATA, and then OK and the name of the bus */
		const unsigned char *end = memchr(b->buffer, '\n', b->have);
		if (end != NULL) {
			b->skip = (uint64_t)(end - b->buffer) + 1;
			b->accepted = b->have > 2 && memcmp(b->buffer, "OK ", 3) == 0;
			return b->accepted || b->buffer[0] == 'D' ? 1 : -EACCES;
		}
	} else if (b->skip == 0 && b->have >= HEAD) {
		if ((n = length(b)) == 0)
			return -EBADMSG;
		if (n <= b->have || n > sizeof b->buffer) {
			b->skip = n;
			if (n <= b->have && !understand(m, b->buffer, (size_t)n))
				m->type = NO_MESSAGE;
			return 1;
		}
	}
	ssize_t got = recv(b->fd, b->buffer + b->have, sizeof b->buffer - b->have, MSG_DONTWAIT);
	if (got < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	b->have += (size_t)got;
	return got == 0 ? -ECONNRESET : 1;
}
