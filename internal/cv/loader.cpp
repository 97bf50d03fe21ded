// A loader: it loads the libraries and opens the networks once, and copies itself for each eye (eye/loader.go). What no
// copy writes to is in memory once. Go's runtime cannot be copied, so a loader does its work in a constructor, before
// that begins, and only its copies come to main.

#include "loader.h"
#include "net.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <vector>

#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

int notes = -1; // of the first copy: what it opens is said here

bool put(int file, const void *data, size_t length) {
	for (auto p = static_cast<const char *>(data); length > 0;) {
		ssize_t n = write(file, p, length);
		if (n <= 0)
			return false;
		p += n, length -= n;
	}
	return true;
}

bool get(int file, void *data, size_t length) {
	for (auto p = static_cast<char *>(data); length > 0;) {
		ssize_t n = read(file, p, length);
		if (n <= 0)
			return false;
		p += n, length -= n;
	}
	return true;
}

// A request for a copy. The files are its socket, the one for its connections, and where its end is told.
struct Request {
	enum Kind : char { Eye = 'e', First = 'f' };
	char kind;
	bool whole; // all files have come, which needs as many free numbers
	int files[3];
};

// receive returns false once nobody asks any more.
bool receive(int control, Request *r) {
	alignas(cmsghdr) char room[CMSG_SPACE(sizeof r->files)];
	iovec io{&r->kind, 1};
	msghdr m{};
	m.msg_iov = &io, m.msg_iovlen = 1, m.msg_control = room, m.msg_controllen = sizeof room;
	ssize_t n = recvmsg(control, &m, MSG_CMSG_CLOEXEC);
	if (n != 1)
		return false;
	cmsghdr *c = CMSG_FIRSTHDR(&m);
	size_t length = c && c->cmsg_type == SCM_RIGHTS ? c->cmsg_len - CMSG_LEN(0) : 0;
	r->whole = length == sizeof r->files;
	for (int &f : r->files)
		f = -1;
	if (length > 0)
		memcpy(r->files, CMSG_DATA(c), length);
	return true;
}

// answer tells the number of a copy and hands out its pidfd, or tells the negative number of an error.
bool answer(int control, int number, int copy) {
	alignas(cmsghdr) char room[CMSG_SPACE(sizeof copy)];
	iovec io{&number, sizeof number};
	msghdr m{};
	m.msg_iov = &io, m.msg_iovlen = 1;
	if (number > 0) {
		m.msg_control = room, m.msg_controllen = sizeof room;
		cmsghdr *c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET, c->cmsg_type = SCM_RIGHTS, c->cmsg_len = CMSG_LEN(sizeof copy);
		memcpy(CMSG_DATA(c), &copy, sizeof copy);
	}
	return sendmsg(control, &m, MSG_NOSIGNAL) == sizeof number;
}

// alone reports whether this process has one thread: others would be missing in a copy.
bool alone() {
	struct stat s;
	bool one = stat("/proc/self/task", &s) == 0 && s.st_nlink == 3; // the folder of each thread has a link to it
	errno = one ? 0 : EBUSY;
	return one;
}

struct Copy {
	pid_t number;
	int told; // the file for its end
};

class Loader {
	int control;
	sigset_t before;
	std::vector<Copy> copies;

	// become makes this copy an eye, as if it had been started with its files.
	void become(const Request &r, pid_t loader) {
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != loader)
			_exit(1);
		const int beyond = 5; // 3 and 4 are wanted; a high number may be above the limit
		int socket = fcntl(r.files[0], F_DUPFD_CLOEXEC, beyond), line = fcntl(r.files[1], F_DUPFD_CLOEXEC, beyond);
		close(control);
		for (int f : r.files)
			close(f);
		for (const Copy &c : copies)
			close(c.told);
		// What Go's runtime takes for random is this memory, which all copies would have in common.
		void *random = reinterpret_cast<void *>(getauxval(AT_RANDOM));
		if (dup2(socket, 3) < 0 || dup2(line, 4) < 0 || getrandom(random, 16, 0) != 16)
			_exit(1);
		close(socket);
		close(line);
		signal(SIGCHLD, SIG_DFL);
		sigprocmask(SIG_SETMASK, &before, nullptr);
	}

	// learn opens what the first copy has opened.
	void learn(int from) {
		std::vector<std::string> all;
		char *err = nullptr;
		guard(&err, [&] {
			std::string one;
			for (size_t n; get(from, &n, sizeof n); all.push_back(one)) {
				one.resize(n);
				if (!get(from, &one[0], n))
					break;
			}
		});
		close(from);
		if (!all.empty() && !err)
			fa_ort_load(all[0].c_str(), &err);
		for (size_t i = 1; i < all.size() && !err; i++)
			prepare(all[i]);
		free(err); // each eye says it when it opens them itself
		malloc_trim(0);
	}

	// reap tells the ends of copies.
	void reap() {
		int status;
		for (pid_t p; (p = waitpid(-1, &status, WNOHANG)) > 0;)
			for (size_t i = 0; i < copies.size(); i++)
				if (copies[i].number == p) {
					put(copies[i].told, &status, sizeof status);
					close(copies[i].told);
					copies.erase(copies.begin() + i);
					break;
				}
	}

public:
	explicit Loader(int file) : control(file) {
		sigset_t all;
		sigfillset(&all);
		sigprocmask(SIG_SETMASK, &all, &before); // it ends when the program does
		signal(SIGCHLD, [](int) {});
		prctl(PR_SET_DUMPABLE, 0);
	}

	// copy makes a copy, and returns its number, 0 in the copy, or -1. The copy of the first kind tells at told what it
	// opens.
	pid_t copy(const Request &r, int told[2]) {
		if (!r.whole)
			return errno = EMFILE, -1;
		try {
			copies.reserve(copies.size() + 1); // nothing may fail once there is a copy
		} catch (const std::bad_alloc &) {
			return errno = ENOMEM, -1;
		}
		if (!alone() || (r.kind == Request::First && pipe2(told, O_CLOEXEC) != 0))
			return -1;
		return fork();
	}

	// serve returns in a copy.
	void serve() {
		sigset_t children;
		sigfillset(&children);
		sigdelset(&children, SIGCHLD);
		for (pid_t self = getpid();;) {
			reap();
			pollfd p{control, POLLIN, 0};
			if (ppoll(&p, 1, nullptr, &children) <= 0)
				continue;
			Request r;
			if (!receive(control, &r))
				_exit(0);
			int pipe[2] = {-1, -1};
			pid_t number = copy(r, pipe);
			if (number == 0) {
				become(r, self);
				close(pipe[0]);
				notes = pipe[1];
				return;
			}
			int handle = number < 0 ? -1 : int(syscall(SYS_pidfd_open, number, 0)), why = -errno;
			close(pipe[1]);
			close(r.files[0]);
			close(r.files[1]);
			if (!answer(control, handle < 0 ? why : number, handle))
				_exit(0);
			if (handle < 0) {
				if (number > 0)
					kill(number, SIGKILL);
				close(r.files[2]);
				close(pipe[0]);
				continue;
			}
			close(handle);
			copies.push_back({number, r.files[2]});
			if (r.kind == Request::First)
				learn(pipe[0]);
		}
	}
};

__attribute__((constructor)) void begin() {
	const char *file = getenv("FACEAUTH_EYE_LOADER");
	if (file)
		Loader(atoi(file)).serve();
}

} // namespace

void note(const void *data, size_t length) {
	if (notes >= 0 && !(put(notes, &length, sizeof length) && put(notes, data, length))) {
		close(notes);
		notes = -1;
	}
}
