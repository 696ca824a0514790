//go:build cgo && linux

package start

// Go's runtime reserves some 600 MB of the address space before the first line of Go runs,
// and where a limit does not let it, it dies with a dump of its own state. This runs before.

/*
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#define LEAST (1792ull << 20)

// Of what may be written to, it takes less, but each thread has a stack of some MB.
#define LEAST_DATA (256ull << 20)

static void check(int resource, unsigned long long least, const char *what, const char *remedy) {
	struct rlimit limit;
	if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= least) {
		return;
	}
	char message[300];
	int n = snprintf(message, sizeof message,
		"cne: the limit of %llu MB on %s is too low for %s or more, or limit the memory by GOMEMLIMIT or a control group\n",
		(unsigned long long)limit.rlim_cur / 1000000, what, remedy);
	ssize_t written = write(STDERR_FILENO, message, n);
	(void)written; // there is nobody else to tell
	_exit(1);
}

__attribute__((constructor)) static void checkLimits(void) {
	check(RLIMIT_AS, LEAST, "the address space (ulimit -v)", "a program that reserves more than it uses; raise it to 2000000 kB");
	check(RLIMIT_DATA, LEAST_DATA, "memory to write to (ulimit -d)", "the threads of a program; raise it to 500000 kB");
}
*/
import "C"
