// Gloo's side of the comparison: allreduce_gloo RANKS SIZES SECONDS. Forks its ranks; they meet in
// a temporary directory.
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <vector>

#include "tests/bench/allreduce_loop.h"

namespace {

void RunRank(int rank, int ranks, const std::string& directory, const std::vector<size_t>& sizes,
             double seconds) {
  gloo::transport::tcp::attr attributes("127.0.0.1");
  auto device = gloo::transport::tcp::CreateDevice(attributes);
  gloo::rendezvous::FileStore store(directory);
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);
  context->connectFullMesh(store, device);

  std::vector<float> data(*std::max_element(sizes.begin(), sizes.end()) / sizeof(float) + 1, 0.0f);
  const auto results = ringmaster::bench::TimeAllreduce(
      sizes, seconds,
      [&] {
        gloo::BarrierOptions options(context);
        gloo::barrier(options);
      },
      [&](size_t count) {
        gloo::AllreduceOptions options(context);
        options.setOutput(data.data(), count);
        options.setReduceFunction(
            static_cast<void (*)(void*, const void*, const void*, size_t)>(&gloo::sum<float>));
        gloo::allreduce(options);
      });
  if (rank == 0) ringmaster::bench::PrintResults("result", ranks, results);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const int ranks = std::atoi(argv[1]);
  const auto sizes = ringmaster::bench::SizesFromArgument(argv[2]);
  std::string directory = std::filesystem::temp_directory_path() / "ringmaster-bench-XXXXXX";
  if (mkdtemp(directory.data()) == nullptr) return 3;
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    const pid_t pid = fork();
    if (pid == 0) {
      RunRank(rank, ranks, directory, sizes, std::atof(argv[3]));
      _exit(0);
    }
    children.push_back(pid);
  }
  int failed = 0;
  for (pid_t pid : children) {
    int status = 0;
    waitpid(pid, &status, 0);
    failed |= status;
  }
  std::filesystem::remove_all(directory);
  return failed != 0;
}
