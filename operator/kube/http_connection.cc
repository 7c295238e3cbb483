#include "operator/kube/http_connection.h"

#include <httplib.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "operator/kube/errors.h"

namespace ringmaster::kube {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

struct Free {
  void operator()(BIO* p) const { BIO_free(p); }
  void operator()(X509* p) const { X509_free(p); }
  void operator()(EVP_PKEY* p) const { EVP_PKEY_free(p); }
  void operator()(X509_STORE* p) const { X509_STORE_free(p); }
};
template <class T>
using Owned = std::unique_ptr<T, Free>;

Owned<BIO> Memory(const std::string& text) {
  return Owned<BIO>(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

Owned<X509> ReadCertificate(const std::string& pem) {
  return Owned<X509>(PEM_read_bio_X509(Memory(pem).get(), nullptr, nullptr, nullptr));
}

Owned<EVP_PKEY> ReadKey(const std::string& pem) {
  return Owned<EVP_PKEY>(PEM_read_bio_PrivateKey(Memory(pem).get(), nullptr, nullptr, nullptr));
}

// Null when the text has no certificate.
Owned<X509_STORE> ReadAuthorities(const std::string& pem) {
  Owned<X509_STORE> store(X509_STORE_new());
  Owned<BIO> in = Memory(pem);
  int found = 0;
  while (Owned<X509> cert{PEM_read_bio_X509(in.get(), nullptr, nullptr, nullptr)}) {
    X509_STORE_add_cert(store.get(), cert.get());
    ++found;
  }
  return found > 0 ? std::move(store) : nullptr;
}

std::string Server(const ClientConfig& config) {
  return (config.tls ? "https://" : "http://") + config.host + ":" + std::to_string(config.port);
}

std::string Explain(httplib::Error error, const ClientConfig& config) {
  std::string server = Server(config);
  switch (error) {
    case httplib::Error::Connection:
      return "can't connect to " + server;
    case httplib::Error::SSLConnection:
      return "the TLS handshake with " + server + " failed";
    case httplib::Error::SSLServerVerification:
      return "the certificate of " + server +
             " can't be trusted: it is not for this host, or not signed by the configured "
             "authority";
    case httplib::Error::SSLLoadingCerts:
      return "the certificate authority for " + server + " can't be loaded";
    case httplib::Error::Read:
      return server + " gave no (complete) answer in time, or closed the connection";
    case httplib::Error::Write:
      return "the connection to " + server + " broke while sending";
    default:
      return server + ": " + httplib::to_string(error);
  }
}

tl::unexpected<Error> Fail(ErrorCode code, const std::string& message) {
  return tl::unexpected(Error{code, 0, "", message});
}

void Configure(httplib::ClientImpl& client, const ClientConfig& config) {
  client.set_keep_alive(true);
  client.set_tcp_nodelay(true);
  client.set_url_encode(false);
  client.set_follow_location(false);
  if (!config.tls_server_name.empty()) {
    client.set_hostname_addr_map({{config.tls_server_name, config.host}});
  }
}

httplib::Request MakeRequest(const HttpRequest& request, const Credential& credential,
                             const ClientConfig& config) {
  httplib::Request out;
  out.method = request.method;
  out.path = config.path_prefix + request.path;
  out.body = request.body;
  out.headers = {{"Accept", request.accept}, {"User-Agent", config.user_agent}};
  if (!request.body.empty()) out.headers.emplace("Content-Type", request.content_type);
  if (!credential.token.empty()) out.headers.emplace("Authorization", "Bearer " + credential.token);
  return out;
}

HttpResponse Answer(const httplib::Response& response, std::string body) {
  HttpResponse answer{response.status, std::move(body)};
  std::string after = response.get_header_value("Retry-After");
  if (!after.empty() && after.find_first_not_of("0123456789") == std::string::npos &&
      after.size() < 6) {
    answer.retry_after = std::chrono::seconds(std::stoi(after));
  }
  return answer;
}

}  // namespace

struct HttpConnections::Connection {
  std::unique_ptr<httplib::ClientImpl> client;
  std::string client_cert_pem;  // that it was made with
  bool used = false;
};

Result<std::unique_ptr<HttpConnections>> HttpConnections::Make(const ClientConfig& config) {
  if (config.tls && !config.ca_pem.empty() && !ReadAuthorities(config.ca_pem)) {
    return Fail(ErrorCode::kInvalid,
                "the certificate authority for " + Server(config) + " is not a PEM certificate");
  }
  if (!config.client_cert_pem.empty()) {
    if (!ReadCertificate(config.client_cert_pem)) {
      return Fail(ErrorCode::kInvalid,
                  "the client certificate for " + Server(config) + " is not PEM");
    }
    if (!ReadKey(config.client_key_pem)) {
      return Fail(ErrorCode::kInvalid, "the client key for " + Server(config) + " is not PEM");
    }
  }
  return std::unique_ptr<HttpConnections>(new HttpConnections(config));
}

HttpConnections::HttpConnections(const ClientConfig& config) : config_(config) {}
HttpConnections::~HttpConnections() = default;

Result<std::unique_ptr<HttpConnections::Connection>> HttpConnections::Take(
    const Credential& credential, bool fresh) {
  if (!fresh) {
    std::lock_guard lock(mu_);
    while (!idle_.empty()) {
      auto connection = std::move(idle_.back());
      idle_.pop_back();
      if (connection->client_cert_pem == credential.client_cert_pem) return connection;
    }
  }
  auto connection = std::make_unique<Connection>();
  connection->client_cert_pem = credential.client_cert_pem;
  const std::string& host =
      config_.tls_server_name.empty() ? config_.host : config_.tls_server_name;
  if (!config_.tls) {
    connection->client = std::make_unique<httplib::ClientImpl>(host, config_.port);
    Configure(*connection->client, config_);
    return connection;
  }
  std::unique_ptr<httplib::SSLClient> client;
  if (credential.client_cert_pem.empty()) {
    client = std::make_unique<httplib::SSLClient>(host, config_.port);
  } else {
    Owned<X509> cert = ReadCertificate(credential.client_cert_pem);
    Owned<EVP_PKEY> key = ReadKey(credential.client_key_pem);
    if (!cert || !key)
      return Fail(ErrorCode::kForbidden, "the client certificate or key is not PEM");
    client = std::make_unique<httplib::SSLClient>(host, config_.port, cert.get(), key.get());
  }
  client->enable_server_certificate_verification(true);
  if (!config_.ca_pem.empty()) client->set_ca_cert_store(ReadAuthorities(config_.ca_pem).release());
  connection->client = std::move(client);
  Configure(*connection->client, config_);
  return connection;
}

void HttpConnections::Return(std::unique_ptr<Connection> connection) {
  constexpr size_t kKept = 16;
  connection->used = true;
  std::lock_guard lock(mu_);
  if (idle_.size() < kKept) idle_.push_back(std::move(connection));
}

Result<HttpResponse> HttpConnections::Send(const HttpRequest& request,
                                           const Credential& credential) {
  auto deadline = Clock::now() + request.deadline;
  for (bool again = false;; again = true) {
    auto connection = Take(credential, again);
    if (!connection) return tl::unexpected(connection.error());
    httplib::ClientImpl& client = *(*connection)->client;
    auto left = std::max(milliseconds(1),
                         std::chrono::duration_cast<milliseconds>(deadline - Clock::now()));
    client.set_connection_timeout(left);
    client.set_read_timeout(left);
    client.set_write_timeout(left);
    httplib::Request out = MakeRequest(request, credential, config_);
    std::string body;
    // Data that drips would never run into the read timeout.
    out.content_receiver = [&](const char* data, size_t size, uint64_t, uint64_t) {
      body.append(data, size);
      return Clock::now() < deadline;
    };
    httplib::Result result = client.send(out);
    if (result) {
      Return(std::move(*connection));
      return Answer(*result, std::move(body));
    }
    // A kept connection may have been closed by the server just now. Only a read may be sent twice.
    bool stale =
        (*connection)->used && request.method == "GET" && body.empty() && Clock::now() < deadline;
    if (again || !stale) return Fail(ErrorCode::kUnavailable, Explain(result.error(), config_));
  }
}

Result<HttpResponse> HttpConnections::Stream(const HttpRequest& request,
                                             const Credential& credential,
                                             const std::function<void(int status)>& on_status,
                                             const std::function<bool(std::string_view)>& on_data,
                                             std::stop_token stop) {
  auto connection = Take(credential, true);
  if (!connection) return tl::unexpected(connection.error());
  httplib::ClientImpl& client = *(*connection)->client;
  client.set_connection_timeout(std::min(request.deadline, config_.deadline));
  client.set_write_timeout(std::min(request.deadline, config_.deadline));
  client.set_read_timeout(request.deadline);
  client.set_keep_alive(false);
  httplib::Request out = MakeRequest(request, credential, config_);
  int status = 0;
  bool ended_by_caller = false;
  std::string body;
  // A stop that comes before there is a connection to close is seen here.
  out.response_handler = [&](const httplib::Response& response) {
    status = response.status;
    on_status(status);
    return !stop.stop_requested();
  };
  out.content_receiver = [&](const char* data, size_t size, uint64_t, uint64_t) {
    if (stop.stop_requested()) return false;
    if (status != 200) {
      body.append(data, size);
      return body.size() < (1 << 20);
    }
    ended_by_caller = !on_data({data, size});
    return !ended_by_caller;
  };
  httplib::Result result{nullptr, httplib::Error::Unknown};
  {
    std::stop_callback close(stop, [&client] { client.stop(); });
    result = client.send(out);
  }
  if (stop.stop_requested() || ended_by_caller) return HttpResponse{200, ""};
  if (!result) return Fail(ErrorCode::kUnavailable, Explain(result.error(), config_));
  return Answer(*result, std::move(body));
}

}  // namespace ringmaster::kube
