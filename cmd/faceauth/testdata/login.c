// SPDX-License-Identifier: Apache-2.0

/* Logs a user in through PAM, as sudo and login do: login SERVICE USER handle|ignore|block|default TIMES. It presses
 * Enter at each prompt, and prints what it is told, PAM's answer, and whether SIGINT came. With deaf as the user's signal
 * handling nobody can be told anything. */

#include <security/pam_appl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile sig_atomic_t interrupted;
static int deaf;

static void note(int signal)
{
	(void)signal;
	interrupted = 1;
}

static int talk(int n, const struct pam_message **messages, struct pam_response **answers, void *data)
{
	(void)data;
	if ((*answers = calloc((size_t)n, sizeof **answers)) == NULL)
		return PAM_BUF_ERR;
	if (deaf && messages[0]->msg_style == PAM_TEXT_INFO) {
		free(*answers);
		*answers = NULL;
		return PAM_CONV_ERR;
	}
	for (int i = 0; i < n; i++) {
		printf("%s\n", messages[i]->msg);
		if (messages[i]->msg_style == PAM_PROMPT_ECHO_OFF || messages[i]->msg_style == PAM_PROMPT_ECHO_ON)
			(*answers)[i].resp = strdup("");
	}
	fflush(stdout);
	return PAM_SUCCESS;
}

int main(int argc, char **argv)
{
	struct pam_conv conv = {talk, NULL};
	pam_handle_t *pamh = NULL;
	sigset_t set;
	int r;
	if (argc != 5)
		return 2;
	if (strcmp(argv[3], "handle") == 0)
		signal(SIGINT, note);
	else if (strcmp(argv[3], "ignore") == 0)
		signal(SIGINT, SIG_IGN);
	else
		signal(SIGINT, strcmp(argv[3], "block") == 0 ? note : SIG_DFL); /* a shell's job in the background ignores it */
	deaf = strcmp(argv[3], "deaf") == 0;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	for (int left = atoi(argv[4]); left > 0; left--) {
		if (pam_start(argv[1], argv[2], &conv, &pamh) != PAM_SUCCESS ||
		    pam_set_item(pamh, PAM_TTY, "tty7") != PAM_SUCCESS)
			return 2;
		if (strcmp(argv[3], "block") == 0)
			sigprocmask(SIG_BLOCK, &set, NULL);
		r = pam_authenticate(pamh, 0);
		sigprocmask(SIG_UNBLOCK, &set, NULL);
		printf("answer %d interrupted %d\n", r, (int)interrupted);
		pam_end(pamh, r);
	}
	return 0;
}
