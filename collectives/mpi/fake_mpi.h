// For tests: an MPI whose ranks are threads of one process. A collective is done when all ranks of
// its communicator have begun it, and a test can hold that back, let calls fail, or look at what
// was called.
//
// Thread rule: any thread.
#pragma once

#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "collectives/mpi/mpi_api.h"
#include "common/sync/mutex.h"

namespace ringmaster::mpi {

struct FakeComm;

// What the ranks of one job have in common.
class FakeMpiJob {
 public:
  explicit FakeMpiJob(int size);
  // No communicator of some ranks is waited for any more.
  ~FakeMpiJob();
  FakeMpiJob(const FakeMpiJob&) = delete;
  FakeMpiJob& operator=(const FakeMpiJob&) = delete;

  // The MPI of one rank. It must not outlive the job.
  std::unique_ptr<MpiApi> At(int rank);

  // From now on nothing that is begun is done.
  void Hold();
  // The next test of a collective that this rank begins says this error.
  void FailAt(int rank, Code code);
  void SetThreads(Threads threads);
  // The script has initialised MPI before.
  void SetBegun();
  void SetFinished(int rank);

  // Waits until so many collectives have been begun, by all ranks together.
  void AwaitBegun(int count);
  int begun() const;
  // What one call has moved at most, in bytes of one rank.
  size_t largest() const;
  std::vector<std::string> calls(int rank) const;
  int freed() const;
  std::set<int> finished() const;

 private:
  friend class FakeMpi;
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace ringmaster::mpi
