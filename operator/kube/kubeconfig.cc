#include "operator/kube/kubeconfig.h"

#include <charconv>
#include <optional>

#include "operator/kube/base64.h"
#include "operator/kube/file.h"
#include "operator/kube/yaml.h"

namespace ringmaster::kube {
namespace {

namespace fs = std::filesystem;

Error Invalid(const std::string& what) { return Error{ErrorCode::kInvalid, 0, "", what}; }

std::string Named(const fs::path& file, const std::string& what) {
  return "kubeconfig " + file.string() + ": " + what;
}

tl::unexpected<Error> Bad(const fs::path& file, const std::string& what) {
  return tl::unexpected(Invalid(Named(file, what)));
}

std::string CantBeRead(const fs::path& file, const std::error_code& why) {
  return "can't read " + file.string() + ": " + why.message();
}

// A value for an error message; invalid UTF-8 is replaced.
std::string Shown(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// One entry of a list ("clusters", ...), or a part of one. It keeps the first error only, because
// that error may cause the later ones.
class Entry {
 public:
  Entry(fs::path file, std::string where, Json object)
      : file_(std::move(file)), where_(std::move(where)), object_(std::move(object)) {
    if (object_.is_null()) object_ = Json::object();
    if (!object_.is_object()) {
      Wrong("", "must be a map");
      object_ = Json::object();
    }
  }

  const std::string& problem() const { return problem_; }
  bool Has(const char* key) const { return object_.contains(key) && !object_[key].is_null(); }
  void Wrong(const std::string& key, const std::string& what) {
    std::string field = where_ + (where_.empty() || key.empty() ? "" : ".") + key;
    if (problem_.empty()) problem_ = Named(file_, field + ": " + what);
  }
  void Adopt(const Entry& part) {
    if (problem_.empty()) problem_ = part.problem_;
  }

  std::string Text(const char* key) {
    if (!Has(key)) return "";
    if (object_[key].is_string()) return object_[key];
    Wrong(key, "must be a string, not " + Shown(object_[key]));
    return "";
  }
  bool Flag(const char* key) {
    if (!Has(key)) return false;
    if (object_[key].is_boolean()) return object_[key];
    Wrong(key, "must be true or false, not " + Shown(object_[key]));
    return false;
  }
  Json List(const char* key) {
    if (!Has(key)) return Json::array();
    if (object_[key].is_array()) return object_[key];
    Wrong(key, "must be a list");
    return Json::array();
  }
  Entry Part(const char* key) const {
    return Entry(file_, where_ + "." + key, object_.value(key, Json()));
  }
  // Paths are relative to the file that names them.
  fs::path Path(const std::string& text) const { return file_.parent_path() / text; }

  // Returns `key`-data (base64), or the content of the file named by `key`; in that case `path` is
  // set.
  std::string DataOrFile(const std::string& key, fs::path* path) {
    if (std::string data = Text((key + "-data").c_str()); !data.empty()) {
      auto bytes = DecodeBase64(data);
      if (!bytes) Wrong(key + "-data", "is not base64");
      return bytes.value_or("");
    }
    std::string name = Text(key.c_str());
    if (name.empty()) return "";
    *path = Path(name);
    auto bytes = ReadFile(*path);
    if (!bytes) Wrong(key, CantBeRead(*path, bytes.error()));
    return bytes.value_or("");
  }

 private:
  fs::path file_;
  std::string where_;  // cluster "a"
  Json object_;
  std::string problem_;
};

std::optional<int> ParsePort(const std::string& text) {
  int port = 0;
  const char* end = text.data() + text.size();
  const char* stopped = std::from_chars(text.data(), end, port).ptr;
  if (stopped != end || port < 1 || port > 65535) return std::nullopt;  // 0 if it is not a number
  return port;
}

void ReadServer(Entry& cluster, ClientConfig& config) {
  const std::string url = cluster.Text("server");
  if (url.empty()) return cluster.Wrong("server", "is missing");
  std::string rest;
  if (url.starts_with("https://")) {
    rest = url.substr(8);
  } else if (url.starts_with("http://")) {
    rest = url.substr(7);
    config.tls = false;
    config.port = 80;
  } else {
    return cluster.Wrong("server", "\"" + url + "\" must begin with https://");
  }
  size_t slash = rest.find('/');
  if (slash != std::string::npos) config.path_prefix = rest.substr(slash);
  while (config.path_prefix.ends_with('/')) config.path_prefix.pop_back();
  rest = rest.substr(0, slash);
  size_t colon = rest.rfind(':');
  if (colon != std::string::npos && rest.find(']', colon) == std::string::npos) {
    const auto port = ParsePort(rest.substr(colon + 1));
    if (!port) cluster.Wrong("server", "\"" + url + "\" has no valid port: allowed are 1 to 65535");
    config.port = port.value_or(0);
    rest = rest.substr(0, colon);
  }
  if (rest.starts_with('[') && rest.ends_with(']')) rest = rest.substr(1, rest.size() - 2);
  config.host = rest;
  if (rest.empty()) cluster.Wrong("server", "\"" + url + "\" names no host");
  if (!config.tls && rest != "127.0.0.1" && rest != "localhost" && rest != "::1") {
    cluster.Wrong("server", "\"" + url + "\" is not encrypted; use https");
  }
}

void ReadCluster(Entry& cluster, ClientConfig& config) {
  ReadServer(cluster, config);
  if (cluster.Flag("insecure-skip-tls-verify")) {
    cluster.Wrong("insecure-skip-tls-verify",
                  "is not supported: name the authority that signed the server's certificate in "
                  "certificate-authority-data");
  }
  if (!cluster.Text("proxy-url").empty()) {
    cluster.Wrong("proxy-url",
                  "proxies are not supported: name a server that can be reached directly");
  }
  config.ca_pem = cluster.DataOrFile("certificate-authority", &config.ca_file);
  config.tls_server_name = cluster.Text("tls-server-name");
}

// Builds spec.cluster of KUBERNETES_EXEC_INFO.
Json ClusterInfo(Entry& cluster, const ClientConfig& config) {
  Json info = {{"server", cluster.Text("server")}};
  if (!config.tls_server_name.empty()) info["tls-server-name"] = config.tls_server_name;
  if (!config.ca_pem.empty()) info["certificate-authority-data"] = EncodeBase64(config.ca_pem);
  for (const Json& extension : cluster.List("extensions")) {
    if (extension.contains("extension") &&
        extension.value("name", Json()) == "client.authentication.k8s.io/exec") {
      info["config"] = extension["extension"];
    }
  }
  return info;
}

void ReadExec(Entry& exec, Entry& cluster, ClientConfig& config) {
  ExecPlugin& plugin = config.exec;
  plugin.command = exec.Text("command");
  if (plugin.command.empty()) exec.Wrong("command", "is missing");
  if (plugin.command.find('/') != std::string::npos) {
    plugin.command = exec.Path(plugin.command).string();
  }
  plugin.api_version = exec.Text("apiVersion");
  if (plugin.api_version != "client.authentication.k8s.io/v1" &&
      plugin.api_version != "client.authentication.k8s.io/v1beta1") {
    exec.Wrong("apiVersion", "\"" + plugin.api_version +
                                 "\" is not supported; client.authentication.k8s.io/v1 and "
                                 "client.authentication.k8s.io/v1beta1 are");
  }
  const std::string mode = exec.Text("interactiveMode");
  if (mode == "Always") {
    exec.Wrong("interactiveMode",
               "\"Always\": the plugin needs a terminal, and there is none here; use a service "
               "account's token, or a plugin that needs nobody");
  } else if (!mode.empty() && mode != "Never" && mode != "IfAvailable") {
    exec.Wrong("interactiveMode", "\"" + mode + "\" must be Never, IfAvailable or Always");
  }
  plugin.install_hint = exec.Text("installHint");
  for (const Json& arg : exec.List("args")) {
    if (!arg.is_string()) exec.Wrong("args", Shown(arg) + " must be a string: quote it");
    plugin.args.push_back(arg.is_string() ? arg.get<std::string>() : "");
  }
  for (const Json& item : exec.List("env")) {
    bool good = item.contains("name") && item["name"].is_string() && item.contains("value") &&
                item["value"].is_string();
    if (!good) {
      exec.Wrong("env", Shown(item) + " must have a name and a value, both strings");
      continue;
    }
    plugin.env[item["name"]] = item["value"];
  }
  if (exec.Flag("provideClusterInfo")) plugin.cluster = ClusterInfo(cluster, config);
}

void ReadUser(Entry& user, Entry& cluster, ClientConfig& config) {
  config.client_cert_pem = user.DataOrFile("client-certificate", &config.client_cert_file);
  config.client_key_pem = user.DataOrFile("client-key", &config.client_key_file);
  if (config.client_cert_pem.empty() != config.client_key_pem.empty()) {
    bool cert = config.client_key_pem.empty();
    user.Wrong(
        cert ? "client-key" : "client-certificate",
        std::string("is missing: there is a ") + (cert ? "client-certificate" : "client-key"));
  }
  // The pair can be read again only if both are files.
  if (config.client_cert_file.empty() || config.client_key_file.empty()) {
    config.client_cert_file.clear();
    config.client_key_file.clear();
  }
  config.token = user.Text("token");
  if (std::string path = user.Text("tokenFile"); !path.empty()) config.token_file = user.Path(path);
  for (const char* key : {"username", "password"}) {
    if (user.Has(key)) user.Wrong(key, "API servers take no passwords: use a token or certificate");
  }
  for (const char* key : {"as", "as-uid", "as-groups", "as-user-extra"}) {
    if (user.Has(key)) user.Wrong(key, "acting as another user is not supported");
  }
  if (user.Has("auth-provider")) {
    user.Wrong("auth-provider", "is no longer part of Kubernetes: use an exec plugin");
  }
  if (!user.Has("exec")) return;
  Entry exec = user.Part("exec");
  ReadExec(exec, cluster, config);
  user.Adopt(exec);
}

// The entries of all files; the first one of each name counts.
struct Merged {
  std::map<std::string, std::map<std::string, std::pair<fs::path, Json>>> lists;
  std::string current_context;
  bool empty = true;
  fs::path first;  // named in errors that concern no particular file

  Result<void> Add(const fs::path& file, const std::string& text) {
    auto documents = YamlToJson(text);
    if (!documents) return Bad(file, documents.error());
    if (documents->empty()) return {};
    empty = false;
    const Json& config = documents->front();
    if (!config.is_object()) return Bad(file, "is not a kubeconfig");
    Entry top(file, "", config);
    if (current_context.empty()) current_context = top.Text("current-context");
    for (auto [list, field] : {std::pair{"clusters", "cluster"}, std::pair{"users", "user"},
                               std::pair{"contexts", "context"}}) {
      for (const Json& item : top.List(list)) {
        if (!item.contains("name") || !item["name"].is_string())
          return Bad(file, std::string(list) + ": an entry has no name");
        lists[list].try_emplace(item["name"], file, item.value(field, Json()));
      }
    }
    if (!top.problem().empty()) return tl::unexpected(Invalid(top.problem()));
    return {};
  }

  Result<Entry> Find(const char* list, const char* word, const std::string& name,
                     const fs::path& asked_by) const {
    auto entries = lists.find(list);
    if (entries != lists.end()) {
      if (auto it = entries->second.find(name); it != entries->second.end()) {
        return Entry(it->second.first, std::string(word) + " \"" + name + "\"", it->second.second);
      }
    }
    std::string there;
    if (entries != lists.end()) {
      for (const auto& [other, entry] : entries->second) there += " \"" + other + "\"";
    }
    return Bad(asked_by, std::string("has no ") + word + " \"" + name + "\"; it has" +
                             (there.empty() ? " none" : there));
  }
};

Result<ClientConfig> Resolve(const Merged& merged, const std::string& wanted_context) {
  const std::string& name = wanted_context.empty() ? merged.current_context : wanted_context;
  if (name.empty()) return Bad(merged.first, "has no current-context");
  auto context = merged.Find("contexts", "context", name, merged.first);
  if (!context) return tl::unexpected(context.error());
  const std::string cluster_name = context->Text("cluster");
  if (cluster_name.empty()) context->Wrong("cluster", "is missing");
  if (!context->problem().empty()) return tl::unexpected(Invalid(context->problem()));
  auto cluster = merged.Find("clusters", "cluster", cluster_name, merged.first);
  if (!cluster) return tl::unexpected(cluster.error());
  ClientConfig config;
  ReadCluster(*cluster, config);
  if (std::string user_name = context->Text("user"); !user_name.empty()) {
    auto user = merged.Find("users", "user", user_name, merged.first);
    if (!user) return tl::unexpected(user.error());
    ReadUser(*user, *cluster, config);
    cluster->Adopt(*user);
  }
  if (std::string ns = context->Text("namespace"); !ns.empty()) config.default_namespace = ns;
  context->Adopt(*cluster);
  if (!context->problem().empty()) return tl::unexpected(Invalid(context->problem()));
  return config;
}

}  // namespace

std::vector<fs::path> SplitPathList(const std::string& list) {
  std::vector<fs::path> paths;
  size_t begin = 0;
  while (begin < list.size()) {
    size_t end = std::min(list.find(':', begin), list.size());
    if (end > begin) paths.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return paths;
}

Result<ClientConfig> LoadKubeconfig(const fs::path& file, const std::string& wanted_context) {
  return LoadKubeconfigs({file}, wanted_context);
}

Result<ClientConfig> LoadKubeconfigs(const std::vector<fs::path>& files,
                                     const std::string& wanted_context) {
  Merged merged;
  bool any = false;
  for (const fs::path& file : files) {
    auto text = ReadFile(file);
    if (merged.first.empty()) merged.first = file;
    if (!text && text.error() == std::errc::no_such_file_or_directory) continue;
    if (!text) return Bad(file, "can't be read: " + text.error().message());
    if (!any) merged.first = file;
    any = true;
    if (auto ok = merged.Add(file, *text); !ok) return tl::unexpected(ok.error());
  }
  if (files.empty()) return tl::unexpected(Invalid("no kubeconfig is named"));
  if (!any) return Bad(merged.first, "there is no such file");
  if (merged.empty) return Bad(merged.first, "is empty");
  return Resolve(merged, wanted_context);
}

Result<ClientConfig> InClusterConfig(const fs::path& dir, const std::string& host,
                                     const std::string& port) {
  auto bad = [](const std::string& what) {
    return tl::unexpected(Invalid("in-cluster configuration: " + what));
  };
  const auto number = ParsePort(port);
  if (host.empty() || !number) {
    return bad("KUBERNETES_SERVICE_HOST (\"" + host + "\") and KUBERNETES_SERVICE_PORT (\"" + port +
               "\") must name a host and a port, as they do in every pod");
  }
  ClientConfig config;
  config.host = host;
  config.port = *number;
  config.ca_file = dir / "ca.crt";
  auto ca = ReadFile(config.ca_file);
  if (!ca) return bad(CantBeRead(config.ca_file, ca.error()));
  config.ca_pem = *ca;
  config.token_file = dir / "token";
  if (auto token = ReadFile(config.token_file); !token) {
    return bad(CantBeRead(config.token_file, token.error()) +
               ": does the pod say automountServiceAccountToken: false?");
  }
  if (auto ns = ReadFile(dir / "namespace")) {
    config.default_namespace = ns->substr(0, ns->find_last_not_of(" \n") + 1);
  }
  return config;
}

}  // namespace ringmaster::kube
