#include "operator/cli/machines.h"

#include <fmt/format.h>

#include <thread>
#include <utility>

#include "operator/cli/run_address.h"

namespace ringmaster::cli {

Machines::Machines(const MachineOptions& options, const std::vector<Host>& hosts,
                   const std::vector<int>& pods, const std::stop_token& stop)
    : wanted_address_(options.address),
      on_stop_(stop, [this] { stop_.request_stop(); }),
      setup_(options, stop_.get_token()) {
  for (size_t i = 0; i < hosts.size(); ++i) {
    if (pods[i] > 0) machines_.push_back(MachineOf(hosts[i], pods[i], static_cast<int>(i)));
  }
}

Outcome<void> Machines::OnEach(const std::function<Outcome<void>(Machine*)>& work) {
  std::vector<Outcome<void>> outcomes(machines_.size());
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < machines_.size(); ++i)
      threads.emplace_back([&, i] { outcomes[i] = work(&machines_[i]); });
  }
  if (setup_.stop().stop_requested())
    return Fail(ExitCode::kInterrupted, "interrupted: nothing was started");
  Failure all;
  for (size_t i = 0; i < machines_.size(); ++i) {
    if (outcomes[i]) continue;
    all.code = outcomes[i].error().code;
    all.message += fmt::format("{}host {}: {}", all.message.empty() ? "" : "\n",
                               machines_[i].host.name, outcomes[i].error().message);
  }
  if (all.message.empty()) return {};
  return tl::unexpected(all);
}

Outcome<void> Machines::Prepare(const std::function<void(const std::string&)>& say) {
  if (auto looked = OnEach([&](Machine* machine) { return setup_.Look(machine); }); !looked)
    return looked;
  std::vector<Machine*> all;
  for (Machine& machine : machines_) all.push_back(&machine);
  const auto address = ChooseAddress(wanted_address_, all, IsOwnAddress);
  if (!address) return tl::unexpected(address.error());
  address_ = *address;
  if (auto given = OnEach([&](Machine* machine) { return GiveAddress(address_, machine); }); !given)
    return given;
  std::string lacking;
  for (const Machine& machine : machines_)
    if (!machine.has_programs) lacking += (lacking.empty() ? "" : ", ") + machine.host.name;
  if (lacking.empty()) return {};
  say("bringing the programs to " + lacking);
  return OnEach([&](Machine* machine) { return setup_.Install(machine); });
}

Outcome<void> Machines::StartNodes(const std::filesystem::path& kubeconfig) {
  return OnEach([&](Machine* machine) { return setup_.StartNode(machine, kubeconfig); });
}

void Machines::Keep(std::shared_ptr<kube::KubeApi> api, const std::filesystem::path& kubeconfig,
                    std::function<void(const std::string&)> say) {
  restarter_ = std::make_unique<NodeRestarter>(&setup_, &machines_, std::move(api), kubeconfig,
                                               std::move(say));
}

void Machines::Stop() {
  stop_.request_stop();
  restarter_.reset();  // joins the threads
}

std::string Machines::EndByHand(const std::string& node) const {
  for (const Machine& machine : machines_) {
    if (machine.node == node && machine.pid != 0) return setup_.EndByHand(machine);
  }
  return "";
}

}  // namespace ringmaster::cli
