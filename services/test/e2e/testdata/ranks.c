/* What the tests of strategy mpi run: each rank says who it is, and rank 0 what
 * all of them together are. With an argument they wait for each other for ever.
 *
 * It is built against Open MPI's library alone, whose headers a machine that
 * only runs programs does not have. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

extern int MPI_Init(int *argc, char ***argv);
extern int MPI_Finalize(void);
extern int MPI_Comm_rank(void *comm, int *rank);
extern int MPI_Allreduce(const void *in, void *out, int n, void *type, void *op, void *comm);
extern int MPI_Allgather(const void *in, int n, void *type, void *out, int m, void *types, void *comm);
extern int MPI_Barrier(void *comm);
extern char ompi_mpi_comm_world, ompi_mpi_int, ompi_mpi_char, ompi_mpi_op_sum;

enum { MOST = 64, NAME = 128 };

int main(int argc, char **argv)
{
	static char host[NAME], hosts[MOST][NAME];
	int rank, one = 1, ranks, total, n = 0;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(&ompi_mpi_comm_world, &rank);
	MPI_Allreduce(&one, &ranks, 1, &ompi_mpi_int, &ompi_mpi_op_sum, &ompi_mpi_comm_world);
	MPI_Allreduce(&rank, &total, 1, &ompi_mpi_int, &ompi_mpi_op_sum, &ompi_mpi_comm_world);
	gethostname(host, NAME - 1);
	MPI_Allgather(host, NAME, &ompi_mpi_char, hosts, NAME, &ompi_mpi_char, &ompi_mpi_comm_world);
	for (int i = 0; i < ranks && i < MOST; i++) {
		int seen = 0;
		for (int j = 0; j < i; j++)
			seen |= !strcmp(hosts[i], hosts[j]);
		n += !seen;
	}
	printf("rank=%d host=%s\n", rank, host);
	if (rank == 0)
		printf("ranks=%d hosts=%d total=%d\n", ranks, n, total);
	fflush(stdout);
	for (;;) {
		MPI_Barrier(&ompi_mpi_comm_world);
		if (argc < 2)
			break;
		usleep(10000);
	}
	MPI_Finalize();
	return 0;
}
