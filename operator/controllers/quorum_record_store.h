// The record R of each job (membership rule 8): a ConfigMap <job>-record, owned by the job, made
// with create-only and changed by compare-and-swap on resourceVersion. What is answered comes from
// the own last write or a read of the API server, never from a watch cache.
//
// Thread rule: every method is safe from any thread; one job is answered one message at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "common/membership/quorum_loss.h"
#include "common/membership/quorum_record.h"
#include "common/sync/mutex.h"
#include "operator/api/horovod_job.h"
#include "operator/controllers/forgets.h"
#include "operator/kube/kube_api.h"

namespace ringmaster::controllers {

class Metrics;

struct JobIdentity {
  std::string ns;
  std::string name;
  std::string uid;
};

class QuorumRecordStore {
 public:
  // `metrics` may be null; else it outlives the store.
  explicit QuorumRecordStore(std::shared_ptr<kube::KubeApi> api, Metrics* metrics = nullptr,
                             const Forgets& forgets = {})
      : api_(std::move(api)), metrics_(metrics), forgets_(forgets) {}

  // nullopt: there is no record.
  kube::Result<std::optional<membership::QuorumRecord>> Newest(const JobIdentity& job);
  // Makes the record with its first view, or ends the recovery of the view's lineage with it.
  // kAlreadyExists: somebody was quicker, and Newest says what. kConflict: somebody was, and the
  // record has been deleted since, or it is not known whether it was ever made: a recovery has to
  // look for pods that heard of its view.
  kube::Result<void> Bootstrap(const api::HorovodJob& job, const membership::ViewPtr& view);
  // Moves the record to this lineage or a higher one: a recovery from quorum loss begins.
  // kAlreadyExists: as for Bootstrap. If somebody has deleted it, it is made anew with the newest
  // view that is known, and above every lineage that was ever begun: that is in the job's status
  // (the lineage of `epoch`) before the record is written.
  kube::Result<void> BeginRecovery(const JobIdentity& job, std::uint64_t lineage,
                                   const membership::ViewPtr& newest);
  // Answers a message for the voter R, both as JSON text. kNotFound: no record yet.
  kube::Result<std::string> Answer(const JobIdentity& job, const std::string& message);
  void Forget(const std::string& job_uid);

  // Hears of each job whose status was written here, as the API server has it now: a cache of jobs
  // may hear of it late. On the thread of the call that writes; null: nobody hears.
  void SetJobWriteHandler(std::function<void(const kube::Json&)> handler);

 private:
  struct Entry {
    sync::Mutex mu;
    bool known GUARDED_BY(mu) = false;  // what follows is our last write or read
    std::optional<membership::QuorumRecord> state GUARDED_BY(mu);
    std::string resource_version GUARDED_BY(mu);
  };
  std::shared_ptr<Entry> EntryOf(const std::string& job_uid);
  // The job's object; kNotFound: another job has its name.
  kube::Result<kube::Json> ReadJob(const JobIdentity& job);
  // Writes into the status of `object`, as it was read, that this lineage begins, and returns the
  // object as it is then. kConflict: somebody else has written the status meanwhile.
  kube::Result<kube::Json> WriteBegun(const JobIdentity& job, kube::Json object,
                                      std::uint64_t lineage);
  // Makes the record, and says in the job's status before that it does: somebody may have made one
  // with another view of this epoch, told pods of it and lost it. kConflict: so it may be.
  kube::Result<void> Found(const JobIdentity& job, Entry& entry,
                           const membership::QuorumRecord& state) REQUIRES(entry.mu);
  tl::unexpected<kube::Error> WhyNotFound(const JobIdentity& job, Entry& entry) REQUIRES(entry.mu);
  // The lineage to begin, `lineage` at least; it is in the job's status by then. kConflict:
  // somebody else has written the status meanwhile.
  kube::Result<std::uint64_t> WriteLineage(const JobIdentity& job, std::uint64_t lineage,
                                           const membership::ViewPtr& newest);
  kube::Result<void> Load(const JobIdentity& job, Entry& entry) REQUIRES(entry.mu);
  // kConflict: somebody else wrote it; the entry is forgotten then.
  kube::Result<void> Write(const JobIdentity& job, Entry& entry,
                           const membership::QuorumRecord& state) REQUIRES(entry.mu);

  const std::shared_ptr<kube::KubeApi> api_;
  Metrics* const metrics_;
  const Forgets forgets_;
  sync::Mutex mu_;
  std::map<std::string, std::shared_ptr<Entry>> entries_ GUARDED_BY(mu_);  // by job uid
  std::function<void(const kube::Json&)> job_written_ GUARDED_BY(mu_);
};

std::string RecordName(const std::string& job);

}  // namespace ringmaster::controllers
