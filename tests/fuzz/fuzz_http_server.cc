// Requests to the HTTP server of operator and sidecars, in pieces. Whatever is asked, the answer is
// one of HTTP or none, and only a GET or HEAD comes to what answers.
//
// The first byte says who asks (Mode), the second how long the pieces are. What follows are the
// bytes of clients that are there at the same time, with a byte 0x1e between two.
#include <arpa/inet.h>
#include <fcntl.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <asio/io_context.hpp>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/http/server.h"
#include "common/tls/certificate.h"

using ringmaster::http::Request;
using ringmaster::http::Response;
using ringmaster::http::Server;
using ringmaster::http::ServerLimits;
using std::chrono::milliseconds;

namespace {

// The digits '0' to '8' are such a byte.
struct Mode {
  explicit Mode(std::uint8_t byte)
      : tls((byte & 1) != 0),
        encrypts(tls && (byte & 2) != 0),
        stays((byte & 4) != 0),
        certificate((byte & 8) != 0) {}
  bool tls;          // they ask the server that speaks TLS
  bool encrypts;     // and do so themselves; else it gets their bytes as they are
  bool stays;        // they don't end the connection after their bytes
  bool certificate;  // no request: the bytes are the certificate and the key of a server
};

constexpr char kBetween = 0x1e;
constexpr std::size_t kMostClients = 6;
// So small that a few bytes break each of them.
const ServerLimits kLimits{.connections = 3,
                           .request_bytes = 2048,
                           .deadline = milliseconds(200),
                           .streams = 1,
                           .stream_life = milliseconds(20),
                           .tick = milliseconds(1)};

// "/status/404" has that status; "/stream/ab.c" goes on with "a", "b", a pause and "c";
// "/endless" is a stream in which nothing comes.
Response AnswerTo(const Request& request) {
  Response response{.body = request.path + request.Cookie("a") + request.Parameter("b"),
                    .headers = {{"X-Name", "value"}}};
  const std::string status = "/status/", stream = "/stream/";
  if (request.path.starts_with(status)) {
    response.status = std::atoi(request.path.c_str() + status.size()) % 1000;
  } else if (request.path.starts_with(stream)) {
    response.next = [parts = request.path.substr(stream.size()),
                     at = std::size_t{0}]() mutable -> std::optional<std::string> {
      if (at == parts.size()) return std::nullopt;
      const char part = parts[at++];
      return part == '.' ? std::string() : std::string(1, part);
    };
  } else if (request.path == "/endless") {
    response.next = [] { return std::string(); };
  }
  return response;
}

class Client {
 public:
  // Null `tls`: plain.
  Client(asio::io_context* io, int port, SSL_CTX* tls) : io_(io), fd_(Connect(port)) {
    if (tls == nullptr) return;
    ssl_ = SSL_new(tls);
    SSL_set_fd(ssl_, fd_);
    io_->poll();
    Try([this] { return SSL_connect(ssl_); });
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() {
    if (ssl_ != nullptr) SSL_free(ssl_);
    close(fd_);
  }

  void Send(std::string_view bytes, std::size_t piece) {
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      const std::string_view part = bytes.substr(at, piece);
      const int size = static_cast<int>(part.size());
      if (Try([&] {
            return ssl_ != nullptr
                       ? SSL_write(ssl_, part.data(), size)
                       : static_cast<int>(send(fd_, part.data(), part.size(), MSG_NOSIGNAL));
          }) <= 0)
        break;
      io_->poll();
    }
  }
  void End() const {
    if (ssl_ != nullptr) SSL_shutdown(ssl_);
    shutdown(fd_, SHUT_WR);
  }
  // False: the server has ended the connection. Reads what has come, if anything.
  bool Read() {
    char buffer[4096];
    const int n = ssl_ != nullptr ? SSL_read(ssl_, buffer, sizeof buffer)
                                  : static_cast<int>(recv(fd_, buffer, sizeof buffer, 0));
    if (n > 0) answer_.append(buffer, static_cast<std::size_t>(n));
    return n > 0 || Waits(n);
  }
  const std::string& answer() const { return answer_; }

 private:
  static int Connect(int port) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const linger reset{1, 0};  // else the machine would run out of ports
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) std::abort();
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
  }
  bool Waits(int result) const {
    if (ssl_ == nullptr) return result < 0 && errno == EAGAIN;
    const int error = SSL_get_error(ssl_, result);
    return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
  }
  // Until it is done; the server's deadline ends a connection on which nothing goes on.
  template <class Act>
  int Try(const Act& act) {
    int result = act();
    while (result <= 0 && Waits(result)) {
      io_->run_one_for(milliseconds(1));
      result = act();
    }
    return result;
  }

  asio::io_context* const io_;
  const int fd_;
  SSL* ssl_ = nullptr;
  std::string answer_;
};

// One for all inputs: a client leaves nothing behind in it.
class World {
 public:
  World() {
    std::signal(SIGPIPE, SIG_IGN);
    const auto now = std::chrono::system_clock::now();
    const auto authority = ringmaster::tls::MakeAuthority(now, std::chrono::hours(24));
    const auto pair =
        ringmaster::tls::Issue(*authority, {"127.0.0.1"}, now, std::chrono::hours(24));
    plain_ = Server::Start(Acceptor(), Answerer(), kLimits);
    tls_ =
        Server::StartTls(Acceptor(), Answerer(), {pair->certificate_pem, pair->key_pem}, kLimits);
    if (tls_ == nullptr) std::abort();
  }
  ~World() { SSL_CTX_free(context_); }

  std::vector<std::string> Ask(const Mode& mode, const std::vector<std::string_view>& bytes,
                               std::size_t piece) {
    std::vector<std::unique_ptr<Client>> clients;
    for (const std::string_view of_one : bytes) {
      clients.push_back(std::make_unique<Client>(&io_, mode.tls ? tls_->port() : plain_->port(),
                                                 mode.encrypts ? context_ : nullptr));
      clients.back()->Send(of_one, piece);
      io_.poll();
    }
    std::vector<Client*> open;
    for (const auto& client : clients) {
      if (!mode.stays) client->End();
      open.push_back(client.get());
    }
    while (!open.empty()) {
      io_.run_one_for(milliseconds(1));
      io_.poll();
      std::erase_if(open, [](Client* client) { return !client->Read(); });
    }
    std::vector<std::string> answers;
    for (const auto& client : clients) answers.push_back(client->answer());
    clients.clear();
    io_.poll();
    return answers;
  }

  // It can be one, but the bytes of a fuzzer hardly ever are.
  void StartWith(std::string_view pem) {
    const std::string text(pem);
    (void)Server::StartTls(Acceptor(), Answerer(), {text, text}, kLimits);
  }

  int TakeAnswers() { return std::exchange(answers_, 0); }

 private:
  asio::ip::tcp::acceptor Acceptor() { return {io_, {asio::ip::address_v4::loopback(), 0}}; }
  Server::Answer Answerer() {
    return [this](const Request& request) {
      ++answers_;
      return AnswerTo(request);
    };
  }

  asio::io_context io_;
  SSL_CTX* const context_ = SSL_CTX_new(TLS_client_method());
  int answers_ = 0;
  std::unique_ptr<Server> plain_, tls_;
};

// Of a client that was alone, so that nobody has pushed it out.
void CheckLength(const std::string& answer, bool head) {
  const std::string name = "\r\nContent-Length: ";
  const std::size_t end = answer.find("\r\n\r\n");
  const std::size_t length = answer.find(name);
  if (end == answer.npos || length > end || head) return;
  const std::size_t body = answer.size() - end - 4;
  if (body != std::strtoul(answer.c_str() + length + name.size(), nullptr, 10)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  static World world;
  const Mode mode(data[0]);
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  if (mode.certificate) {
    world.StartWith(bytes);
    return 0;
  }
  std::vector<std::string_view> clients;
  for (std::size_t at = 0; at <= bytes.size() && clients.size() < kMostClients;) {
    const std::size_t end = std::min(bytes.find(kBetween, at), bytes.size());
    clients.push_back(bytes.substr(at, end - at));
    at = end + 1;
  }
  const auto texts = world.Ask(mode, clients, data[1] * 8u + 1);
  for (const std::string& answer : texts) {
    if (answer.empty() || answer.starts_with("HTTP/1.1 ")) continue;
    if (!mode.tls || mode.encrypts) std::abort();
  }
  const bool plain = !mode.tls || mode.encrypts;
  if (clients.size() == 1 && plain) CheckLength(texts[0], clients[0].starts_with("HEAD"));
  const auto asked = std::count_if(clients.begin(), clients.end(), [](std::string_view of_one) {
    return of_one.find("GET") != of_one.npos || of_one.find("HEAD") != of_one.npos;
  });
  if (world.TakeAnswers() > (plain ? asked : 0)) std::abort();
  return 0;
}
