#include "operator/controllers/quorum_record_store.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/fields/fields.h"
#include "common/membership/message_json.h"
#include "operator/api/labels.h"
#include "operator/controllers/metrics.h"
#include "operator/controllers/pod_identity.h"
#include "operator/controllers/record_object.h"

namespace ringmaster::controllers {
namespace {

using kube::Json;

// Each lost race means that another client's write succeeded, so a few tries are enough.
constexpr int kTries = 5;

kube::Error Broken(const JobIdentity& job, const std::string& why) {
  return {.code = kube::ErrorCode::kInternal,
          .message = fmt::format("configmap {}/{} is not a record: {}", job.ns,
                                 RecordName(job.name), why)};
}

Json MakeObject(const JobIdentity& job, const membership::QuorumRecord& state) {
  Json object = {{"apiVersion", "v1"},
                 {"kind", "ConfigMap"},
                 {"metadata",
                  {{"name", RecordName(job.name)},
                   {"namespace", job.ns},
                   {"labels", {{api::kJobUidLabel, job.uid}}},
                   {"ownerReferences", Json::array({OwnerReference(job.name, job.uid)})}}}};
  PutRecord(state, &object);
  return object;
}

// The highest lineage that has begun, according to the job's status; 0: none.
std::uint64_t BegunLineage(const Json& job) {
  return membership::EpochLineage(fields::Unsigned(fields::Member(job, "status"), "epoch"));
}

std::string ResourceVersion(const Json& object) {
  return object.value("/metadata/resourceVersion"_json_pointer, "");
}

}  // namespace

std::string RecordName(const std::string& job) { return job + "-record"; }

std::shared_ptr<QuorumRecordStore::Entry> QuorumRecordStore::EntryOf(const std::string& job_uid) {
  const sync::MutexLock lock(&mu_);
  auto& entry = entries_[job_uid];
  if (entry == nullptr) entry = std::make_shared<Entry>();
  return entry;
}

void QuorumRecordStore::Forget(const std::string& job_uid) {
  const sync::MutexLock lock(&mu_);
  entries_.erase(job_uid);
}

kube::Result<void> QuorumRecordStore::Load(const JobIdentity& job, Entry& entry) {
  if (entry.known) return {};
  const auto object = api_->Get(kube::ConfigMaps(), job.ns, RecordName(job.name));
  if (!object && object.error().code != kube::ErrorCode::kNotFound) {
    return tl::unexpected(object.error());
  }
  entry.state.reset();
  if (object) {
    // It belongs to a deleted job of the same name; the garbage collector will remove it soon.
    if (!IsOwnedBy(*object, job.uid)) return tl::unexpected(Broken(job, "another job owns it"));
    auto state = RecordOf(*object);
    if (!state) return tl::unexpected(Broken(job, state.error()));
    entry.state = std::move(*state);
    entry.resource_version = ResourceVersion(*object);
  }
  entry.known = true;
  return {};
}

kube::Result<void> QuorumRecordStore::Write(const JobIdentity& job, Entry& entry,
                                            const membership::QuorumRecord& state) {
  Json object = MakeObject(job, state);
  kube::Result<Json> written;
  if (entry.state) {
    if (!forgets_.versions) object["metadata"]["resourceVersion"] = entry.resource_version;
    written = api_->Update(kube::ConfigMaps(), job.ns, object);
  } else {
    written = api_->Create(kube::ConfigMaps(), job.ns, object);
  }
  if (!written) {
    entry.known = false;  // the write may have succeeded nevertheless
    const kube::ErrorCode code = written.error().code;
    const bool raced =
        code == kube::ErrorCode::kConflict || code == kube::ErrorCode::kAlreadyExists;
    if (raced && metrics_ != nullptr) metrics_->RecordConflict();
    return tl::unexpected(written.error());
  }
  entry.state = state;
  entry.resource_version = ResourceVersion(*written);
  return {};
}

kube::Result<std::optional<membership::QuorumRecord>> QuorumRecordStore::Newest(
    const JobIdentity& job) {
  const auto entry = EntryOf(job.uid);
  const sync::MutexLock lock(&entry->mu);
  if (const auto loaded = Load(job, *entry); !loaded) return tl::unexpected(loaded.error());
  return entry->state;
}

tl::unexpected<kube::Error> QuorumRecordStore::WhyNotCreated(const JobIdentity& job, Entry& entry) {
  entry.known = false;
  if (const auto loaded = Load(job, entry); !loaded) return tl::unexpected(loaded.error());
  const bool there = entry.state.has_value();
  return tl::unexpected(
      kube::Error{.code = there ? kube::ErrorCode::kAlreadyExists : kube::ErrorCode::kConflict,
                  .message = there ? "somebody else has made the record"
                                   : "the lineage has begun before, and its record is not there"});
}

kube::Result<void> QuorumRecordStore::Bootstrap(const api::HorovodJob& job,
                                                const membership::ViewPtr& view) {
  const JobIdentity identity{job.ns, job.name, job.uid};
  const auto entry = EntryOf(job.uid);
  const sync::MutexLock lock(&entry->mu);
  if (const auto loaded = Load(identity, *entry); !loaded) return loaded;
  if (!entry->state) {
    membership::QuorumRecord state = membership::NewRecord(view);
    state.lineage = membership::EpochLineage(view->epoch);
    return CreateRecord(identity, *entry, state);
  }
  // The reports that led to the view were made for this lineage and no other.
  const membership::QuorumRecord& state = *entry->state;
  if (!membership::QuorumLost(state) || state.lineage != membership::EpochLineage(view->epoch)) {
    return tl::unexpected(kube::Error{.code = kube::ErrorCode::kAlreadyExists,
                                      .message = "the record has a view of this lineage already"});
  }
  return Write(identity, *entry, membership::FinishRecovery(state, view));
}

kube::Result<Json> QuorumRecordStore::ReadJob(const JobIdentity& job) {
  auto object = api_->Get(kube::HorovodJobs(), job.ns, job.name);
  if (object && object->value("/metadata/uid"_json_pointer, "") != job.uid) {
    return tl::unexpected(kube::Error{.code = kube::ErrorCode::kNotFound,
                                      .message = "the job was deleted, another has its name"});
  }
  return object;
}

kube::Result<Json> QuorumRecordStore::WriteBegun(const JobIdentity& job, Json object,
                                                 std::uint64_t lineage) {
  object["status"]["epoch"] = membership::MakeEpoch(lineage, 0);
  auto written = api_->Update(kube::HorovodJobs(), job.ns, object, "status");
  if (!written) return written;
  std::function<void(const Json&)> hears;
  {
    const sync::MutexLock lock(&mu_);
    hears = job_written_;
  }
  if (hears) hears(*written);
  return written;
}

void QuorumRecordStore::SetJobWriteHandler(std::function<void(const Json&)> handler) {
  const sync::MutexLock lock(&mu_);
  job_written_ = std::move(handler);
}

kube::Result<void> QuorumRecordStore::CreateRecord(const JobIdentity& job, Entry& entry,
                                                   const membership::QuorumRecord& state) {
  if (forgets_.lineages) return Write(job, entry, state);
  auto object = ReadJob(job);
  if (!object) return tl::unexpected(object.error());
  const std::uint64_t begun = BegunLineage(*object);
  if (begun >= state.lineage) return WhyNotCreated(job, entry);
  auto claimed = WriteBegun(job, std::move(*object), state.lineage);
  if (!claimed) return tl::unexpected(claimed.error());
  auto written = Write(job, entry, state);
  if (!written && kube::CreationWasRefused(written.error()) && begun == 0)
    (void)WriteBegun(job, std::move(*claimed), 0);  // so that it can be tried again
  return written;
}

kube::Result<std::uint64_t> QuorumRecordStore::WriteLineage(const JobIdentity& job,
                                                            std::uint64_t lineage,
                                                            const membership::ViewPtr& newest) {
  auto object = ReadJob(job);
  if (!object) return tl::unexpected(object.error());
  lineage = std::max(lineage,
                     membership::NextLineage(membership::EpochOf(newest), BegunLineage(*object)));
  const auto written = WriteBegun(job, std::move(*object), lineage);
  if (!written) return tl::unexpected(written.error());
  return lineage;
}

kube::Result<void> QuorumRecordStore::BeginRecovery(const JobIdentity& job, std::uint64_t lineage,
                                                    const membership::ViewPtr& newest) {
  const auto entry = EntryOf(job.uid);
  const sync::MutexLock lock(&entry->mu);
  if (const auto loaded = Load(job, *entry); !loaded) return loaded;
  const bool missed = !entry->state;
  entry->known = entry->known && !missed;  // another operator may have created it since
  if (const auto loaded = Load(job, *entry); !loaded) return loaded;
  // A record that is created anew has lost its votes. It casts none on views on which it may have
  // voted before.
  const membership::QuorumRecord before =
      entry->state ? *entry->state : membership::NewRecord(newest);
  const bool begun =
      std::max(before.lineage, membership::EpochLineage(membership::EpochOf(before.view))) >=
      lineage;
  if (entry->state && (missed || begun)) {
    return tl::unexpected(
        kube::Error{.code = kube::ErrorCode::kAlreadyExists,
                    .message = "the record is there, or at this lineage already"});
  }
  const auto above = forgets_.lineages ? lineage : WriteLineage(job, lineage, newest);
  if (!above) return tl::unexpected(above.error());
  return Write(job, *entry, membership::BeginRecovery(before, *above));
}

kube::Result<std::string> QuorumRecordStore::Answer(const JobIdentity& job,
                                                    const std::string& text) {
  const auto message = membership::DecodeMessage(text);
  if (!message) {
    return tl::unexpected(kube::Error{.code = kube::ErrorCode::kInvalid,
                                      .message = "bad message for the record: " + message.error()});
  }
  const auto entry = EntryOf(job.uid);
  const sync::MutexLock lock(&entry->mu);
  for (int attempt = 0; attempt < kTries; ++attempt) {
    const auto loaded = Load(job, *entry);
    // A sidecar may outlive its job: keep nothing for such a job.
    if (!loaded || !entry->state) Forget(job.uid);
    if (!loaded) return tl::unexpected(loaded.error());
    if (!entry->state || entry->state->view == nullptr) {
      return tl::unexpected(
          kube::Error{.code = kube::ErrorCode::kNotFound, .message = "the job has no record yet"});
    }
    const membership::RecordResult result = membership::AnswerAsRecord(*entry->state, *message);
    if (!result.changed) return membership::EncodeMessage(result.answer);
    const auto written = Write(job, *entry, result.state);
    if (written) return membership::EncodeMessage(result.answer);
    if (written.error().code != kube::ErrorCode::kConflict) return tl::unexpected(written.error());
  }
  return tl::unexpected(kube::Error{.code = kube::ErrorCode::kConflict,
                                    .message = "the record changes faster than we can write it"});
}

}  // namespace ringmaster::controllers
