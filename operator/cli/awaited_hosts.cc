#include "operator/cli/awaited_hosts.h"

#include <fmt/format.h>

#include <utility>

namespace ringmaster::cli {

void AwaitedHosts::SetAddress(const std::string& address) {
  const sync::MutexLock lock(&mu_);
  address_ = address;
  changed_.NotifyAll();
}

std::string AwaitedHosts::address() const {
  const sync::MutexLock lock(&mu_);
  return address_;
}

void AwaitedHosts::SetFirstError(const std::string& error) {
  const sync::MutexLock lock(&mu_);
  first_error_ = error;
  changed_.NotifyAll();
}

void AwaitedHosts::SetSlots(int slots, std::map<std::string, std::string> troubles) {
  const sync::MutexLock lock(&mu_);
  slots_ = slots;
  troubles_ = std::move(troubles);
  changed_.NotifyAll();
}

Outcome<std::string> AwaitedHosts::AwaitAddress(const std::stop_token& stop) {
  const sync::MutexLock lock(&mu_);
  while (address_.empty() && first_error_.empty() && changed_.WaitUntil(&mu_, stop, deadline_)) {
  }
  if (stop.stop_requested())
    return Fail(ExitCode::kInterrupted, "interrupted: nothing was started");
  if (!first_error_.empty()) return Fail(ExitCode::kUsage, first_error_);
  if (address_.empty()) return Fail(ExitCode::kMachineLacks, WhyFew());
  return address_;
}

Outcome<int> AwaitedHosts::AwaitSlots(const std::stop_token& stop) {
  const sync::MutexLock lock(&mu_);
  while (slots_ < np_ && changed_.WaitUntil(&mu_, stop, deadline_)) {
  }
  if (stop.stop_requested())
    return Fail(ExitCode::kInterrupted, "interrupted: no worker was started");
  if (slots_ < np_) return Fail(ExitCode::kMachineLacks, WhyFew());
  return slots_;
}

std::string AwaitedHosts::WhyFew() const {
  std::string why = fmt::format(
      "-np {}: the hosts that --host-discovery-script names offered {} slots after {} s", np_,
      slots_, patience_.count());
  for (const auto& [host, trouble] : troubles_) why += fmt::format("\nhost {}: {}", host, trouble);
  return why;
}

}  // namespace ringmaster::cli
