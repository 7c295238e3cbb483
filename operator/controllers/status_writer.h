// Writes the status of jobs.
//
// Each method returns false if the job has to be reconciled again after a while.
//
// Thread rule: every method is safe from any thread, for one job from one thread at a time.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "operator/api/horovod_job.h"
#include "operator/controllers/creation_backoff.h"
#include "operator/controllers/event_writer.h"
#include "operator/kube/kube_api.h"
#include "operator/runtime/clock.h"
#include "operator/runtime/informer.h"

namespace ringmaster::controllers {

class Metrics;

class StatusWriter {
 public:
  // All arguments outlive the writer; `metrics` may be null.
  StatusWriter(std::shared_ptr<kube::KubeApi> api, runtime::Informer* jobs, EventWriter* events,
               CreationBackoff* backoff, Metrics* metrics, runtime::Clock clock = {})
      : api_(std::move(api)),
        jobs_(jobs),
        events_(events),
        backoff_(backoff),
        metrics_(metrics),
        clock_(std::move(clock)) {}

  // `object` is the job as it was read. Writes nothing if it has `status` already.
  bool Write(const api::HorovodJob& job, const kube::Json& object, const api::Status& status);
  // The job's spec is invalid: writes `why` as a condition and an event.
  bool WriteInvalid(const kube::Json& object, const std::string& why);
  // The job's quorum record can't be read. Nothing is decided about the job; the status says so.
  void WriteRecordUnreadable(const api::HorovodJob& job, const kube::Json& object,
                             const kube::Error& error);

 private:
  bool Update(const api::HorovodJob& job, kube::Json object, const api::Status& status);
  // Once: it is the same for all jobs.
  void TellOfLostFields(const api::HorovodJob& job, const std::string& lost);

  const std::shared_ptr<kube::KubeApi> api_;
  runtime::Informer* const jobs_;
  EventWriter* const events_;
  CreationBackoff* const backoff_;
  Metrics* const metrics_;
  const runtime::Clock clock_;
  std::atomic<bool> told_of_lost_fields_{false};
};

}  // namespace ringmaster::controllers
