#include "operator/local/server/https_server.h"

#include <fcntl.h>
#include <netdb.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "operator/local/server/connection_threads.h"

namespace ringmaster::local {
// Not in the unnamed namespace: HttpsServer::Connection has such a field.
struct FreeOpenSsl {
  void operator()(BIO* p) const { BIO_free(p); }
  void operator()(X509* p) const { X509_free(p); }
  void operator()(EVP_PKEY* p) const { EVP_PKEY_free(p); }
  void operator()(SSL* p) const { SSL_free(p); }
};
template <typename T>
using Owned = std::unique_ptr<T, FreeOpenSsl>;

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kWriteTimeout{10'000};
// Chunk headers and the like, for a body that is as long as it may be.
constexpr std::size_t kFraming = 1u << 20;
// To close with unread bytes resets the connection, and the answer may be lost with it.
constexpr std::size_t kMostIgnored = 64u << 10;
constexpr milliseconds kLinger{1'000};

Owned<BIO> Memory(const std::string& text) {
  return Owned<BIO>(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

SSL_CTX* MakeContext(const TlsMaterial& tls) {
  const Owned<X509> cert(PEM_read_bio_X509(Memory(tls.cert_pem).get(), nullptr, nullptr, nullptr));
  const Owned<EVP_PKEY> key(
      PEM_read_bio_PrivateKey(Memory(tls.key_pem).get(), nullptr, nullptr, nullptr));
  SSL_CTX* context = SSL_CTX_new(TLS_server_method());
  if (context == nullptr) return nullptr;
  SSL_CTX_set_options(context, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  if (cert != nullptr && key != nullptr && SSL_CTX_use_certificate(context, cert.get()) == 1 &&
      SSL_CTX_use_PrivateKey(context, key.get()) == 1) {
    return context;
  }
  SSL_CTX_free(context);
  return nullptr;
}

// False: not before `end`.
bool Await(int fd, short events, Clock::time_point end) {
  while (true) {
    const auto left = std::chrono::ceil<milliseconds>(end - Clock::now());
    if (left.count() <= 0) return false;
    pollfd one{fd, events, 0};
    const int ready = poll(&one, 1, static_cast<int>(std::min<long long>(left.count(), 60'000)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

void NameOf(int (*which)(int, sockaddr*, socklen_t*), int fd, std::string* ip, int* port) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  char host[NI_MAXHOST], service[NI_MAXSERV];
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (which(fd, generic, &size) != 0 ||
      getnameinfo(generic, size, host, sizeof host, service, sizeof service,
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return;
  }
  *ip = host;
  *port = std::atoi(service);
}

}  // namespace

// A connection as httplib reads and writes it.
struct HttpsServer::Connection final : httplib::Stream {
  Connection(int socket, SSL_CTX* context) : fd(socket), ssl(SSL_new(context)) {
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    SSL_set_fd(ssl.get(), fd);
    SSL_set_app_data(ssl.get(), this);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() override {
    ssl.reset();
    shutdown(fd, SHUT_RDWR);
    close(fd);
  }

  static Connection* Of(const httplib::Request& request) {
    return static_cast<Connection*>(SSL_get_app_data(request.ssl));
  }

  void Allow(std::size_t bytes, Clock::time_point until) {
    bytes_left = bytes;
    deadline = until;
  }

  bool Handshake() {
    while (true) {
      ERR_clear_error();
      const int done = SSL_accept(ssl.get());
      if (done == 1) return true;
      if (!AwaitWhatItWants(done, deadline)) return false;
    }
  }
  // For the first byte of another request.
  bool AwaitRequest(Clock::time_point until) const {
    return SSL_pending(ssl.get()) > 0 || Await(fd, POLLIN, until);
  }

  bool is_readable() const override {
    return SSL_pending(ssl.get()) > 0 || Await(fd, POLLIN, deadline);
  }
  bool is_writable() const override {
    pollfd one{fd, POLLOUT | POLLRDHUP, 0};
    return poll(&one, 1, static_cast<int>(kWriteTimeout.count())) == 1 &&
           (one.revents & (POLLERR | POLLHUP | POLLRDHUP)) == 0;
  }
  ssize_t read(char* to, size_t size) override {
    if (bytes_left == 0) return -1;
    const int most = static_cast<int>(std::min({size, bytes_left, std::size_t{1} << 20}));
    while (true) {
      ERR_clear_error();
      const int n = SSL_read(ssl.get(), to, most);
      if (n > 0) {
        bytes_left -= static_cast<std::size_t>(n);
        return Clock::now() < deadline ? n : -1;
      }
      if (SSL_get_error(ssl.get(), n) == SSL_ERROR_ZERO_RETURN) return 0;
      if (!AwaitWhatItWants(n, deadline)) return -1;
    }
  }
  ssize_t write(const char* from, size_t size) override {
    if (size == 0) return 0;
    const int most = static_cast<int>(std::min(size, std::size_t{1} << 20));
    while (true) {
      ERR_clear_error();
      const int n = SSL_write(ssl.get(), from, most);
      if (n > 0) return n;
      if (!AwaitWhatItWants(n, Clock::now() + kWriteTimeout)) return -1;
    }
  }
  void IgnoreTheRest() const {
    SSL_shutdown(ssl.get());
    shutdown(fd, SHUT_WR);
    char rest[4096];
    const auto until = Clock::now() + kLinger;
    for (std::size_t ignored = 0; ignored < kMostIgnored && Await(fd, POLLIN, until);) {
      const ssize_t n = recv(fd, rest, sizeof rest, 0);
      if (n <= 0) return;
      ignored += static_cast<std::size_t>(n);
    }
  }
  void get_remote_ip_and_port(std::string& ip, int& port) const override {
    NameOf(getpeername, fd, &ip, &port);
  }
  void get_local_ip_and_port(std::string& ip, int& port) const override {
    NameOf(getsockname, fd, &ip, &port);
  }
  socket_t socket() const override { return fd; }

  const int fd;
  const std::uint64_t arrival = ConnectionThreads::Arrival();
  Owned<SSL> ssl;
  std::size_t bytes_left = 0;
  Clock::time_point deadline;
  std::atomic<bool> known{false};  // it has shown a token
  bool last = false;               // nothing more is read of it
  bool is_short = false;           // it ends with its first answer
  std::size_t body_bytes = 0;

 private:
  bool AwaitWhatItWants(int result, Clock::time_point until) const {
    switch (SSL_get_error(ssl.get(), result)) {
      case SSL_ERROR_WANT_READ:
        return Await(fd, POLLIN, until);
      case SSL_ERROR_WANT_WRITE:
        return Await(fd, POLLOUT, until);
      default:
        return false;
    }
  }
};

HttpsServer::HttpsServer(const TlsMaterial& tls, const HttpsLimits& limits)
    : limits_(limits), context_(MakeContext(tls)) {
  new_task_queue = [this] { return new ConnectionThreads(limits_.connections); };
}
HttpsServer::~HttpsServer() = default;

void HttpsServer::Admit(const httplib::Request& request) {
  Connection* connection = Connection::Of(request);
  connection->known = true;
  connection->bytes_left = connection->body_bytes;
}

bool HttpsServer::IsShort(const httplib::Request& request) {
  return Connection::Of(request)->is_short;
}

void HttpsServer::EndAfter(const httplib::Request& request) {
  Connection::Of(request)->last = true;
}

void HttpsServer::EndConnections() {
  const sync::MutexLock lock(&mu_);
  ending_ = true;
  for (const Connection* connection : connections_) shutdown(connection->fd, SHUT_RD);
}

bool HttpsServer::process_and_close_socket(socket_t socket) {
  Connection connection(socket, context_.get());
  connection.body_bytes = limits_.body_bytes + kFraming;
  Add(&connection);
  const bool done = Converse(&connection);
  Remove(&connection);
  return done;
}

bool HttpsServer::Converse(Connection* connection) {
  connection->Allow(limits_.head_bytes, Clock::now() + limits_.request_deadline);
  if (!connection->Handshake()) return false;
  for (std::size_t left = keep_alive_max_count_; left > 0; --left) {
    const bool first = left == keep_alive_max_count_;
    const auto idle = first ? std::chrono::duration_cast<Clock::duration>(limits_.request_deadline)
                            : std::chrono::seconds(keep_alive_timeout_sec_);
    if (!connection->AwaitRequest(Clock::now() + idle)) return true;
    connection->Allow(limits_.head_bytes, Clock::now() + limits_.request_deadline);
    bool closed = false;
    const bool ends = left == 1 || connection->is_short;
    const bool done = process_request(*connection, ends, closed,
                                      [&](httplib::Request& r) { r.ssl = connection->ssl.get(); });
    if (connection->last) connection->IgnoreTheRest();
    if (!done || closed || ends || connection->last) return done;
  }
  return true;
}

void HttpsServer::Add(Connection* connection) {
  const sync::MutexLock lock(&mu_);
  const auto is_later = [&](const Connection* one) { return one->arrival > connection->arrival; };
  connection->is_short = connections_.size() + limits_.short_connections >= limits_.connections;
  connections_.insert(std::find_if(connections_.begin(), connections_.end(), is_later), connection);
  const auto is_stranger = [](const Connection* one) { return !one->known; };
  const auto strangers = std::count_if(connections_.begin(), connections_.end(), is_stranger);
  if (static_cast<std::size_t>(strangers) > limits_.strangers) {
    // Its thread sees the end and takes it off the list; until then it is not counted.
    const auto oldest = std::find_if(connections_.begin(), connections_.end(), is_stranger);
    (*oldest)->known = true;
    shutdown((*oldest)->fd, SHUT_RDWR);
  }
  if (ending_) shutdown(connection->fd, SHUT_RD);
}

void HttpsServer::Remove(Connection* connection) {
  const sync::MutexLock lock(&mu_);
  connections_.remove(connection);
}

}  // namespace ringmaster::local
