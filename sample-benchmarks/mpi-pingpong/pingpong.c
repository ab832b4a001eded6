// Latency and bandwidth between two MPI ranks, by the size of the message.
//
//	mpicc -O2 -o mpi-pingpong pingpong.c
//	mpirun -n 2 mpi-pingpong
//
// A message goes there and back again and again: latency is half a round trip,
// and bandwidth what that moves, in 10^6 bytes a second. Two variables of the
// environment of rank 0 say how much is measured:
//
//	SECONDS_EACH  about how long one value is measured, in seconds (0.2)
//	REPETITIONS   how many values are measured for each size (5)
//
// Rank 0 prints each value, and emits it as two metrics where the platform has
// named the file for that, BENCHMARK_AI_FILE.
#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int sizes[] = {8, 64, 512, 4096, 32768, 262144, 1048576, 4194304};

enum { fewest_trips = 3, most_trips = 100000, warm_up = 5 };

static void fail(const char *what, const char *why) {
	fprintf(stderr, "mpi-pingpong: %s: %s\n", what, why);
	MPI_Abort(MPI_COMM_WORLD, 1);
	exit(1);
}

// number returns the number that a variable holds, from least to most.
static double number(const char *name, double unset, double least, double most) {
	const char *text = getenv(name);
	if (text == NULL || *text == '\0')
		return unset;
	char *end = NULL;
	double value = strtod(text, &end);
	if (*end != '\0' || !(value >= least && value <= most)) {
		char why[200];
		snprintf(why, sizeof why, "\"%.100s\" is no number from %g to %g", text, least, most);
		fail(name, why);
	}
	return value;
}

// play sends a message there and back so many times, and returns how long that
// took.
static double play(int rank, int size, char *out, char *back, int trips) {
	MPI_Barrier(MPI_COMM_WORLD);
	double begin = MPI_Wtime();
	for (int i = 0; i < trips; i++) {
		if (rank == 0) {
			MPI_Send(out, size, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
			MPI_Recv(back, size, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		} else {
			MPI_Recv(back, size, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			MPI_Send(back, size, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
		}
	}
	return MPI_Wtime() - begin;
}

// warm opens connections, checks that what comes back is what was sent, and
// returns how long a round trip takes from then on.
static double warm(int rank, int size, char *out, char *back) {
	for (int i = 0; i < size; i++) {
		out[i] = (char)(rand() >> 7);
		back[i] = (char)~out[i];
	}
	play(rank, size, out, back, warm_up);
	if (rank == 0 && memcmp(out, back, (size_t)size) != 0)
		fail("a message", "came back changed");
	return play(rank, size, out, back, warm_up) / warm_up;
}

// tell prints the values of one repetition, and emits them.
static void tell(FILE *metrics, int size, double latency, double bandwidth) {
	printf("size=%d bytes latency=%.2f us bandwidth=%.4g MB/s\n", size, latency, bandwidth);
	fflush(stdout);
	if (metrics == NULL)
		return;
	fprintf(metrics, "{\"latency_%d\":%.6g,\"bandwidth_%d\":%.6g,\"@unit\":{\"latency_%d\":\"us\",\"bandwidth_%d\":\"MB/s\"}}\n",
		size, latency, size, bandwidth, size, size);
	if (fflush(metrics) != 0)
		fail("emit", strerror(errno));
}

// meet prints where the two ranks are.
static void meet(int rank) {
	char names[2][MPI_MAX_PROCESSOR_NAME] = {{0}}, name[MPI_MAX_PROCESSOR_NAME] = {0};
	int length = 0;
	MPI_Get_processor_name(name, &length);
	MPI_Gather(name, sizeof name, MPI_CHAR, names, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
	if (rank == 0) {
		printf("ranks on %s and %s\n", names[0], names[1]);
		fflush(stdout);
	}
}

int main(int argc, char **argv) {
	MPI_Init(&argc, &argv);
	int rank = 0, ranks = 0;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (ranks != 2) {
		if (rank == 0)
			fprintf(stderr, "mpi-pingpong: two ranks play, and there are %d: mpirun -n 2\n", ranks);
		MPI_Finalize();
		return 2;
	}
	double seconds = 0, repetitions = 0;
	FILE *metrics = NULL;
	if (rank == 0) {
		seconds = number("SECONDS_EACH", 0.2, 1e-6, 3600);
		repetitions = number("REPETITIONS", 5, 1, 1e6);
		const char *file = getenv("BENCHMARK_AI_FILE");
		if (file != NULL && (metrics = fopen(file, "a")) == NULL)
			fail(file, strerror(errno));
	}
	MPI_Bcast(&repetitions, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
	meet(rank);
	const int count = sizeof sizes / sizeof *sizes, largest = sizes[count - 1];
	char *out = malloc((size_t)largest), *back = malloc((size_t)largest);
	if (out == NULL || back == NULL)
		fail("memory", strerror(errno));
	for (int s = 0; s < count; s++) {
		double fit = seconds / warm(rank, sizes[s], out, back);
		int trips = fit < fewest_trips ? fewest_trips : fit > most_trips ? most_trips : (int)fit;
		MPI_Bcast(&trips, 1, MPI_INT, 0, MPI_COMM_WORLD);
		for (int i = 0; i < (int)repetitions; i++) {
			double half = play(rank, sizes[s], out, back, trips) / trips / 2;
			if (rank == 0)
				tell(metrics, sizes[s], half * 1e6, sizes[s] / half / 1e6);
		}
	}
	if (metrics != NULL && fclose(metrics) != 0)
		fail("emit", strerror(errno));
	free(out);
	free(back);
	return MPI_Finalize();
}
