// Reads jobs, and keeps what was read: most looks are at a job whose spec has not changed, and
// checking a spec takes longer than all that follows.
//
// Thread rule: every method is safe from any thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <tl/expected.hpp>

#include "common/sync/mutex.h"
#include "operator/api/horovod_job.h"
#include "operator/runtime/object_cache.h"

namespace ringmaster::controllers {

class JobReader {
 public:
  using JobPtr = std::shared_ptr<const api::HorovodJob>;

  // As api::ParseHorovodJob reads it, without fields that this operator doesn't know. `object` is
  // the newest one of the job with this key.
  tl::expected<JobPtr, api::FieldErrors> Read(const std::string& key,
                                              const runtime::ObjectPtr& object);
  void Forget(const std::string& key);

 private:
  struct Known {
    runtime::ObjectPtr object;  // from which `job` was read
    JobPtr job;
  };
  Known Find(const std::string& key) const;

  mutable sync::Mutex mu_;
  std::map<std::string, Known> known_ GUARDED_BY(mu_);
};

}  // namespace ringmaster::controllers
