//go:build cgo && linux

package start

// Go's runtime reserves some 600 MB of the address space before the first line of Go runs,
// and where a limit does not let it, it dies with a dump of its own state. This runs before.

/*
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#define LEAST (1792ull << 20)

__attribute__((constructor)) static void checkAddressSpace(void) {
	struct rlimit limit;
	if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= LEAST) {
		return;
	}
	char message[300];
	int n = snprintf(message, sizeof message,
		"cne: the limit of %llu MB on the address space (ulimit -v) is too low for a program that reserves more than it uses; "
		"raise it to 2000000 kB or more, or limit the memory by GOMEMLIMIT or a control group\n",
		(unsigned long long)limit.rlim_cur / 1000000);
	ssize_t written = write(STDERR_FILENO, message, n);
	(void)written; // there is nobody else to tell
	_exit(1);
}
*/
import "C"
