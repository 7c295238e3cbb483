#include "operator/kube/exec_plugin.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <ctime>

#include "common/fields/fields.h"
#include "common/fields/parse.h"
#include "common/process/spawn.h"
#include "common/wall_time/wall_time.h"

extern char** environ;

namespace ringmaster::kube {
namespace {

using Clock = std::chrono::steady_clock;
constexpr size_t kLongestOutput = 1u << 20;
constexpr size_t kKeptErrors = 400;

tl::unexpected<Error> Bad(const ExecPlugin& plugin, const std::string& what) {
  return tl::unexpected(
      Error{ErrorCode::kForbidden, 0, "", "credential plugin " + plugin.command + " " + what});
}

std::vector<std::string> Environment(const ExecPlugin& plugin) {
  std::vector<std::string> env;
  for (char** e = environ; *e; ++e) {
    std::string name(*e, std::strcspn(*e, "="));
    if (!plugin.env.contains(name) && name != "KUBERNETES_EXEC_INFO") env.push_back(*e);
  }
  for (const auto& [name, value] : plugin.env) env.push_back(name + "=" + value);
  Json spec = {{"interactive", false}};
  if (!plugin.cluster.is_null()) spec["cluster"] = plugin.cluster;
  Json info = {{"apiVersion", plugin.api_version}, {"kind", "ExecCredential"}, {"spec", spec}};
  env.push_back("KUBERNETES_EXEC_INFO=" +
                info.dump(-1, ' ', false, Json::error_handler_t::replace));
  return env;
}

struct Pipe {
  int read = -1, write = -1;
  bool Open() {
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0) return false;
    read = fds[0];
    write = fds[1];
    return true;
  }
  void Close(int Pipe::*end) {
    if (this->*end >= 0) close(this->*end);
    this->*end = -1;
  }
  ~Pipe() {
    Close(&Pipe::read);
    Close(&Pipe::write);
  }
};

struct Printed {
  std::string out, err;
  bool complete = false;
};

// Reads both pipes to their ends.
Printed ReadAll(const Pipe& out, const Pipe& err, Clock::time_point deadline) {
  Printed printed;
  std::array<pollfd, 2> fds{pollfd{out.read, POLLIN, 0}, pollfd{err.read, POLLIN, 0}};
  while (fds[0].fd >= 0 || fds[1].fd >= 0) {
    auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0 || printed.out.size() > kLongestOutput) return printed;
    if (poll(fds.data(), fds.size(), static_cast<int>(left)) <= 0) continue;
    for (size_t i = 0; i < fds.size(); ++i) {
      if (fds[i].revents == 0) continue;
      char buffer[4096];
      ssize_t n = read(fds[i].fd, buffer, sizeof buffer);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) {
        fds[i].fd = -1;
        continue;
      }
      std::string& text = i == 0 ? printed.out : printed.err;
      text.append(buffer, static_cast<size_t>(n));
      if (i == 1 && text.size() > kKeptErrors) text.erase(0, text.size() - kKeptErrors);
    }
  }
  printed.complete = true;
  return printed;
}

// Waits for the program's end, because it may close its pipes and keep running.
bool HasEnded(pid_t pid, Clock::time_point deadline) {
  const int fd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  pollfd end{fd, POLLIN, 0};
  bool ended = false;
  while (fd >= 0 && !ended) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) break;
    ended = poll(&end, 1, static_cast<int>(left)) > 0;
  }
  if (fd >= 0) close(fd);
  return ended;
}

std::string Said(std::string err) {
  while (!err.empty() && std::isspace(static_cast<unsigned char>(err.back()))) err.pop_back();
  return err.empty() ? "" : ": " + err;
}

Result<std::string> Output(const ExecPlugin& plugin, Clock::time_point deadline,
                           std::stop_token stop) {
  Pipe out, err;
  if (!out.Open() || !err.Open())
    return Bad(plugin, std::string("can't be run: ") + std::strerror(errno));
  const auto began = Clock::now();
  std::vector<std::string> argv{plugin.command};
  argv.insert(argv.end(), plugin.args.begin(), plugin.args.end());
  // This thread waits for its end, so it ends before it only with the whole process.
  const process::SpawnResult spawned = process::Spawn({.argv = argv,
                                                       .env = Environment(plugin),
                                                       .output = out.write,
                                                       .error = err.write,
                                                       .parent_death_signal = SIGKILL});
  if (spawned.pid < 0) {
    std::string hint = plugin.install_hint.empty() ? "" : ". " + plugin.install_hint;
    return Bad(plugin, std::string("can't be run: ") + std::strerror(spawned.error) + hint);
  }
  const pid_t pid = spawned.pid;
  out.Close(&Pipe::write);
  err.Close(&Pipe::write);
  Printed printed;
  {
    const auto end = [pid] { kill(-pid, SIGKILL); };
    const std::stop_callback end_early(stop, end);
    printed = ReadAll(out, err, deadline);
    printed.complete = printed.complete && HasEnded(pid, deadline);
    if (!printed.complete) end();
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (stop.stop_requested()) return Bad(plugin, "was ended: this client is stopping");
  if (printed.out.size() > kLongestOutput) return Bad(plugin, "printed more than 1 MiB");
  if (!printed.complete) {
    auto seconds = std::chrono::round<std::chrono::seconds>(Clock::now() - began).count();
    return Bad(plugin, "gave no answer within " + std::to_string(seconds) +
                           " s (it gets no terminal to ask at)" + Said(printed.err));
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return Bad(plugin, "failed with status " + std::to_string(code) + Said(printed.err));
  }
  return printed.out;
}

}  // namespace

std::optional<std::chrono::system_clock::time_point> ParseTimestamp(const std::string& text) {
  std::tm utc{};
  const char* at = strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &utc);
  if (at == nullptr) return std::nullopt;
  if (*at == '.') {
    for (++at; std::isdigit(static_cast<unsigned char>(*at)); ++at) {
    }
  }
  long offset = 0;
  if (*at == '+' || *at == '-') {
    int hours = 0, minutes = 0, used = 0;
    if (std::sscanf(at + 1, "%2d:%2d%n", &hours, &minutes, &used) != 2) return std::nullopt;
    offset = (hours * 3600L + minutes * 60L) * (*at == '-' ? -1 : 1);
    at += 1 + used;
  } else if (*at == 'Z' || *at == 'z') {
    ++at;
  } else {
    return std::nullopt;
  }
  if (*at != '\0') return std::nullopt;
  return wall_time::FromUnixSeconds(timegm(&utc) - offset);
}

Result<ExecAnswer> RunExecPlugin(const ExecPlugin& plugin, Clock::time_point deadline,
                                 std::stop_token stop) {
  auto text = Output(plugin, deadline, std::move(stop));
  if (!text) return tl::unexpected(text.error());
  return ReadExecAnswer(plugin, *text);
}

Result<ExecAnswer> ReadExecAnswer(const ExecPlugin& plugin, const std::string& text) {
  Json answer = fields::ParseOrDiscard(text);
  if (fields::Text(answer, "kind") != "ExecCredential" || !answer["status"].is_object()) {
    return Bad(plugin, "printed no ExecCredential with a status");
  }
  if (fields::Text(answer, "apiVersion") != plugin.api_version) {
    return Bad(plugin, "printed an ExecCredential of apiVersion \"" +
                           fields::Text(answer, "apiVersion") + "\"; the kubeconfig says " +
                           plugin.api_version);
  }
  const Json& status = answer["status"];
  ExecAnswer credential{fields::Text(status, "token"),
                        fields::Text(status, "clientCertificateData"),
                        fields::Text(status, "clientKeyData"), std::nullopt};
  if (credential.client_cert_pem.empty() != credential.client_key_pem.empty()) {
    return Bad(plugin, "printed only one of clientCertificateData and clientKeyData");
  }
  if (credential.token.empty() && credential.client_cert_pem.empty()) {
    return Bad(plugin, "printed neither a token nor a client certificate");
  }
  if (std::string expiry = fields::Text(status, "expirationTimestamp"); !expiry.empty()) {
    credential.expires = ParseTimestamp(expiry);
    if (!credential.expires) {
      return Bad(plugin, "printed an expirationTimestamp that is no time: \"" + expiry + "\"");
    }
  }
  return credential;
}

}  // namespace ringmaster::kube
