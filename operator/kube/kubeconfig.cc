#include "operator/kube/kubeconfig.h"

#include <fstream>
#include <optional>

#include "operator/kube/base64.h"
#include "operator/kube/yaml.h"

namespace ringmaster::kube {
namespace {

namespace fs = std::filesystem;

tl::unexpected<Error> Bad(const fs::path& file, const std::string& what) {
  return tl::unexpected(
      Error{ErrorCode::kInvalid, 0, "", "kubeconfig " + file.string() + ": " + what});
}

std::optional<std::string> ReadFile(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(in), {});
}

std::string Text(const Json& object, const char* key) {
  if (!object.is_object() || !object.contains(key) || !object[key].is_string()) return "";
  return object[key];
}

// The entry called `name` of a kubeconfig list ("clusters", ...); null when there is none.
Json Entry(const Json& config, const char* list, const char* field, const std::string& name) {
  const Json entries = config.value(list, Json::array());
  for (const Json& entry : entries) {
    if (Text(entry, "name") == name) return entry.value(field, Json::object());
  }
  return nullptr;
}

struct Reader {
  fs::path file;
  fs::path dir;  // paths in the file are relative to it

  fs::path Path(const std::string& text) const {
    return fs::path(text).is_absolute() ? fs::path(text) : dir / text;
  }

  // `key`-data (base64) or the file named by `key`.
  Result<std::string> DataOrFile(const Json& object, const std::string& key,
                                 const std::string& where) const {
    if (std::string data = Text(object, (key + "-data").c_str()); !data.empty()) {
      auto bytes = DecodeBase64(data);
      if (!bytes) return Bad(file, where + "." + key + "-data is not base64");
      return *bytes;
    }
    std::string path = Text(object, key.c_str());
    if (path.empty()) return std::string();
    auto bytes = ReadFile(Path(path));
    if (!bytes) return Bad(file, where + "." + key + ": can't read " + Path(path).string());
    return *bytes;
  }

  Result<void> Server(const std::string& url, const std::string& where,
                      ClientConfig& config) const {
    std::string rest;
    if (url.starts_with("https://")) {
      rest = url.substr(8);
    } else if (url.starts_with("http://")) {
      rest = url.substr(7);
      config.tls = false;
      config.port = 80;
    } else {
      return Bad(file, where + ".server: \"" + url + "\" must begin with https://");
    }
    size_t slash = rest.find('/');
    if (slash != std::string::npos) config.path_prefix = rest.substr(slash);
    while (config.path_prefix.ends_with('/')) config.path_prefix.pop_back();
    rest = rest.substr(0, slash);
    size_t colon = rest.rfind(':');
    if (colon != std::string::npos && rest.find(']', colon) == std::string::npos) {
      std::string digits = rest.substr(colon + 1);
      if (digits.empty() || digits.size() > 5 ||
          digits.find_first_not_of("0123456789") != std::string::npos) {
        return Bad(file, where + ".server: \"" + url + "\" has no valid port");
      }
      config.port = std::stoi(digits);
      rest = rest.substr(0, colon);
    }
    if (rest.size() > 2 && rest.front() == '[') rest = rest.substr(1, rest.size() - 2);
    config.host = rest;
    if (!config.tls && rest != "127.0.0.1" && rest != "localhost" && rest != "::1") {
      return Bad(file, where + ".server: \"" + url + "\" is not encrypted; use https");
    }
    return {};
  }

  Result<void> User(const Json& user, const std::string& where, ClientConfig& config) const {
    auto cert = DataOrFile(user, "client-certificate", where);
    if (!cert) return tl::unexpected(cert.error());
    auto key = DataOrFile(user, "client-key", where);
    if (!key) return tl::unexpected(key.error());
    config.client_cert_pem = *cert;
    config.client_key_pem = *key;
    config.token = Text(user, "token");
    if (std::string path = Text(user, "tokenFile"); !path.empty()) config.token_file = Path(path);
    const Json exec = user.value("exec", Json());
    if (!exec.is_object()) return {};
    config.exec.command = Text(exec, "command");
    if (config.exec.command.empty()) return Bad(file, where + ".exec.command is missing");
    if (config.exec.command.find('/') != std::string::npos) {
      config.exec.command = Path(config.exec.command).string();
    }
    config.exec.api_version = Text(exec, "apiVersion");
    config.exec.install_hint = Text(exec, "installHint");
    const Json args = exec.value("args", Json()), env = exec.value("env", Json());
    for (const Json& arg : args)
      config.exec.args.push_back(arg.is_string() ? arg.get<std::string>() : arg.dump());
    for (const Json& item : env) config.exec.env[Text(item, "name")] = Text(item, "value");
    return {};
  }
};

}  // namespace

Result<ClientConfig> LoadKubeconfig(const fs::path& file, const std::string& wanted_context) {
  auto text = ReadFile(file);
  if (!text) return Bad(file, "can't be read");
  auto documents = YamlToJson(*text);
  if (!documents) return Bad(file, documents.error());
  if (documents->empty() || !documents->front().is_object()) return Bad(file, "is empty");
  const Json& config = documents->front();
  std::string name = wanted_context.empty() ? Text(config, "current-context") : wanted_context;
  if (name.empty()) return Bad(file, "has no current-context");
  try {
    Json context = Entry(config, "contexts", "context", name);
    if (context.is_null()) return Bad(file, "has no context \"" + name + "\"");
    std::string cluster_name = Text(context, "cluster"), user_name = Text(context, "user");
    Json cluster = Entry(config, "clusters", "cluster", cluster_name);
    if (cluster.is_null()) return Bad(file, "has no cluster \"" + cluster_name + "\"");
    Json user = Entry(config, "users", "user", user_name);
    if (user.is_null() && !user_name.empty()) return Bad(file, "has no user \"" + user_name + "\"");

    Reader reader{file, fs::absolute(file).parent_path()};
    ClientConfig result;
    std::string where = "cluster \"" + cluster_name + "\"";
    if (auto ok = reader.Server(Text(cluster, "server"), where, result); !ok)
      return tl::unexpected(ok.error());
    if (cluster.value("insecure-skip-tls-verify", false)) {
      return Bad(file, where +
                           ".insecure-skip-tls-verify is not supported: name the authority that "
                           "signed the server's certificate in certificate-authority-data");
    }
    auto ca = reader.DataOrFile(cluster, "certificate-authority", where);
    if (!ca) return tl::unexpected(ca.error());
    result.ca_pem = *ca;
    result.tls_server_name = Text(cluster, "tls-server-name");
    if (user.is_object()) {
      if (auto ok = reader.User(user, "user \"" + user_name + "\"", result); !ok)
        return tl::unexpected(ok.error());
    }
    if (std::string ns = Text(context, "namespace"); !ns.empty()) result.default_namespace = ns;
    return result;
  } catch (const Json::exception& e) {
    return Bad(file, std::string("is not a kubeconfig: ") + e.what());
  }
}

Result<ClientConfig> InClusterConfig(const fs::path& dir, const std::string& host,
                                     const std::string& port) {
  auto bad = [](const std::string& what) {
    return tl::unexpected(Error{ErrorCode::kInvalid, 0, "", "in-cluster configuration: " + what});
  };
  if (host.empty() || port.empty() || port.find_first_not_of("0123456789") != std::string::npos) {
    return bad(
        "KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be set, as they are in every "
        "pod");
  }
  ClientConfig config;
  config.host = host;
  config.port = std::stoi(port);
  auto ca = ReadFile(dir / "ca.crt");
  if (!ca) return bad("can't read " + (dir / "ca.crt").string());
  config.ca_pem = *ca;
  config.token_file = dir / "token";
  if (!ReadFile(config.token_file)) return bad("can't read " + config.token_file.string());
  if (auto ns = ReadFile(dir / "namespace")) config.default_namespace = *ns;
  return config;
}

}  // namespace ringmaster::kube
