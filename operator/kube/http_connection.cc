#include "operator/kube/http_connection.h"

#include <httplib.h>
#include <netdb.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <ctime>
#include <string>
#include <vector>

#include "operator/kube/errors.h"
#include "operator/kube/file.h"
#include "operator/kube/tls.h"

namespace ringmaster::kube {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr size_t kKeptConnections = 16;
// API servers close idle connections after 90 s, load balancers before them often after 60 s.
constexpr std::chrono::seconds kKeepIdle{45};
constexpr std::chrono::seconds kLongestRetryAfter{86'400};
constexpr size_t kLongestAnswer = 256u << 20;
constexpr size_t kLongestErrorBody = 1u << 20;

std::string Seconds(milliseconds time) {
  return std::to_string(std::chrono::ceil<std::chrono::seconds>(time).count()) + " s";
}

// Detects a peer that vanished without closing the connection (its machine crashed) within half a
// minute, even on an idle connection.
void NoticeDeadPeers(int fd) {
  int on = 1, idle = 15, interval = 5, count = 3;
  unsigned user_timeout_ms = 30'000;
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &user_timeout_ms, sizeof user_timeout_ms);
}

// The addresses of a host, as text. Empty: its name is not known.
std::vector<std::string> AddressesOf(const std::string& host) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_ADDRCONFIG;
  addrinfo* found = nullptr;
  std::vector<std::string> addresses;
  if (getaddrinfo(host.c_str(), nullptr, &wanted, &found) != 0) return addresses;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    char text[NI_MAXHOST];
    if (getnameinfo(one->ai_addr, one->ai_addrlen, text, sizeof(text), nullptr, 0,
                    NI_NUMERICHOST) == 0)
      addresses.emplace_back(text);
  }
  freeaddrinfo(found);
  return addresses;
}

httplib::Request MakeRequest(const HttpRequest& request, const Credential& credential,
                             const ClientConfig& config) {
  httplib::Request out;
  out.method = request.method;
  out.path = config.path_prefix + request.path;
  out.body = request.body;
  out.headers = {{"Accept", request.accept}, {"User-Agent", config.user_agent}};
  for (const auto& [name, value] : request.headers) out.headers.emplace(name, value);
  if (!request.body.empty()) out.headers.emplace("Content-Type", request.content_type);
  if (!credential.token.empty()) out.headers.emplace("Authorization", "Bearer " + credential.token);
  return out;
}

// Parses seconds, or a date as proxies send it; -1 for anything else.
std::chrono::seconds RetryAfter(const std::string& text) {
  if (text.empty()) return std::chrono::seconds(-1);
  if (text.find_first_not_of("0123456789") == std::string::npos) {
    return text.size() > 5 ? kLongestRetryAfter
                           : std::min(kLongestRetryAfter, std::chrono::seconds(std::stoi(text)));
  }
  std::tm utc{};
  const char* end = strptime(text.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &utc);
  if (end == nullptr || *end != '\0') return std::chrono::seconds(-1);
  const std::chrono::seconds left(timegm(&utc) - std::time(nullptr));
  return std::clamp(left, std::chrono::seconds(0), kLongestRetryAfter);
}

// Parses 299 AGENT "text", with \" and \\ in the text.
std::string WarningText(const std::string& value) {
  size_t at = value.find('"');
  std::string text;
  if (at == std::string::npos) return text;
  for (++at; at < value.size() && value[at] != '"'; ++at) {
    if (value[at] == '\\' && at + 1 < value.size()) ++at;
    text += value[at];
  }
  return text;
}

HttpResponse Answer(const httplib::Response& response, std::string body) {
  HttpResponse answer{response.status,
                      std::move(body),
                      RetryAfter(response.get_header_value("Retry-After")),
                      {},
                      response.has_header("X-Kubernetes-PF-FlowSchema-UID")};
  for (size_t i = 0; i < response.get_header_value_count("Warning"); ++i) {
    std::string text = WarningText(response.get_header_value("Warning", i));
    if (!text.empty()) answer.warnings.push_back(std::move(text));
  }
  return answer;
}

}  // namespace

struct HttpConnections::Connection {
  AbortableSocket socket;
  httplib::SSLClient* tls = nullptr;  // `client` if it is a TLS client, else null
  std::unique_ptr<httplib::ClientImpl> client;
  std::string client_cert_pem;  // the certificate that `client` was made with
  Clock::time_point returned{};
  bool used = false;

  std::string Explain(httplib::Error error, const ClientConfig& config) const {
    std::string server = ServerText(config);
    switch (error) {
      case httplib::Error::Connection:
        return "can't connect to " + server;
      case httplib::Error::SSLConnection:
        return "the TLS handshake with " + server +
               " failed: it doesn't speak TLS 1.2 or newer, or refuses this client's certificate";
      case httplib::Error::SSLServerVerification:
        return ExplainRefusedCertificate(tls ? tls->get_openssl_verify_result() : 0, config,
                                         server);
      case httplib::Error::SSLLoadingCerts:
        return "the certificate authority for " + server + " can't be loaded";
      case httplib::Error::Read:
        return server + " closed the connection without a (complete) answer";
      case httplib::Error::Write:
        return "the connection to " + server + " broke while sending";
      default:
        return server + ": " + httplib::to_string(error);
    }
  }
};

Result<std::unique_ptr<HttpConnections>> HttpConnections::Make(const ClientConfig& config) {
  if (auto ok = CheckTlsConfig(config); !ok) return tl::unexpected(ok.error());
  return std::unique_ptr<HttpConnections>(new HttpConnections(config));
}

HttpConnections::HttpConnections(const ClientConfig& config)
    : config_(config), ca_pem_(config.ca_pem) {}
HttpConnections::~HttpConnections() = default;

// While the file is being replaced it may be unreadable or incomplete: the old text is used until
// then.
std::string HttpConnections::Authorities() {
  const sync::MutexLock lock(&mu_);
  if (!config_.ca_file.empty()) {
    auto text = ReadFile(config_.ca_file);
    if (text && *text != ca_pem_ && HasCertificate(*text)) ca_pem_ = std::move(*text);
  }
  return ca_pem_;
}

Result<std::unique_ptr<HttpConnections::Connection>> HttpConnections::Open(
    const Credential& credential) {
  auto connection = std::make_unique<Connection>();
  connection->client_cert_pem = credential.client_cert_pem;
  if (config_.tls) {
    auto client = MakeTlsClient(config_, Authorities(), credential);
    if (!client) return tl::unexpected(client.error());
    connection->tls = client->get();
    connection->client = std::move(*client);
  } else {
    connection->client = std::make_unique<httplib::ClientImpl>(config_.host, config_.port);
  }
  httplib::ClientImpl& client = *connection->client;
  client.set_keep_alive(true);
  client.set_tcp_nodelay(true);
  client.set_url_encode(false);
  client.set_follow_location(false);
  if (!config_.tls_server_name.empty()) {
    // httplib takes an address here, and no name.
    const auto addresses = AddressesOf(config_.host);
    if (addresses.empty()) {
      return Fail(ErrorCode::kUnavailable,
                  "can't connect to " + ServerText(config_) + ": its name has no address");
    }
    client.set_hostname_addr_map(
        {{config_.tls_server_name, addresses[address_ % addresses.size()]}});
  }
  client.set_socket_options([socket = &connection->socket](socket_t fd) {
    NoticeDeadPeers(fd);
    socket->Use(fd);
  });
  return connection;
}

void HttpConnections::NoteUnreachable(httplib::Error error) {
  if (error == httplib::Error::Connection) ++address_;
}

Result<std::unique_ptr<HttpConnections::Connection>> HttpConnections::Take(
    const Credential& credential, bool fresh) {
  std::vector<std::unique_ptr<Connection>> dropped;  // destroyed, and so closed, outside the lock
  if (!fresh) {
    const sync::MutexLock lock(&mu_);
    while (!idle_.empty()) {
      auto connection = std::move(idle_.back());
      idle_.pop_back();
      bool good = connection->client_cert_pem == credential.client_cert_pem &&
                  Clock::now() - connection->returned < kKeepIdle &&
                  !connection->socket.ClosedByPeer();
      if (good) return connection;
      dropped.push_back(std::move(connection));
    }
  }
  return Open(credential);
}

void HttpConnections::Return(std::unique_ptr<Connection> connection) {
  connection->used = true;
  connection->returned = Clock::now();
  const sync::MutexLock lock(&mu_);
  if (idle_.size() < kKeptConnections) idle_.push_back(std::move(connection));
}

Result<HttpResponse> HttpConnections::Send(const HttpRequest& request,
                                           const Credential& credential) {
  const auto deadline = Clock::now() + request.deadline;
  for (bool again = false;; again = true) {
    auto connection = Take(credential, again);
    if (!connection) return tl::unexpected(connection.error());
    Connection& used = **connection;
    httplib::ClientImpl& client = *used.client;
    auto left = std::max(milliseconds(1),
                         std::chrono::duration_cast<milliseconds>(deadline - Clock::now()));
    client.set_connection_timeout(left);
    client.set_read_timeout(left);
    client.set_write_timeout(left);
    httplib::Request out = MakeRequest(request, credential, config_);
    std::string body;
    bool too_long = false;
    out.content_receiver = [&](const char* data, size_t size, uint64_t, uint64_t) {
      too_long = body.size() + size > kLongestAnswer;
      if (!too_long) body.append(data, size);
      return !too_long;
    };
    httplib::Result result{nullptr, httplib::Error::Unknown};
    {
      ConnectionAborter::Timer timer(aborter_, deadline, used.socket);
      std::stop_callback end(config_.stop, [&used] { used.socket.Abort(); });
      result = client.send(out);
    }
    NoteUnreachable(result.error());
    if (result) {
      HttpResponse answer = Answer(*result, std::move(body));
      if (!used.socket.aborted()) Return(std::move(*connection));
      return answer;
    }
    if (config_.stop.stop_requested())
      return Fail(ErrorCode::kUnavailable, "this client is stopping");
    if (too_long) {
      return Fail(ErrorCode::kInternal, ServerText(config_) + " sent more than " +
                                            std::to_string(kLongestAnswer >> 20) + " MiB");
    }
    if (Clock::now() >= deadline) {
      return Fail(
          ErrorCode::kUnavailable,
          ServerText(config_) + " gave no complete answer within " + Seconds(request.deadline));
    }
    // The server may have closed a kept connection just now. Only a read may be sent twice.
    bool stale = used.used && request.method == "GET" && body.empty();
    if (again || !stale)
      return Fail(ErrorCode::kUnavailable, used.Explain(result.error(), config_));
  }
}

Result<HttpResponse> HttpConnections::Stream(const HttpRequest& request,
                                             const Credential& credential,
                                             const std::function<void(int status)>& on_status,
                                             const std::function<bool(std::string_view)>& on_data,
                                             std::stop_token stop) {
  const auto deadline = Clock::now() + request.deadline;
  auto connection = Open(credential);
  if (!connection) return tl::unexpected(connection.error());
  Connection& used = **connection;
  httplib::ClientImpl& client = *used.client;
  const milliseconds quiet =
      request.quiet.count() > 0 ? std::min(request.quiet, request.deadline) : request.deadline;
  client.set_connection_timeout(std::min(request.deadline, config_.deadline));
  client.set_write_timeout(std::min(request.deadline, config_.deadline));
  client.set_read_timeout(quiet);
  client.set_keep_alive(false);
  httplib::Request out = MakeRequest(request, credential, config_);
  int status = 0;
  bool ended_by_caller = false;
  std::string body;
  // Handles a stop that was requested before there was a connection to abort.
  out.response_handler = [&](const httplib::Response& response) {
    status = response.status;
    on_status(status);
    return !stop.stop_requested();
  };
  auto last_data = Clock::now();
  out.content_receiver = [&](const char* data, size_t size, uint64_t, uint64_t) {
    if (stop.stop_requested()) return false;
    last_data = Clock::now();
    if (status != 200) {
      body.append(data, size);
      return body.size() < kLongestErrorBody;
    }
    ended_by_caller = !on_data({data, size});
    last_data = Clock::now();  // the time that the caller took is no silence
    return !ended_by_caller;
  };
  httplib::Result result{nullptr, httplib::Error::Unknown};
  {
    ConnectionAborter::Timer timer(aborter_, deadline, used.socket);
    std::stop_callback end(stop, [&used] { used.socket.Abort(); });
    std::stop_callback end_client(config_.stop, [&used] { used.socket.Abort(); });
    result = client.send(out);
  }
  NoteUnreachable(result.error());
  if (stop.stop_requested() || ended_by_caller) return HttpResponse{200, ""};
  if (config_.stop.stop_requested())
    return Fail(ErrorCode::kUnavailable, "this client is stopping");
  if (result) return Answer(*result, std::move(body));
  const bool silent = Clock::now() - last_data >= quiet;
  if (silent || Clock::now() >= deadline) {
    return Fail(ErrorCode::kUnavailable,
                ServerText(config_) +
                    (silent ? " sent nothing for " + Seconds(quiet)
                            : " did not end its answer within " + Seconds(request.deadline)));
  }
  return Fail(ErrorCode::kUnavailable, used.Explain(result.error(), config_));
}

}  // namespace ringmaster::kube
