// Credential plugins for tests: shell scripts.
//
// Thread rule: one test's thread.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "operator/kube/testing/client_fixture.h"

namespace ringmaster::kube::testing {

class PluginFixture : public ClientFixture {
 protected:
  static constexpr char kV1[] = "client.authentication.k8s.io/v1";

  ExecPlugin Plugin(const std::string& body) const {
    ExecPlugin plugin;
    plugin.command = Script("plugin", body).string();
    plugin.api_version = kV1;
    return plugin;
  }
  static std::string Answer(const std::string& status) {
    return std::string("{\"kind\": \"ExecCredential\", \"apiVersion\": \"") + kV1 +
           "\", \"status\": " + status + "}";
  }
  // A script that prints this answer.
  static std::string Print(const std::string& status) {
    return "cat <<'END'\n" + Answer(status) + "\nEND\n";
  }

  // A plugin that hangs, with a child process that hangs.
  ExecPlugin Hangs(const std::string& before = "") const {
    return Plugin(before + "sleep 100 &\n" + NoteChild() + "sleep 100\n");
  }
  std::string NoteChild() const {
    const std::string file = (dir_ / "child").string();
    return "echo $! > " + file + ".new\nmv " + file + ".new " + file + "\n";
  }
  // Returns 0 if there is no child yet.
  pid_t Child() const {
    pid_t child = 0;
    std::ifstream(dir_ / "child") >> child;
    return child;
  }
  bool ChildRuns() const {
    const pid_t child = Child();
    if (child == 0) return false;
    // A process that has ended but was not waited for is a zombie, so its state is checked.
    std::ifstream in("/proc/" + std::to_string(child) + "/stat");
    std::string pid, name, state = "gone";
    in >> pid >> name >> state;
    return state != "gone" && state != "Z" && state != "X";
  }
  static bool Becomes(const std::function<bool()>& so) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!so() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    return so();
  }
};

}  // namespace ringmaster::kube::testing
