// An MPI's side of the comparison: mpirun -np N allreduce_mpi SIZES SECONDS
#include <mpi.h>

#include <cstdlib>
#include <vector>

#include "tests/bench/allreduce_loop.h"

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  MPI_Init(&argc, &argv);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const auto sizes = ringmaster::bench::SizesFromArgument(argv[1]);
  std::vector<float> data(*std::max_element(sizes.begin(), sizes.end()) / sizeof(float) + 1, 0.0f);
  const auto results = ringmaster::bench::TimeAllreduce(
      sizes, std::atof(argv[2]), [] { MPI_Barrier(MPI_COMM_WORLD); },
      [&](size_t count) {
        MPI_Allreduce(MPI_IN_PLACE, data.data(), static_cast<int>(count), MPI_FLOAT, MPI_SUM,
                      MPI_COMM_WORLD);
      });
  if (rank == 0) ringmaster::bench::PrintResults("result", size, results);
  MPI_Finalize();
  return 0;
}
