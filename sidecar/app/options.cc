#include "sidecar/app/options.h"

#include <charconv>

namespace ringmaster::app {
namespace {

using Lookup = std::function<std::string(const std::string& name)>;

constexpr size_t kMaxSocketPath = 107;
constexpr int kYearSeconds = 366 * 24 * 3600;  // what the CRD allows

// Reads variables until the first that is wrong.
class EnvironmentReader {
 public:
  explicit EnvironmentReader(const Lookup& lookup) : lookup_(lookup) {}

  std::string Text(const char* name, const std::string& fallback = "") {
    std::string value = lookup_(name);
    return value.empty() ? fallback : value;
  }

  std::string Required(const char* name) {
    std::string value = lookup_(name);
    if (value.empty()) Fail(std::string(name) + " is not set");
    return value;
  }

  int Int(const char* name, int low, int high, int fallback) {
    std::string text = lookup_(name);
    if (text.empty()) return fallback;
    int value = 0;
    auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code != std::errc() || end != text.data() + text.size() || value < low || value > high) {
      Fail(std::string(name) + " is '" + text + "', an integer from " + std::to_string(low) +
           " to " + std::to_string(high) + " is expected");
    }
    return value;
  }

  void Fail(std::string error) {
    if (error_.empty()) error_ = std::move(error);
  }
  const std::string& error() const { return error_; }

 private:
  const Lookup& lookup_;
  std::string error_;
};

bool IsLoopback(const std::string& host) {
  return host.rfind("127.", 0) == 0 || host == "::1" || host == "[::1]" || host == "localhost";
}

// On a loopback address without TLS the sidecars of a machine meet at a unix socket in the state
// directory, not at a port: only a user who may enter that directory (in local mode the one whose
// run it is) can speak to them.
void ChooseRendezvous(SidecarOptions* options, EnvironmentReader* read) {
  if (!options->tls_dir.empty() || !IsLoopback(options->bind)) return;
  if (options->rendezvous_port != 0) return;
  options->rendezvous_socket = options->state_dir + "/peer";
  if (options->state_dir.empty() || options->state_dir.front() != '/') {
    read->Fail("RINGMASTER_STATE_DIR is '" + options->state_dir +
               "', an absolute path is expected");
  }
  if (options->rendezvous_socket.size() > kMaxSocketPath) {
    read->Fail("RINGMASTER_STATE_DIR has " + std::to_string(options->state_dir.size()) +
               " bytes, at most 102 are allowed for a socket in it: " + options->state_dir);
  }
}

// Without TLS any peer that reaches a port of ours may send anything: only this machine may.
void RequireTls(const SidecarOptions& options, EnvironmentReader* read) {
  if (!options.tls_dir.empty() || read->Text("RINGMASTER_INSECURE") == "1") return;
  const std::string& target = options.operator_target;
  const bool local_operator = target.empty() || target.rfind("unix:", 0) == 0 ||
                              IsLoopback(target.substr(0, target.rfind(':')));
  if (local_operator && IsLoopback(options.bind)) return;
  const std::string where =
      local_operator ? "listening on " + options.bind : "RINGMASTER_OPERATOR is '" + target + "'";
  read->Fail(
      "RINGMASTER_TLS_DIR is not set, and " + where +
      ": without TLS only loopback and unix sockets are allowed (RINGMASTER_INSECURE=1 lifts "
      "this, in a network that nobody else can reach)");
}

}  // namespace

tl::expected<SidecarOptions, std::string> ParseSidecarOptions(const Lookup& lookup) {
  EnvironmentReader read(lookup);
  SidecarOptions options;
  options.job_namespace = read.Text("RINGMASTER_JOB_NAMESPACE", "default");
  options.job_name = read.Required("RINGMASTER_JOB_NAME");
  options.job_uid = read.Required("RINGMASTER_JOB_UID");
  options.pod_name = read.Required("RINGMASTER_POD_NAME");
  options.pod_uid = read.Required("RINGMASTER_POD_UID");
  options.node = read.Text("RINGMASTER_NODE_NAME");
  options.zone = read.Text("RINGMASTER_ZONE");
  options.operator_target = read.Text("RINGMASTER_OPERATOR");
  options.state_dir = read.Required("RINGMASTER_STATE_DIR");
  options.socket = read.Required("RINGMASTER_SOCKET");
  if (options.socket.size() > kMaxSocketPath) {
    read.Fail("RINGMASTER_SOCKET has " + std::to_string(options.socket.size()) +
              " bytes, at most 107 are allowed: " + options.socket);
  }
  const std::string pod_ip = read.Text("RINGMASTER_POD_IP");
  options.bind = read.Text("RINGMASTER_BIND", pod_ip.empty() ? "127.0.0.1" : pod_ip);
  const bool wildcard = options.bind == "0.0.0.0" || options.bind == "::";
  options.advertise = wildcard ? pod_ip : options.bind;
  if (options.advertise.empty()) {
    read.Fail("RINGMASTER_BIND is '" + options.bind +
              "': RINGMASTER_POD_IP has to say how others reach it");
  }
  options.tls_dir = read.Text("RINGMASTER_TLS_DIR");
  options.ring_key_file = read.Text("RINGMASTER_RING_KEY_FILE");
  RequireTls(options, &read);
  options.rendezvous_port = read.Int("RINGMASTER_RENDEZVOUS_PORT", 0, 65535, 0);
  options.heartbeat_port = read.Int("RINGMASTER_HEARTBEAT_PORT", 0, 65535, 0);
  options.http_port = read.Int("RINGMASTER_HTTP_PORT", 0, 65535, 0);
  ChooseRendezvous(&options, &read);
  options.slots = read.Int("RINGMASTER_SLOTS", 1, 1024, 1);
  options.init_timeout =
      std::chrono::seconds(read.Int("RINGMASTER_INIT_TIMEOUT_SECONDS", 1, kYearSeconds, 600));
  options.grace = std::chrono::seconds(read.Int("RINGMASTER_GRACE_SECONDS", 0, 1 << 20, 30));
  options.stopped_worker =
      std::chrono::seconds(read.Int("RINGMASTER_STOPPED_WORKER_SECONDS", 1, 3600, 1));
  options.log_format = read.Text("RINGMASTER_LOG_FORMAT", "text");
  options.log_level = read.Text("RINGMASTER_LOG_LEVEL", "info");
  if (!read.error().empty()) return tl::unexpected(read.error());
  return options;
}

}  // namespace ringmaster::app
