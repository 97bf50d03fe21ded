/* pam_faceauth asks the faceauth daemon whether the person in front of the camera is the one who logs in.
 *
 *   auth [success=3 default=ignore] pam_faceauth.so             ask for the password while the camera looks
 *   auth [success=1 default=ignore] pam_unix.so try_first_pass
 *   auth requisite                  pam_deny.so
 *   auth optional                   pam_faceauth.so password    tell the daemon that the password was right
 *   auth required                   pam_permit.so
 *
 * Options:
 *   noprompt     do not ask for the password; for programs that run a service of their own beside the password's
 *   timeout=S    seconds to wait for a verdict, 1 to 60, default 12; the daemon's own deadline is shorter
 *   password     the module before has checked the password
 *
 * Without a daemon, a camera or a profile, in a remote session, and whenever anything goes wrong, the module returns
 * PAM_IGNORE, as if it were not there. It never waits for the bus or the daemon for more than ANSWER, and never for
 * the camera while the password is being typed: that is in the hands of the daemon, and its answer waits in the socket.
 *
 * It is C, not Go, because login programs fork between pam_authenticate and pam_setcred, and a Go runtime does not
 * survive that: docs/results.md has the experiment. It starts no thread and no process and sets no signal handler. */

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include <security/pam_ext.h>
#include <security/pam_modules.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-login.h>

#define SERVICE "org.faceauth"
#define OBJECT "/org/faceauth/Device"
#define INTERFACE "org.faceauth.Device"
#define SECOND UINT64_C(1000000)
#define ANSWER (3 * SECOND) /* the bus and the daemon, which the bus may have to start */
#define FRESH (10 * SECOND) /* a verdict that came while the prompt waited, counted from the start */
#define MATCHED "faceauth-matched"

struct attempt {
	pam_handle_t *pamh;
	bool talk;       /* tell the person what to do */
	sd_bus *bus;
	char daemon[64]; /* its unique name: nobody else's signals count */
	uint64_t began;
	bool done, match;
};

static uint64_t now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_BOOTTIME, &t); /* goes on in a suspended device */
	return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec / 1000;
}

/* What the person in front of the camera can do. */
static const char *advice(const char *word)
{
	static const char *const all[][2] = {
		{"verify-turn-left", "Turn your head to your left."}, {"verify-turn-right", "Turn your head to your right."},
		{"verify-look-straight", "Look straight into the camera."}, {"verify-blink", "Blink."},
		{"verify-two-faces", "More than one face is in view."}, {"verify-too-dark", "It is too dark."},
		{"verify-too-small", "Come nearer."}, {"verify-turned-away", "Look at the camera."},
	};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (strcmp(word, all[i][0]) == 0)
			return all[i][1];
	return NULL;
}

/* A message from the bus: only signals of the daemon itself count. Anybody may send us one that looks the same. */
static int on_message(sd_bus_message *m, void *data, sd_bus_error *unused)
{
	struct attempt *a = data;
	const char *sender = sd_bus_message_get_sender(m), *word, *say;
	int last;

	(void)unused;
	if (a->done || a->daemon[0] == '\0' || sender == NULL || strcmp(sender, a->daemon) != 0 ||
	    sd_bus_message_is_signal(m, INTERFACE, "VerifyStatus") <= 0 || sd_bus_message_read(m, "sb", &word, &last) < 0)
		return 0;
	if (last) {
		a->done = true;
		a->match = strcmp(word, "verify-match") == 0;
	} else if (a->talk && (say = advice(word)) != NULL) {
		pam_info(a->pamh, "%s", say);
	}
	return 0;
}

/* Handles what the bus sends until *flag is set or the deadline has passed. */
static int until(sd_bus *bus, const bool *flag, uint64_t deadline)
{
	for (;;) {
		int r = sd_bus_process(bus, NULL);
		uint64_t t;
		if (r < 0)
			return r;
		if (flag != NULL ? *flag : sd_bus_is_ready(bus) > 0)
			return 0;
		if (r > 0)
			continue;
		if ((t = now()) >= deadline)
			return -ETIMEDOUT;
		if ((r = sd_bus_wait(bus, deadline - t)) < 0 && r != -EINTR)
			return r;
	}
}

/* Calls a method of the daemon with a string, or without where arg is NULL. daemon, if it is not NULL, becomes the
 * unique name of who answered. */
static int call(sd_bus *bus, const char *method, const char *arg, char *daemon, size_t size)
{
	sd_bus_message *m = NULL, *reply = NULL;
	int r = sd_bus_message_new_method_call(bus, &m, SERVICE, OBJECT, INTERFACE, method);
	if (r >= 0 && arg != NULL)
		r = sd_bus_message_append(m, "s", arg);
	if (r >= 0)
		r = sd_bus_call(bus, m, ANSWER, NULL, &reply);
	if (r >= 0 && daemon != NULL) {
		const char *sender = sd_bus_message_get_sender(reply);
		if (sender == NULL || strlen(sender) >= size)
			r = -EBADMSG;
		else
			strcpy(daemon, sender);
	}
	sd_bus_message_unref(reply);
	sd_bus_message_unref(m);
	return r;
}

/* Connects to the system bus. Nothing here blocks: sd_bus_call itself would wait a minute and a half for a bus that
 * hangs before it is ready. */
static int connect_bus(sd_bus **bus)
{
	int r = sd_bus_open_system(bus);
	return r < 0 ? r : until(*bus, NULL, now() + ANSWER);
}

/* Ends the connection, and with it the claim: the daemon releases the camera when its client is gone. */
static void finish(struct attempt *a)
{
	a->bus = sd_bus_close_unref(a->bus);
	a->daemon[0] = '\0';
}

/* Has the daemon look for a user. */
static int begin(struct attempt *a, const char *user)
{
	int r;
	a->done = a->match = false;
	a->began = now();
	if ((r = connect_bus(&a->bus)) >= 0 && (r = sd_bus_add_filter(a->bus, NULL, on_message, a)) >= 0 &&
	    (r = call(a->bus, "Claim", user, a->daemon, sizeof a->daemon)) >= 0)
		r = call(a->bus, "VerifyStart", NULL, NULL, 0);
	if (r < 0)
		finish(a);
	return r;
}

/* Whether the person who logs in may be somewhere else than the camera. */
static bool remote(pam_handle_t *pamh)
{
	const void *host = NULL;
	char *session = NULL;
	bool far = false;
	if (pam_get_item(pamh, PAM_RHOST, &host) == PAM_SUCCESS && host != NULL && *(const char *)host != '\0')
		return true;
	if (sd_pid_get_session(0, &session) >= 0)
		far = sd_session_is_remote(session) > 0;
	free(session);
	return far;
}

static int password_used(pam_handle_t *pamh, const char *user)
{
	const void *matched = NULL;
	sd_bus *bus = NULL;
	if (pam_get_data(pamh, MATCHED, &matched) == PAM_SUCCESS || geteuid() != 0)
		return PAM_IGNORE; /* it was the face; or the daemon would not believe it */
	if (connect_bus(&bus) >= 0)
		call(bus, "PasswordUsed", user, NULL, 0);
	sd_bus_close_unref(bus);
	return PAM_IGNORE;
}

/* Asks for the password. *typed is whether there is one now, for the modules after this. */
static int ask(pam_handle_t *pamh, bool *typed)
{
	char *answer = NULL;
	int r = pam_prompt(pamh, PAM_PROMPT_ECHO_OFF, &answer, "%s", "Password (or look into the camera and press Enter): ");
	*typed = r == PAM_SUCCESS && answer != NULL && *answer != '\0';
	if (*typed)
		r = pam_set_item(pamh, PAM_AUTHTOK, answer);
	if (answer != NULL) {
		explicit_bzero(answer, strlen(answer));
		free(answer);
	}
	return r;
}

__attribute__((visibility("default")))
int pam_sm_authenticate(pam_handle_t *pamh, int flags, int argc, const char **argv)
{
	struct attempt a = {.pamh = pamh, .talk = !(flags & PAM_SILENT)};
	bool prompt = true, password = false, typed = false;
	uint64_t timeout = 12;
	const char *user = NULL;
	int r;

	for (int i = 0; i < argc; i++) {
		char *end = NULL;
		if (strcmp(argv[i], "noprompt") == 0)
			prompt = false;
		else if (strcmp(argv[i], "password") == 0)
			password = true;
		else if (strncmp(argv[i], "timeout=", 8) == 0 && (timeout = strtoul(argv[i] + 8, &end, 10)) >= 1 && timeout <= 60 && *end == '\0')
			continue;
		else {
			pam_syslog(pamh, LOG_ERR, "unusable option %s", argv[i]);
			return PAM_IGNORE;
		}
	}
	if (pam_get_user(pamh, &user, NULL) != PAM_SUCCESS || user == NULL || *user == '\0')
		return PAM_IGNORE;
	if (password)
		return password_used(pamh, user);
	if (remote(pamh))
		return PAM_IGNORE;
	if ((r = begin(&a, user)) < 0) {
		pam_syslog(pamh, LOG_DEBUG, "no login by face: %s", strerror(-r));
		return PAM_IGNORE;
	}
	if (prompt) {
		if (ask(pamh, &typed) != PAM_SUCCESS || typed) {
			finish(&a);
			return PAM_IGNORE;
		}
		if (now() - a.began > FRESH) { /* who was there then may have gone */
			finish(&a);
			if (begin(&a, user) < 0)
				return PAM_IGNORE;
		}
	}
	r = until(a.bus, &a.done, now() + timeout * SECOND);
	finish(&a);
	if (r < 0)
		return PAM_IGNORE;
	if (!a.match)
		return PAM_AUTH_ERR;
	if (pam_set_data(pamh, MATCHED, "", NULL) != PAM_SUCCESS)
		return PAM_IGNORE;
	pam_syslog(pamh, LOG_INFO, "%s was recognised", user);
	return PAM_SUCCESS;
}

__attribute__((visibility("default")))
int pam_sm_setcred(pam_handle_t *pamh, int flags, int argc, const char **argv)
{
	(void)pamh, (void)flags, (void)argc, (void)argv;
	return PAM_SUCCESS;
}
