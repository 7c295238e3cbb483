// The quorum record R of each job (membership rule 8): a ConfigMap <job>-record, owned by the job,
// created with create-only and changed by compare-and-swap on resourceVersion. Answers come from
// our own last write or from a read of the API server, never from a watch cache.
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
  // Creates the record with its first view, or ends the recovery of the view's lineage with it.
  // kAlreadyExists: another operator was quicker, and Newest returns what it wrote. kConflict: the
  // lineage has begun before, but its record was deleted or perhaps never created; a recovery has
  // to look for pods that know its view.
  kube::Result<void> Bootstrap(const api::HorovodJob& job, const membership::ViewPtr& view);
  // Moves the record to this lineage or a higher one: a recovery from quorum loss begins.
  // kAlreadyExists: as for Bootstrap. A record that was deleted is created anew, with the newest
  // known view and above every lineage that has ever begun. The job's status names the new lineage
  // (in `epoch`) before the record is written.
  kube::Result<void> BeginRecovery(const JobIdentity& job, std::uint64_t lineage,
                                   const membership::ViewPtr& newest);
  // Answers a message to the voter R; both are JSON text. kNotFound: there is no record yet.
  kube::Result<std::string> Answer(const JobIdentity& job, const std::string& message);
  void Forget(const std::string& job_uid);

  // `handler` receives each job whose status was written here, as the API server returns it,
  // because a cache of jobs may learn of it late. It runs on the thread that writes. May be null.
  void SetJobWriteHandler(std::function<void(const kube::Json&)> handler);

 private:
  struct Entry {
    sync::Mutex mu;
    bool known GUARDED_BY(mu) = false;  // the fields below are from our last write or read
    std::optional<membership::QuorumRecord> state GUARDED_BY(mu);
    std::string resource_version GUARDED_BY(mu);
  };
  std::shared_ptr<Entry> EntryOf(const std::string& job_uid);
  // Reads the job's object. kNotFound: another job has its name.
  kube::Result<kube::Json> ReadJob(const JobIdentity& job);
  // Writes into the status of `object` that this lineage begins, and returns the new object.
  // kConflict: another client has written the status meanwhile.
  kube::Result<kube::Json> WriteBegun(const JobIdentity& job, kube::Json object,
                                      std::uint64_t lineage);
  // Creates the record, after noting in the job's status that its lineage begins: an earlier record
  // of this epoch may have had another view, been lost, and have pods that know its view.
  // kConflict: that may be so.
  kube::Result<void> CreateRecord(const JobIdentity& job, Entry& entry,
                                  const membership::QuorumRecord& state) REQUIRES(entry.mu);
  tl::unexpected<kube::Error> WhyNotCreated(const JobIdentity& job, Entry& entry)
      REQUIRES(entry.mu);
  // Writes the lineage to begin into the job's status and returns it; it is at least `lineage`.
  // kConflict: another client has written the status meanwhile.
  kube::Result<std::uint64_t> WriteLineage(const JobIdentity& job, std::uint64_t lineage,
                                           const membership::ViewPtr& newest);
  kube::Result<void> Load(const JobIdentity& job, Entry& entry) REQUIRES(entry.mu);
  // kConflict: another client wrote the record; the entry is then forgotten.
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
