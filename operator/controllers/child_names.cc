#include "operator/controllers/child_names.h"

#include <fmt/format.h>

namespace ringmaster::controllers {

std::string ServiceName(const std::string& job) {
  const bool digit = !job.empty() && job[0] >= '0' && job[0] <= '9';
  return fmt::format("{}{}-workers", digit ? "job-" : "", job);
}
std::string TlsSecretName(const std::string& job) { return job + "-tls"; }
std::string BudgetName(const std::string& job) { return job + "-workers"; }
std::string PolicyName(const std::string& job) { return job + "-workers"; }

}  // namespace ringmaster::controllers
