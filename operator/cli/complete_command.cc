#include "operator/cli/complete_command.h"

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "common/fields/fields.h"
#include "operator/api/labels.h"
#include "operator/cli/command_words.h"
#include "operator/cli/completion.h"
#include "operator/cli/tilde.h"
#include "operator/kube/kube_api.h"

namespace ringmaster::cli {
namespace {

constexpr std::chrono::milliseconds kPatience{1000};
// Also ends what has no deadline of its own, such as a name server that does not answer.
constexpr unsigned kMostSeconds = 2;
// A shell gets no other letters, whatever a server says.
constexpr char kOfNames[] = "abcdefghijklmnopqrstuvwxyz0123456789-.";

// As the command itself would: of several runs those that only look take the newest.
Purpose PurposeOf(const std::string& command) {
  for (const char* changes : {"scale", "drain", "kill", "delete"})
    if (command == changes) return Purpose::kChange;
  return Purpose::kLook;
}

void AddNames(const inspection::Connection& to, const kube::Resource& resource,
              const std::string& selector, std::vector<std::string>* names) {
  const auto list = to.api->ListAll(resource, to.ns, {.label_selector = selector});
  if (!list) return;
  for (const kube::Json& object : list->items) {
    const std::string name = fields::TextAt(object, "/metadata/name");
    if (name.find_first_not_of(kOfNames) == std::string::npos) names->push_back(name);
  }
}

std::vector<std::string> ExistingNames(const CommandWords& command, const Target& typed,
                                       const Surroundings& around) {
  Target target = typed;
  target.run_dir = ExpandTilde(typed.run_dir, around.home);
  target.kubeconfig = ExpandTilde(typed.kubeconfig, around.home);
  const auto place = FindPlace(target, around, PurposeOf(command.name));
  if (!place) return {};
  const auto to = ConnectTo(*place, target, kPatience);
  if (!to) return {};
  std::vector<std::string> names;
  if (command.named != NameKind::kPod) AddNames(*to, kube::HorovodJobs(), "", &names);
  if (command.named != NameKind::kJob) AddNames(*to, kube::Pods(), api::kWorkerSelector, &names);
  return names;
}

}  // namespace

void Complete(const std::vector<std::string>& words, const Surroundings& around) {
  signal(SIGALRM, [](int) { _exit(0); });
  alarm(kMostSeconds);
  const NamesSource names = [&](const CommandWords& command, const Target& target) {
    return ExistingNames(command, target, around);
  };
  std::fputs(Completion(words, AllCommandWords(), names).c_str(), stdout);
}

}  // namespace ringmaster::cli
