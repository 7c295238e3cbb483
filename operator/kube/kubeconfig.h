// Where the API server is and which user we are, read from kubeconfig files or from a pod's service
// account.
//
// Thread rule: values and free functions.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <stop_token>
#include <string>
#include <vector>

#include "operator/kube/call_observer.h"
#include "operator/kube/kube_api.h"

namespace ringmaster::kube {

// A program that prints a client.authentication.k8s.io ExecCredential.
struct ExecPlugin {
  std::string command;
  std::vector<std::string> args;
  std::map<std::string, std::string> env;
  std::string api_version;
  std::string install_hint;
  Json cluster;  // cluster information for the plugin (provideClusterInfo); null: none
};

struct ClientConfig {
  std::string host;
  int port = 443;
  bool tls = true;          // false only for an http:// server, which must be on loopback
  std::string path_prefix;  // if the server is behind a proxy: "/k8s/clusters/x"
  std::string tls_server_name;
  std::string ca_pem;             // empty: the system's authorities
  std::filesystem::path ca_file;  // read again for each new connection, in case it has changed
  std::string client_cert_pem;
  std::string client_key_pem;
  std::string token;
  // These files are read again every minute, and after a 401.
  std::filesystem::path client_cert_file, client_key_file;
  std::filesystem::path token_file;
  ExecPlugin exec;  // used when `command` is set
  std::string default_namespace = "default";

  double qps = 50;
  int burst = 100;
  // The limit ends with the first answer that shows API priority and fairness: the server then
  // queues its clients' calls itself, and knows its load better.
  bool server_may_lift_limit = false;
  std::chrono::milliseconds deadline{30'000};
  std::string user_agent = "ringmaster";
  // How the server treats fields that the schema doesn't know: "Strict", "Warn" or "Ignore".
  std::string field_validation = "Warn";
  CallObserver on_call;  // may be empty
  // Receives the server's warnings (deprecated versions, unknown fields) on the calling thread.
  std::function<void(const std::string& asked, const std::string& warning)> on_warning;
  // When requested, calls in progress and later ones end at once with kUnavailable. For a program
  // that ends.
  std::stop_token stop;
};

// `context` empty: the current context. kInvalid: the message names the file and the entry.
Result<ClientConfig> LoadKubeconfig(const std::filesystem::path& file,
                                    const std::string& context = "");

// Merges several files as kubectl does: the first file with an entry of a name, or with a
// current-context, wins. Files that don't exist are ignored, unless none exists.
Result<ClientConfig> LoadKubeconfigs(const std::vector<std::filesystem::path>& files,
                                     const std::string& context = "");

// Splits $KUBECONFIG: paths separated by ':'.
std::vector<std::filesystem::path> SplitPathList(const std::string& list);

// Reads /var/run/secrets/kubernetes.io/serviceaccount. KUBERNETES_SERVICE_HOST and _PORT are passed
// in, because only main() reads the environment. Token and authority are read again because they
// are rotated.
Result<ClientConfig> InClusterConfig(const std::filesystem::path& service_account_dir,
                                     const std::string& host, const std::string& port);

}  // namespace ringmaster::kube
