// A fake communicator whose ranks are processes. What they tell each other is in files, in a folder
// that all of them see. A process that is killed just writes no more files.
//
// Thread rule: guarded by the cluster's mutex.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "collectives/nccl/fake/fake_state.h"

namespace ringmaster::nccl {

class FileRing : public FakeRing {
 public:
  FileRing(const std::filesystem::path& folder, std::string key, int size);

  void Arrive(int rank) override;
  int arrived() override;
  void Give(uint64_t launch, int rank, std::shared_ptr<const FakeCalls> calls) override;
  bool Given(uint64_t launch, FakeLists* all) override;

 private:
  std::filesystem::path FileOf(uint64_t launch, int rank) const;

  const std::filesystem::path folder_;
  bool all_came_ = false;
  std::map<uint64_t, FakeLists> seen_;  // what has been read
};

}  // namespace ringmaster::nccl
