// SPDX-License-Identifier: Apache-2.0

/* pam_faceauth asks the faceauth daemon whether the person in front of the camera is the one who logs in.
 *
 *   auth [success=3 default=ignore] pam_faceauth.so             ask for the password while the camera looks
 *   auth [success=1 default=ignore] pam_unix.so try_first_pass
 *   auth requisite                  pam_deny.so
 *   auth optional                   pam_faceauth.so password placed    tell the daemon that the password was right
 *   auth required                   pam_permit.so
 *
 * Options:
 *   noprompt     do not ask for the password; for programs that run a service of their own beside the password's
 *   password     tell the daemon that the password was given, if it is right: it is checked against the user's entry
 *   placed       with password: only modules that check a password lead to this line, so it is not checked again; for
 *                users whose entry is elsewhere, as in LDAP
 *
 * The prompt comes first. Before it the module sends what has the camera look, to the daemon's socket, and waits for
 * nothing. What the daemon answers while the password is typed waits there (internal/socket says what). A password that was
 * typed goes on at once. After Enter nobody waits longer than SILENCE for a daemon or an eye that says nothing. On a
 * terminal the first key ends the look, and is the first of the password: from the word that it looks on, nothing that is
 * typed is shown or lost. ^C ends the look, too, and leads to the password's own prompt in programs that keep SIGINT from
 * themselves, as sudo does.
 *
 * Only services that stand in SERVICES ask, and only for somebody at the device (docs/login-settings.md). What cannot be
 * told is taken for somewhere else. What the person must do is printed whatever PAM_SILENT says, which sudo always sets:
 * nobody could turn the head without a word. Where nobody can be told, as by sudo-rs without a terminal, nothing looks.
 *
 * Without a daemon, a camera or a profile, from elsewhere, and whenever anything goes wrong, the module returns
 * PAM_IGNORE, as if it were not there.
 *
 * It is C, not Go, because login programs fork between pam_authenticate and pam_setcred, and a Go runtime does not
 * survive that: lab/NOTES.md has the experiment. It starts no thread and no process and sets no signal handler. */

#include <crypt.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pwd.h>
#include <shadow.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <syslog.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include <security/pam_ext.h>
#include <security/pam_modules.h>

#include "words.h"

#ifndef SYSCONFDIR
#define SYSCONFDIR "/etc"
#endif
#ifndef SERVICES
#define SERVICES SYSCONFDIR "/faceauth/services"
#endif
#ifndef SOCKET
#define SOCKET "/run/faceauth"
#endif
#define SESSIONS "/run/systemd/sessions/"
#define USERS "/run/systemd/users/"
#define NOTIFIERS "/run/faceauth-notify/"
#define SECOND UINT64_C(1000000)
#define AFTER 100             /* milliseconds for the daemon to note that the password was right */
#ifndef SILENCE
#define SILENCE (SECOND * 5 / 2) /* of the daemon, which may have to be started, after Enter */
#endif
#define LONGEST (65 * SECOND)    /* wait for a verdict; the daemon's own deadline is shorter */
#define UNKNOWN_ASKER 65534   /* nobody */
#define SHOWN 400             /* characters of a command: a longer one gets no face */
#define MARK 17               /* size of the mark of an account */
#define MATCHED "faceauth-matched"
#define ASK "ask\n"           /* wants the verdict: until then the daemon tells nothing, and nothing counts */

/* SDDM is of the kind ONCE: it never answers a second prompt, and then takes no further login. Its empty answer is given to
 * the modules after this, in place of a prompt of theirs. */
enum kind { UNLISTED, SESSION, GREETER, ONCE };
static const char *const kinds[] = {"", "session", "greeter", "greeter-once"};

struct attempt {
	pam_handle_t *pamh;
	const char *user;
	int language;
	uint32_t asker;    /* who wants to be the user */
	enum kind kind;    /* of the service */
	char command[SHOWN + 1], from[192]; /* the program that asks with its arguments, and where it runs */
	bool outside;      /* under the user's manager, in no session: nobody knows who started it, and from where */
	char challenge[8]; /* of the service, or empty */
	char mark[MARK];   /* of the account, or empty */
	int fd;            /* to the daemon, or -1 */
	int signals;       /* a signalfd of what ends the wait, or -1 */
	int terminal;      /* at which the person types, without an echo, or -1 */
	char why[32];      /* the word that ended it, or empty */
};

static uint64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_BOOTTIME, &t); /* goes on in a suspended device */
	return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec / 1000;
}

/* The language of the person, by the environment of PAM and then of the program. */
static int language(pam_handle_t *pamh)
{
	static const char *const names[] = {"LC_ALL", "LC_MESSAGES", "LANG"};
	for (int of_program = 0; of_program < 2; of_program++)
		for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
			const char *locale = of_program ? getenv(names[i]) : pam_getenv(pamh, names[i]);
			if (locale == NULL || *locale == '\0')
				continue;
			size_t n = strcspn(locale, "_.@");
			for (int l = 0; languages[l] != NULL; l++)
				if (strlen(languages[l]) == n && strncmp(languages[l], locale, n) == 0)
					return l;
			return 0;
		}
	return 0;
}

/* The sentence of the catalogue for a word, or NULL. */
static const char *sentence(const char *word, int language)
{
	for (size_t i = 0; i < sizeof catalogue / sizeof *catalogue; i++)
		if (strcmp(word, catalogue[i].word) == 0)
			return catalogue[i].in[language];
	return NULL;
}

/* An item of PAM that is a text, or an empty one. */
static const char *item(pam_handle_t *pamh, int which)
{
	const void *text = NULL;
	return pam_get_item(pamh, which, &text) == PAM_SUCCESS && text != NULL ? text : "";
}

/* Connects to the daemon and sends a line, without waiting: systemd listens, and starts the daemon. Root has a socket of
 * its own, which users cannot keep busy. Returns the connection, or a negative errno. */
static int hail(const char *line)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX, .sun_path = SOCKET};
	int r, fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (geteuid() == 0)
		strcat(to.sun_path, "-root");
	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)&to, sizeof to) < 0 || send(fd, line, strlen(line), MSG_NOSIGNAL) < 0) {
		r = -errno;
		close(fd);
		return r;
	}
	return fd;
}

static void hang_up(struct attempt *a)
{
	if (a->fd >= 0)
		close(a->fd);
	a->fd = -1;
}

/* Says a word of the catalogue, and what it is about, if that is not empty. Returns whether somebody could be told. */
static bool tell_of(const struct attempt *a, const char *word, const char *what)
{
	const char *say = sentence(word, a->language);
	return say == NULL || pam_info(a->pamh, "%s%s%s", say, *what != '\0' ? " " : "", what) == PAM_SUCCESS;
}

static bool tell(const struct attempt *a, const char *word)
{
	return tell_of(a, word, "");
}

static bool over(struct attempt *a, const char *why)
{
	snprintf(a->why, sizeof a->why, "%s", why);
	return true;
}

/* Handles a line of the daemon. Returns whether it is the last one, which says why. */
static bool hear(struct attempt *a, char *line)
{
	char *word, *next, *kind = strtok_r(line, " ", &next);
	if (kind == NULL || (word = strtok_r(NULL, " ", &next)) == NULL)
		return false; /* it is there */
	if (strcmp(word, "looking") == 0 && a->terminal >= 0)
		word = "looking-type";
	if (strcmp(kind, "say") == 0 && !tell_of(a, word, next))
		return over(a, "untold");
	if (strcmp(kind, "end") != 0 && (strcmp(kind, "no") != 0 || strcmp(word, "match") == 0))
		return false;
	return over(a, word);
}

/* Reads what else is typed, after the first key, and makes it the password. The line is edited as terminals do. Returns
 * whether there is one. */
static bool typed(const struct attempt *a, char key, const struct termios *keys)
{
	struct pollfd on[] = {{.fd = a->terminal, .events = POLLIN}, {.fd = a->signals, .events = POLLIN}};
	char line[PAM_MAX_RESP_SIZE];
	size_t n = 0;
	bool good = true;
	for (; good && key != '\n' && key != '\r' && (cc_t)key != keys->c_cc[VEOF]; good = read(a->terminal, &key, 1) == 1) {
		if ((cc_t)key == keys->c_cc[VERASE] || key == '\b' || key == 0x7f)
			while (n > 0 && (line[--n] & 0xc0) == 0x80) /* all bytes of a character in UTF-8 */
				;
		else if ((cc_t)key == keys->c_cc[VKILL])
			n = 0;
		else if (key != '\0' && n + 1 < sizeof line)
			line[n++] = key;
		while (poll(on, 2, -1) < 0 && errno == EINTR)
			;
		if (on[1].revents != 0) {
			good = false;
			break;
		}
	}
	line[n] = '\0';
	good = good && n > 0 && pam_set_item(a->pamh, PAM_AUTHTOK, line) == PAM_SUCCESS;
	explicit_bzero(line, sizeof line);
	if (good && write(a->terminal, "\n", 1) < 0)
		good = false;
	return good;
}

/* Handles what the daemon sends until its last line, which says why. It ends earlier if the daemon says nothing for
 * SILENCE, a signal comes, or a key is pressed other than a second Enter. */
static void verdict(struct attempt *a, const struct termios *keys)
{
	uint64_t t, begun = now(), heard = begun;
	struct pollfd on[] = {{.fd = a->fd, .events = POLLIN}, {.fd = a->signals, .events = POLLIN},
		{.fd = a->terminal, .events = POLLIN}};
	char line[1024], key;
	size_t n = 0;
	while (a->fd >= 0 && (t = now()) < heard + SILENCE && t < begun + LONGEST) {
		ssize_t r = recv(a->fd, line + n, 1, 0); /* little comes */
		if (r > 0)
			heard = t;
		if (r == 0 || (r < 0 && errno != EAGAIN && errno != EINTR)) {
			over(a, r == 0 || errno == ECONNRESET ? "gone" : "error");
			return;
		}
		if (r < 0 && poll(on, 3, (int)((heard + SILENCE - t) / 1000) + 1) < 0 && errno != EINTR)
			break;
		if (on[1].revents != 0) {
			over(a, "cancelled");
			return;
		}
		if (r < 0 && on[2].revents != 0) {
			if (read(a->terminal, &key, 1) != 1) {
				on[2].fd = -1;
			} else if (key != '\n' && key != '\r') {
				hang_up(a);
				over(a, typed(a, key, keys) ? "typed" : "cancelled");
				return;
			}
		}
		if (r < 0 || line[n++] != '\n') {
			if (n == sizeof line)
				break;
			continue;
		}
		line[n - 1] = '\0';
		n = 0;
		if (hear(a, line))
			return;
	}
	over(a, "error");
}

/* Has the daemon look for a user, and waits for nothing. Ask is ASK, or empty. The end of an earlier connection ends an
 * earlier look. */
static void begin(struct attempt *a, const char *ask)
{
	const char *service = item(a->pamh, PAM_SERVICE);
	char line[2048];
	hang_up(a);
	if (strpbrk(a->user, "\t\n") == NULL && strpbrk(service, "\t\n") == NULL &&
	    (size_t)snprintf(line, sizeof line, "verify\t%s\t%lu\t%s\t%s\t%s\t%s\t%s\n%s", a->user,
		(unsigned long)a->asker, service, a->challenge, a->mark, a->command, a->from, ask) < sizeof line)
		a->fd = hail(line);
}

/* How a service stands in the list, which root alone may write, and its challenge. */
static enum kind listed(pam_handle_t *pamh, const char *service, char challenge[8])
{
	enum kind k = UNLISTED;
	char line[256], kind[16], name[128];
	struct stat s;
	FILE *f = fopen(SERVICES, "re");
	if (f == NULL)
		return UNLISTED;
	if (fstat(fileno(f), &s) < 0 || !S_ISREG(s.st_mode) || s.st_uid != 0 || (s.st_mode & (S_IWGRP | S_IWOTH))) {
		pam_syslog(pamh, LOG_ERR, "%s is not a file that root alone can write; no service may ask for a face",
			SERVICES);
		fclose(f);
		return UNLISTED;
	}
	while (k == UNLISTED && fgets(line, sizeof line, f) != NULL)
		if (*challenge = '\0', sscanf(line, "%15s %127s %7s", kind, name, challenge) >= 2 && strcmp(name, service) == 0)
			for (k = ONCE; k > UNLISTED && strcmp(kind, kinds[k]) != 0; k--)
				;
	fclose(f);
	return k;
}

/* Adds what others have written to a text of n bytes with used characters, for a terminal: printable ASCII alone. Returns
 * the number of characters, also of those for which there is no room. */
static size_t add(char *to, size_t n, size_t used, const char *from, size_t length)
{
	for (size_t i = 0; i < length; i++, used++)
		if (used + 1 < n) {
			to[used] = from[i] >= ' ' && from[i] <= '~' ? from[i] : '?';
			to[used + 1] = '\0';
		}
	return used;
}

/* Where this program runs, by its control group. */
struct unit {
	char session[64]; /* its session, or empty */
	bool users;       /* below a user's slice */
	char name[128];   /* the innermost unit, which its user may have named */
	bool helper;      /* the service that asks for polkit, from version 127 on */
	bool console;     /* getty, or one like it */
};

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

static bool ends(const char *text, const char *with)
{
	size_t n = strlen(text), m = strlen(with);
	return n > m && strcmp(text + n - m, with) == 0;
}

/* Finds the first line of a file with a beginning. What comes behind that is then in rest. */
static bool find(const char *path, const char *beginning, char *rest, size_t n)
{
	char line[1024];
	bool found = false;
	FILE *f = fopen(path, "re");
	while (f != NULL && !found && fgets(line, sizeof line, f) != NULL)
		found = begins(line, beginning);
	if (f != NULL)
		fclose(f);
	snprintf(rest, n, "%s", found ? line + strlen(beginning) : "");
	return found;
}

static void unit_of_this(struct unit *u)
{
	char line[4096], *part, *next;
	bool first = true;
	*u = (struct unit){.users = false};
	find("/proc/self/cgroup", "0::/", line, sizeof line);
	/* Behind the slices is the unit. What is behind the unit, its user can name. */
	for (part = strtok_r(line, "/\n", &next); part != NULL; part = strtok_r(NULL, "/\n", &next)) {
		if (ends(part, ".slice")) {
			u->users = u->users || (first && begins(part, "user-"));
			continue;
		}
		if (ends(part, ".scope") || ends(part, ".service"))
			snprintf(u->name, sizeof u->name, "%s", part);
		if (!first)
			continue;
		first = false;
		u->console = strstr(part, "getty@") != NULL || begins(part, "autovt@");
		u->helper = !u->users && begins(part, "polkit-agent-helper@") && ends(part, ".service");
		if (u->users && begins(part, "session-") && ends(part, ".scope") && strlen(part) < sizeof u->session)
			snprintf(u->session, sizeof u->session, "%.*s", (int)strlen(part) - 14, part + 8);
	}
}

/* Whether the file in which logind keeps a session has a line with a beginning. */
static bool session_has(const char *session, const char *beginning)
{
	char path[sizeof SESSIONS + 64], rest[8];
	return strchr(session, '/') == NULL && strlen(session) < 64 &&
		snprintf(path, sizeof path, SESSIONS "%s", session) > 0 && find(path, beginning, rest, sizeof rest);
}

/* Whether a session is at the device, and the one that is used there now. A file of another form is one of a session
 * from elsewhere. */
static bool session_here(const char *session)
{
	return session_has(session, "REMOTE=0\n") && session_has(session, "ACTIVE=1\n") && session_has(session, "SEAT=seat");
}

/* Whether a session of a user is at the device, and used now. */
static bool user_here(uint32_t uid)
{
	char path[64], line[1024], *id, *next;
	bool here = false;
	snprintf(path, sizeof path, USERS "%lu", (unsigned long)uid);
	find(path, "ACTIVE_SESSIONS=", line, sizeof line);
	for (id = strtok_r(line, " \"\n", &next); id != NULL && !here; id = strtok_r(NULL, " \"\n", &next))
		here = session_here(id);
	return here;
}

/* Whether a program that has no session stands at a seat of the device, by what it tells PAM. SDDM tells nothing: of a
 * display manager the daemon knows whether its greeter is used at a seat. */
static bool seat_here(pam_handle_t *pamh, bool console)
{
	const char *tty = item(pamh, PAM_TTY), *display = item(pamh, PAM_XDISPLAY), *seat = pam_getenv(pamh, "XDG_SEAT");
	if (seat != NULL && *seat != '\0')
		return true;
	if (*display != '\0')
		return *display == ':'; /* one of another machine has its name before that */
	if (*tty == '\0')
		return !console;
	if (*tty == ':') /* a display */
		return true;
	if (begins(tty, "/dev/"))
		tty += 5;
	return begins(tty, "tty") && isdigit((unsigned char)tty[3]); /* a console, not ttyS0 or pts/0 */
}

/* Who wants to be the user. At a greeter it is root. */
static uint32_t asking(pam_handle_t *pamh)
{
	const char *name = item(pamh, PAM_RUSER);
	char buffer[4096];
	struct passwd p, *found = NULL;
	if (getuid() != 0)
		return getuid();
	if (*name == '\0')
		return 0;
	if (getpwnam_r(name, &p, buffer, sizeof buffer, &found) != 0 || found == NULL)
		return UNKNOWN_ASKER;
	return found->pw_uid;
}

/* Whether a program can tell a user who is at the device that somebody asks (docs/login-settings.md). The daemon asks it
 * to; this keeps the prompt from naming a camera where it would not. */
static bool notifies(uint32_t uid)
{
	char path[64];
	struct stat s;
	snprintf(path, sizeof path, NOTIFIERS "%lu", (unsigned long)uid);
	return lstat(path, &s) == 0 && S_ISSOCK(s.st_mode) && s.st_uid == uid;
}

/* Whether the person who logs in is at the device, as far as can be told here, with a service that may ask, or that took
 * a password. The daemon has the last word; this keeps it from being started for everybody else, and the prompt from
 * naming a camera. */
static bool local(struct attempt *a, bool password)
{
	const char *service = item(a->pamh, PAM_SERVICE), *host = item(a->pamh, PAM_RHOST);
	const char *tty = item(a->pamh, PAM_TTY);
	struct unit u;
	size_t n;
	bool here, near, root = geteuid() == 0;
	a->kind = listed(a->pamh, service, a->challenge);
	if (a->kind == UNLISTED && !password) {
		pam_syslog(a->pamh, LOG_DEBUG, "the service %s does not stand in %s, so it asks for no face", service, SERVICES);
		return false;
	}
	unit_of_this(&u);
	a->outside = u.users && *u.session == '\0';
	n = add(a->from, sizeof a->from, 0, u.name, strlen(u.name));
	if (*tty != '\0')
		add(a->from, sizeof a->from, add(a->from, sizeof a->from, n, ", ", n > 0 ? 2 : 0), tty, strlen(tty));
	/* So does xsecurelock ask. Elsewhere than in a session a server for this machine has the same words. */
	near = !root && *u.session != '\0' && strcmp(host, "localhost") == 0;
	if (*host != '\0' && !near)
		here = false;
	else if (*u.session != '\0')
		here = session_here(u.session);
	else if (u.users && password)
		here = user_here(getuid());
	else if (u.users) /* under the user's manager: a locker; or sudo and the like, if their user is told of it */
		here = !root || (*a->challenge != '\0' && notifies(asking(a->pamh)));
	else if (u.helper)
		here = root && *a->challenge != '\0' && !password && strcmp(service, "polkit-1") == 0;
	else
		here = a->kind >= GREETER && root && seat_here(a->pamh, u.console);
	if (!here)
		pam_syslog(a->pamh, LOG_DEBUG, "the service %s asks for no face: it is not at the device%s", service,
			root && a->outside ? ", or wants no challenge, or nobody is told (docs/login-settings.md)" : "");
	return here;
}

/* The program that asks, as the kernel knows it, and its arguments from the first on: the one before, whoever starts the
 * program chooses freely. Returns the number of characters, of which n - 1 are there. */
static size_t command(char *to, size_t n)
{
	char exe[4096], one;
	size_t used;
	int c;
	ssize_t length = readlink("/proc/self/exe", exe, sizeof exe);
	FILE *f = fopen("/proc/self/cmdline", "re");
	*to = '\0';
	if (f == NULL)
		return n; /* cannot be shown */
	used = add(to, n, 0, exe, length > 0 ? (size_t)length : 0);
	while ((c = getc(f)) != EOF && c != '\0')
		;
	for (bool gap = true; (c = getc(f)) != EOF; gap = c == '\0') {
		if (gap)
			used = add(to, n, used, " ", 1);
		one = (char)c;
		if (c != '\0')
			used = add(to, n, used, &one, 1);
	}
	fclose(f);
	return length > 0 ? used : n;
}

/* Whom sudo makes of its user, by its arguments: n bytes of them. What is not understood means root, so that nobody is
 * told of less than is allowed. */
static const char *sudo_target(char *arguments, size_t n)
{
	static const char with_value[] = "aCcDghpRrTtUu";
	const char *target = "root", *end = arguments + n;
	for (char *a = arguments + strlen(arguments) + 1; a < end && *a == '-'; a += strlen(a) + 1) {
		char *next = a + strlen(a) + 1, *option = a + 1;
		if (begins(a, "--user=")) {
			target = a + 7;
		} else if (strcmp(a, "--user") == 0 && next < end) {
			target = a = next;
		} else if (a[1] == '-') {
			return strcmp(a, "--") == 0 || strchr(a, '=') != NULL ? target : "root";
		} else {
			while (*option != '\0' && strchr(with_value, *option) == NULL)
				option++;
			if (*option == 'h' && option[1] == '\0')
				return "root"; /* its value may be left out */
			if (*option == 'u')
				target = option[1] != '\0' ? option + 1 : next < end ? next : "root";
			if (*option != '\0' && option[1] == '\0' && next < end)
				a = next;
		}
	}
	return target;
}

/* Whom the program that asks makes of its user. */
static void target_of(const struct attempt *a, char *to, size_t n)
{
	const char *service = item(a->pamh, PAM_SERVICE), *target = "root";
	char arguments[8192] = "";
	FILE *f = begins(service, "sudo") ? fopen("/proc/self/cmdline", "re") : NULL;
	size_t length = f != NULL ? fread(arguments, 1, sizeof arguments - 1, f) : 0;
	if (f != NULL)
		fclose(f);
	if (begins(service, "su") && !begins(service, "sudo"))
		target = a->user;
	else if (length > 0 && length < sizeof arguments - 1)
		target = sudo_target(arguments, length);
	*to = '\0';
	add(to, n, 0, target, strlen(target));
}

/* Shows what a face would allow, as whom, and who asks for it, before the camera looks: for sudo, su and the like. What
 * polkit asks for, its dialog shows. Returns false if nobody can be told, or if it is too long to be shown whole: then a
 * part of it could be hidden behind the rest. */
static bool show(struct attempt *a)
{
	char who[64] = "", as[64], buffer[4096], more[64] = "";
	struct passwd p, *asker = NULL;
	size_t n = command(a->command, sizeof a->command);
	if (strcmp(item(a->pamh, PAM_SERVICE), "polkit-1") == 0)
		return tell(a, "would-allow-dialog");
	target_of(a, as, sizeof as);
	if (getpwuid_r(a->asker, &p, buffer, sizeof buffer, &asker) == 0 && asker != NULL)
		add(who, sizeof who, 0, p.pw_name, strlen(p.pw_name));
	else
		snprintf(who, sizeof who, "%lu", (unsigned long)a->asker);
	if (n >= sizeof a->command)
		snprintf(more, sizeof more, "... [+%zu]", n + 1 - sizeof a->command);
	if (pam_info(a->pamh, "%s %s: %s%s (%s, %s)", sentence("would-allow", a->language), as, a->command, more, who,
		a->from) != PAM_SUCCESS)
		return false;
	return *more == '\0' || (tell(a, "too-long"), false);
}

/* How the system's entry of a user stands. */
enum standing { GOOD, LOCKED, NO_PASSWORD };

/* Reads the system's entry of a user. Its mark is the same as long as the account and its password are: a hash of the
 * hash of the password, or for users whose password is elsewhere, of what getpwnam tells. Only root sees the entry. */
static enum standing account(const char *user, char mark[MARK])
{
	struct spwd entry, *shadow = NULL;
	struct passwd p, *found = NULL;
	char buffer[4096], text[512] = "";
	uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
	long today = (long)(time(NULL) / (24L * 60 * 60));
	enum standing standing = GOOD;
	*mark = '\0';
	if (getspnam_r(user, &entry, buffer, sizeof buffer, &shadow) == 0 && shadow != NULL) {
		if (*entry.sp_pwdp == '!' || (entry.sp_expire >= 0 && today >= entry.sp_expire) ||
		    (entry.sp_max >= 0 && entry.sp_inact >= 0 && entry.sp_lstchg > 0 &&
			today > entry.sp_lstchg + entry.sp_max + entry.sp_inact))
			standing = LOCKED;
		else if (*entry.sp_pwdp == '\0')
			standing = NO_PASSWORD;
		if (*entry.sp_pwdp != '*')
			snprintf(text, sizeof text, "%s", entry.sp_pwdp);
	}
	if (*text == '\0' && getpwnam_r(user, &p, buffer, sizeof buffer, &found) == 0 && found != NULL)
		snprintf(text, sizeof text, "%s:%lu:%s:%s", p.pw_name, (unsigned long)p.pw_uid, p.pw_gecos, p.pw_dir);
	for (char *c = text; *c != '\0'; c++)
		hash = (hash ^ (unsigned char)*c) * UINT64_C(1099511628211);
	if (*text != '\0')
		snprintf(mark, MARK, "%016" PRIx64, hash);
	explicit_bzero(buffer, sizeof buffer);
	explicit_bzero(text, sizeof text);
	return standing;
}

/* Whether a password is right by the user's entry. Other modules may have let in: a fingerprint after a wrong password
 * leaves that password behind. */
static bool right(pam_handle_t *pamh, const char *user, const char *password)
{
	struct spwd entry, *found = NULL;
	char buffer[4096];
	struct crypt_data *data = calloc(1, sizeof *data);
	const char *hash;
	bool same = false;
	if (getspnam_r(user, &entry, buffer, sizeof buffer, &found) != 0 || found == NULL) {
		pam_syslog(pamh, LOG_NOTICE, "the password of %s cannot be checked here; see the option placed", user);
		free(data);
		return false;
	}
	if (data != NULL && *entry.sp_pwdp != '\0') {
		hash = crypt_r(password, entry.sp_pwdp, data);
		same = hash != NULL && *hash != '*' && strcmp(hash, entry.sp_pwdp) == 0;
		explicit_bzero(data, sizeof *data);
	}
	free(data);
	explicit_bzero(buffer, sizeof buffer);
	return same;
}

/* Tells the daemon that the password was given. Only a password that is not empty, and is right, is one. Nobody waits for
 * a daemon that has yet to be started: the line waits for it. A password counts only where a face would, so that a mail
 * client which tries again and again does not reset the count of failures; and one that was given outside the sessions
 * counts there alone. */
static int password_used(struct attempt *a, bool placed)
{
	const void *matched = NULL;
	const char *password = item(a->pamh, PAM_AUTHTOK);
	struct pollfd on = {.events = POLLIN};
	char line[1024];
	if ((pam_get_data(a->pamh, MATCHED, &matched) == PAM_SUCCESS && matched != NULL) || geteuid() != 0)
		return PAM_IGNORE; /* it was the face; or the daemon would not believe it */
	if (*password == '\0' || !local(a, true) || (!placed && !right(a->pamh, a->user, password)))
		return PAM_IGNORE;
	account(a->user, a->mark);
	if (strpbrk(a->user, "\t\n") != NULL || (size_t)snprintf(line, sizeof line, "password\t%s\t%lu\t%s\t%s\n", a->user,
		(unsigned long)asking(a->pamh), a->mark, a->outside ? "outside" : "") >= sizeof line)
		return PAM_IGNORE;
	if ((on.fd = hail(line)) < 0) {
		errno = -on.fd;
		pam_syslog(a->pamh, LOG_WARNING, "faceauth was not told of the password: %m");
		return PAM_IGNORE;
	}
	poll(&on, 1, AFTER);
	close(on.fd);
	return PAM_IGNORE;
}

/* Asks for the password. Returns whether Enter was pressed without one; GNOME's dialog for polkit sends no empty answer,
 * so a blank is none there. A password is now there for the modules after this. */
static bool entered(const struct attempt *a)
{
	char *answer = NULL;
	const char *none = strcmp(item(a->pamh, PAM_SERVICE), "polkit-1") == 0 ? " " : "";
	bool empty = pam_prompt(a->pamh, PAM_PROMPT_ECHO_OFF, &answer, "%s", sentence("prompt", a->language)) ==
		PAM_SUCCESS && (answer == NULL || *answer == '\0' || strcmp(answer, none) == 0);
	if (!empty && answer != NULL)
		pam_set_item(a->pamh, PAM_AUTHTOK, answer);
	if (answer != NULL) {
		explicit_bzero(answer, strlen(answer));
		free(answer);
	}
	return empty;
}

/* Takes the terminal of a program of root that is in the foreground there: its echo is off, and keys come one by one,
 * but ^C is a signal as before. Returns the terminal, or -1; its settings are in before. */
static int take_terminal(struct termios *before)
{
	struct termios keys;
	int fd = geteuid() == 0 ? open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY) : -1;
	if (fd < 0)
		return -1;
	if (tcgetpgrp(fd) == getpgrp() && tcgetattr(fd, before) == 0) {
		keys = *before;
		keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO | ECHONL);
		keys.c_cc[VMIN] = 1;
		keys.c_cc[VTIME] = 0;
		if (tcsetattr(fd, TCSANOW, &keys) == 0)
			return fd;
	}
	close(fd);
	return -1;
}

/* What follows the word that ended a look: what PAM is told, and whether there is a second look, because the first one
 * ended while Enter was pressed, or the daemon did before it could answer. Of the last row are all other words: the next
 * module decides, as if this one were not there. */
static const struct ending { const char *why; int answer; bool again; } endings[] = {
	{"match", PAM_SUCCESS, false},
	{"no-match", PAM_AUTH_ERR, false},
	{"taken-for-picture", PAM_AUTH_ERR, false},
	{"give-password", PAM_AUTH_ERR, false},
	{"unasked", PAM_IGNORE, true},
	{"gone", PAM_IGNORE, true},
	{NULL, PAM_IGNORE, false},
};

static const struct ending *ending_of(const char *why)
{
	const struct ending *e = endings;
	while (e->why != NULL && strcmp(e->why, why) != 0)
		e++;
	return e;
}

/* Has the daemon look until there is a verdict. A signal that should end the program ends the look: it is blocked
 * meanwhile, and then comes to the program. One of a key that the program itself had blocked is taken in: sudo would end
 * by it after the right password. */
static void look(struct attempt *a, bool prompted)
{
	struct signalfd_siginfo taken;
	struct termios before;
	sigset_t ending, keys, blocked;
	sigemptyset(&keys);
	sigaddset(&keys, SIGINT);
	sigaddset(&keys, SIGQUIT);
	ending = keys;
	sigaddset(&ending, SIGHUP);
	sigaddset(&ending, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &ending, &blocked);
	a->signals = signalfd(-1, &ending, SFD_CLOEXEC | SFD_NONBLOCK);
	a->terminal = prompted ? take_terminal(&before) : -1;
	/* A look or a refusal of before has ended with its connection. */
	if (prompted && send(a->fd, ASK, strlen(ASK), MSG_NOSIGNAL) < 0)
		begin(a, ASK);
	verdict(a, &before);
	if (ending_of(a->why)->again) {
		begin(a, ASK);
		verdict(a, &before);
	}
	hang_up(a);
	if (a->terminal >= 0) {
		tcsetattr(a->terminal, TCSANOW, &before);
		close(a->terminal);
	}
	sigandset(&keys, &keys, &blocked);
	if (a->signals >= 0 && signalfd(a->signals, &keys, 0) >= 0)
		while (read(a->signals, &taken, sizeof taken) == sizeof taken)
			;
	if (a->signals >= 0)
		close(a->signals);
	pthread_sigmask(SIG_SETMASK, &blocked, NULL);
}

/* Tells the person and PAM how a look has ended. */
static int answer(struct attempt *a, bool prompted)
{
	int r = ending_of(a->why)->answer;
	if (r == PAM_SUCCESS) {
		/* The time of it takes the place of a pointer: nothing is to be freed. */
		r = pam_set_data(a->pamh, MATCHED, (void *)(uintptr_t)(now() / SECOND), NULL);
		if (r == PAM_SUCCESS)
			pam_syslog(a->pamh, LOG_INFO, "%s was recognised", a->user);
		return r == PAM_SUCCESS ? r : PAM_IGNORE;
	}
	if (strcmp(a->why, "gone") == 0)
		over(a, "error");
	tell(a, a->why);
	if (prompted && strcmp(a->why, "typed") != 0 && a->kind == ONCE)
		pam_set_item(a->pamh, PAM_AUTHTOK, "");
	pam_syslog(a->pamh, LOG_DEBUG, "no login by face: %s", a->why);
	return r;
}

/* Whether a face may be asked for, by a service that may ask and for an account that is good. What it would allow is
 * shown then. */
static bool may_look(struct attempt *a)
{
	if (!local(a, false))
		return false;
	a->language = language(a->pamh);
	a->asker = asking(a->pamh);
	if (geteuid() != 0)
		return true;
	switch (account(a->user, a->mark)) {
	case LOCKED:
		tell(a, "account-locked");
		pam_syslog(a->pamh, LOG_NOTICE, "the account of %s is locked or has expired; no face lets in", a->user);
		return false;
	case NO_PASSWORD: /* the next module lets in, and asks for nothing */
		return false;
	case GOOD:
		break;
	}
	return a->kind != SESSION || show(a);
}

/* Whether this user's program was let in a moment ago: i3lock asks again if Enter was pressed twice, opens whatever the
 * answer is, and the camera would look once more. */
static bool just_matched(pam_handle_t *pamh)
{
	const void *at = NULL;
	return geteuid() != 0 && pam_get_data(pamh, MATCHED, &at) == PAM_SUCCESS && at != NULL &&
		now() / SECOND - (uintptr_t)at <= 1;
}

__attribute__((visibility("default")))
int pam_sm_authenticate(pam_handle_t *pamh, int flags, int argc, const char **argv)
{
	struct attempt a = {.pamh = pamh, .signals = -1, .fd = -1, .terminal = -1};
	bool prompt = true, password = false, placed = false;

	(void)flags;
	for (int i = 0; i < argc; i++) {
		if (strcmp(argv[i], "noprompt") == 0)
			prompt = false;
		else if (strcmp(argv[i], "password") == 0)
			password = true;
		else if (strcmp(argv[i], "placed") == 0)
			placed = true;
		else {
			pam_syslog(pamh, LOG_ERR, "unusable option %s", argv[i]);
			return PAM_IGNORE;
		}
	}
	if (pam_get_user(pamh, &a.user, NULL) != PAM_SUCCESS || a.user == NULL || *a.user == '\0')
		return PAM_IGNORE;
	if (password)
		return password_used(&a, placed);
	if (just_matched(pamh))
		return PAM_SUCCESS;
	/* Of an earlier login with this handle. */
	if (pam_set_data(pamh, MATCHED, NULL, NULL) != PAM_SUCCESS || !may_look(&a))
		return PAM_IGNORE;
	if (!prompt || !a.outside || geteuid() != 0) { /* elsewhere nothing looks before the person at the device is told */
		begin(&a, prompt ? "" : ASK);
		if (a.fd < 0) /* nobody listens: the prompt names no camera */
			return PAM_IGNORE;
	}
	if (prompt && a.kind >= GREETER)
		tell(&a, "greeting");
	if (prompt && !entered(&a)) {
		hang_up(&a);
		return PAM_IGNORE;
	}
	look(&a, prompt);
	return answer(&a, prompt);
}

__attribute__((visibility("default")))
int pam_sm_setcred(pam_handle_t *pamh, int flags, int argc, const char **argv)
{
	(void)pamh, (void)flags, (void)argc, (void)argv;
	return PAM_SUCCESS;
}
