// What an operator process believes about the record. Plain data.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "common/membership/quorum_record.h"
#include "common/membership/sim/event_queue.h"
#include "common/membership/sim/record_store.h"

namespace ringmaster::membership::sim {

struct SimOperator {
  QuorumRecord state;  // without a view: the record was deleted
  ViewPtr heard;       // the newest view that any pod has told it of
  std::uint64_t version = 0;
  Micros down_until = 0;
  // Recovery from quorum loss.
  Epoch view = 0;                  // the view that `able_at` is about
  Micros able_at = 0;              // when a pod last reported that its view can train
  bool at_once = false;            // begins a recovery though nothing calls for it
  std::uint64_t lineage = 0;       // the lineage that `reports` are for
  std::vector<int> pods_at_begin;  // the pods that are asked where a test takes FreshPods out
  std::map<int, RecoveryReport> reports;

  ViewPtr KnownView() const { return state.view ? state.view : heard; }
  void Read(const RecordStore& store) {
    state = store.record();
    version = store.version();
  }
  void Write(const QuorumRecord& record, RecordStore* store) {
    state = record;
    version = store->Write(record);
  }
};

}  // namespace ringmaster::membership::sim
