// For tests of the converters of job kinds.
#pragma once

#include <gtest/gtest.h>

#include "operator/api/horovod_job.h"
#include "operator/cli/convert.h"

namespace ringmaster::cli {

inline Converted ConvertOrFail(const nlohmann::json& job) {
  auto converted = ConvertJob(job);
  EXPECT_TRUE(converted.has_value()) << converted.error().message;
  return converted.value_or(Converted{});
}

// What an API server with the CRD would say to the job.
inline void ExpectTaken(const Converted& converted) {
  const auto parsed = api::ParseHorovodJob(converted.job);
  EXPECT_TRUE(parsed.has_value()) << api::ToString(parsed.error());
}

}  // namespace ringmaster::cli
