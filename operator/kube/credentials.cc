#include "operator/kube/credentials.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <ctime>
#include <fstream>

extern char** environ;

namespace ringmaster::kube {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kTokenFileAge{60};
constexpr std::chrono::seconds kPluginDeadline{60};

tl::unexpected<Error> Bad(const std::string& what) {
  return tl::unexpected(Error{ErrorCode::kForbidden, 0, "", what});
}

// What the program prints within the deadline; it is killed afterwards.
Result<std::string> Output(const ExecPlugin& plugin) {
  std::vector<std::string> env;
  for (char** e = environ; *e; ++e) env.push_back(*e);
  for (const auto& [name, value] : plugin.env) env.push_back(name + "=" + value);
  Json info = {{"apiVersion", plugin.api_version},
               {"kind", "ExecCredential"},
               {"spec", {{"interactive", false}}}};
  env.push_back("KUBERNETES_EXEC_INFO=" + info.dump());
  std::vector<char*> argv{const_cast<char*>(plugin.command.c_str())}, envp;
  for (const std::string& arg : plugin.args) argv.push_back(const_cast<char*>(arg.c_str()));
  for (const std::string& e : env) envp.push_back(const_cast<char*>(e.c_str()));
  argv.push_back(nullptr);
  envp.push_back(nullptr);

  int pipe[2];
  if (pipe2(pipe, O_CLOEXEC) != 0) return Bad(std::string("pipe: ") + std::strerror(errno));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe[1], 1);
  pid_t pid = 0;
  int error =
      posix_spawnp(&pid, plugin.command.c_str(), &actions, nullptr, argv.data(), envp.data());
  posix_spawn_file_actions_destroy(&actions);
  close(pipe[1]);
  if (error != 0) {
    close(pipe[0]);
    std::string hint = plugin.install_hint.empty() ? "" : ": " + plugin.install_hint;
    return Bad("credential plugin " + plugin.command + ": " + std::strerror(error) + hint);
  }
  std::string out;
  auto deadline = Clock::now() + kPluginDeadline;
  bool over = false;
  while (true) {
    auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd p{pipe[0], POLLIN, 0};
    over = left <= 0 || poll(&p, 1, static_cast<int>(left)) == 0;
    char buffer[4096];
    ssize_t n = over ? 0 : read(pipe[0], buffer, sizeof buffer);
    if (n <= 0) break;
    out.append(buffer, static_cast<size_t>(n));
  }
  close(pipe[0]);
  if (over) kill(pid, SIGKILL);
  int status = 0;
  waitpid(pid, &status, 0);
  if (over) return Bad("credential plugin " + plugin.command + " gave no answer within 60 s");
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return Bad("credential plugin " + plugin.command + " failed with status " +
               std::to_string(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status)));
  }
  return out;
}

Clock::time_point ExpiryOf(const std::string& timestamp) {
  std::tm utc{};
  if (timestamp.empty() || !strptime(timestamp.c_str(), "%Y-%m-%dT%H:%M:%S", &utc)) {
    return Clock::time_point::max();
  }
  auto left = std::chrono::seconds(timegm(&utc) - std::time(nullptr));
  return Clock::now() + left - std::chrono::seconds(10);  // not at the last moment
}

}  // namespace

void Credentials::Expire() {
  std::lock_guard lock(mu_);
  valid_until_ = {};
}

Result<Credential> Credentials::Get() {
  std::lock_guard lock(mu_);
  if (config_.token_file.empty() && config_.exec.command.empty()) {
    return Credential{config_.token, config_.client_cert_pem, config_.client_key_pem};
  }
  if (cached_ && Clock::now() < valid_until_) return *cached_;
  auto fresh = config_.token_file.empty() ? FromPlugin() : FromFile();
  if (fresh) cached_ = *fresh;
  return fresh;
}

Result<Credential> Credentials::FromFile() {
  std::ifstream in(config_.token_file);
  std::string token;
  if (!in || !(in >> token)) return Bad("can't read a token from " + config_.token_file.string());
  valid_until_ = Clock::now() + kTokenFileAge;
  return Credential{token, config_.client_cert_pem, config_.client_key_pem};
}

Result<Credential> Credentials::FromPlugin() {
  auto text = Output(config_.exec);
  if (!text) return tl::unexpected(text.error());
  Json answer = Json::parse(*text, nullptr, false);
  if (!answer.is_object() || answer.value("kind", "") != "ExecCredential" ||
      !answer.contains("status") || !answer["status"].is_object()) {
    return Bad("credential plugin " + config_.exec.command +
               " printed no ExecCredential with a status");
  }
  const Json& status = answer["status"];
  Credential credential{status.value("token", ""), status.value("clientCertificateData", ""),
                        status.value("clientKeyData", "")};
  if (credential.client_cert_pem.empty()) {
    credential.client_cert_pem = config_.client_cert_pem;
    credential.client_key_pem = config_.client_key_pem;
  }
  valid_until_ = ExpiryOf(status.value("expirationTimestamp", ""));
  return credential;
}

}  // namespace ringmaster::kube
