// The quorum record of the simulated job, as the API server has it, and the highest lineage, which
// is written down apart from it.
//
// Owner: World. Plain data of one schedule; one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "common/membership/quorum_record.h"

namespace ringmaster::membership::sim {

class RecordStore {
 public:
  // Without a view: it was deleted.
  const QuorumRecord& record() const { return record_; }
  // Changes with every write.
  std::uint64_t version() const { return version_; }

  void Begin(QuorumRecord record) { record_ = std::move(record); }
  // Returns the new version.
  std::uint64_t Write(const QuorumRecord& record) {
    record_ = record;
    return ++version_;
  }
  void Delete() { Write({}); }

  // The highest lineage that was ever begun; 0: no other one than the first.
  std::uint64_t lineage() const { return lineage_; }
  void WriteLineage(std::uint64_t lineage) { lineage_ = std::max(lineage_, lineage); }

 private:
  QuorumRecord record_;
  std::uint64_t version_ = 1;
  std::uint64_t lineage_ = 0;
};

}  // namespace ringmaster::membership::sim
