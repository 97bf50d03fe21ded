// SPDX-License-Identifier: Apache-2.0

/* Prints whom the module takes sudo to make of its user, by sudo's arguments: target sudo ARGUMENT... */

#include "../../../tablet/pam/pam_faceauth.c"

int main(int argc, char **argv)
{
	char line[4096];
	size_t n = 0;
	for (int i = 1; i < argc; i++)
		n += (size_t)snprintf(line + n, sizeof line - n, "%s", argv[i]) + 1;
	puts(sudo_target(line, n));
	return 0;
}
