#include "common/job/facts_proto.h"

#include <algorithm>

namespace ringmaster::job {

v1::Registration ToProto(const Registration& registration) {
  v1::Registration out;
  out.set_job_namespace(registration.job_namespace);
  out.set_job_name(registration.job_name);
  out.set_job_uid(registration.job_uid);
  out.set_pod_name(registration.pod_name);
  out.set_pod_uid(registration.pod_uid);
  out.set_http_address(registration.http_address);
  out.set_epoch(registration.epoch);
  out.set_boot_id(registration.boot_id);
  return out;
}

Registration FromProto(const v1::Registration& in) {
  return {.job_namespace = in.job_namespace(),
          .job_name = in.job_name(),
          .job_uid = in.job_uid(),
          .pod_name = in.pod_name(),
          .pod_uid = in.pod_uid(),
          .http_address = in.http_address(),
          .epoch = in.epoch(),
          .boot_id = in.boot_id()};
}

v1::WorkerExit ToProto(const WorkerExit& exit) {
  v1::WorkerExit out;
  out.set_slot(static_cast<std::uint32_t>(std::max(exit.slot, 0)));
  out.set_incarnation(exit.incarnation);
  out.set_exit_code(exit.exit_code);
  out.set_signal(exit.signal);
  out.set_restarting(exit.restarting);
  out.set_by_us(exit.by_us);
  return out;
}

WorkerExit FromProto(const v1::WorkerExit& in) {
  return {.slot = static_cast<int>(in.slot()),
          .exit_code = in.exit_code(),
          .restarting = in.restarting(),
          .by_us = in.by_us(),
          .incarnation = in.incarnation(),
          .signal = in.signal()};
}

}  // namespace ringmaster::job
