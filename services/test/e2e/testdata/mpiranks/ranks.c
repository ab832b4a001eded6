/* What the tests of MPICH and Intel MPI run: each rank says who it is, and rank 0 how
 * many there are on how many hosts. Then rank 3 does as the argument says, while the
 * others wait for it:
 *
 *   abort   calls MPI_Abort with 7
 *   segv    ends itself by SIGSEGV
 *   wait    writes its process ID to /tmp/pid, and waits to be killed
 *
 * It is built against the library alone, whose binary interface both have in common. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

extern int MPI_Init(int *argc, char ***argv);
extern int MPI_Finalize(void);
extern int MPI_Abort(int comm, int code);
extern int MPI_Comm_rank(int comm, int *rank);
extern int MPI_Comm_size(int comm, int *size);
extern int MPI_Allgather(const void *in, int n, int type, void *out, int m, int types, int comm);
extern int MPI_Barrier(int comm);

enum { WORLD = 0x44000000, CHAR = 0x4c000101, MOST = 64, NAME = 128 };

static void do_as(const char *what)
{
	if (!strcmp(what, "abort"))
		MPI_Abort(WORLD, 7);
	if (!strcmp(what, "segv")) {
		signal(SIGSEGV, SIG_DFL);
		raise(SIGSEGV);
	}
	FILE *f = fopen("/tmp/pid", "w");
	if (f) {
		fprintf(f, "%d\n", (int)getpid());
		fclose(f);
	}
	sleep(3600);
}

int main(int argc, char **argv)
{
	static char host[NAME], hosts[MOST][NAME];
	int rank, ranks, n = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(WORLD, &rank);
	MPI_Comm_size(WORLD, &ranks);
	gethostname(host, NAME - 1);
	MPI_Allgather(host, NAME, CHAR, hosts, NAME, CHAR, WORLD);
	for (int i = 0; i < ranks && i < MOST; i++) {
		int seen = 0;
		for (int j = 0; j < i; j++)
			seen |= !strcmp(hosts[i], hosts[j]);
		n += !seen;
	}
	printf("rank=%d host=%s\n", rank, host);
	if (rank == 0)
		printf("ranks=%d hosts=%d\n", ranks, n);
	fflush(stdout);
	MPI_Barrier(WORLD);
	if (argc > 1 && rank == 3)
		do_as(argv[1]);
	MPI_Barrier(WORLD);
	MPI_Finalize();
	return 0;
}
