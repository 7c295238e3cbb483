#include "common/http/server.h"

#include <algorithm>
#include <array>
#include <asio/read_until.hpp>
#include <asio/ssl.hpp>
#include <asio/steady_timer.hpp>
#include <asio/streambuf.hpp>
#include <asio/write.hpp>
#include <istream>
#include <list>
#include <sstream>
#include <type_traits>

namespace ringmaster::http {
namespace {

using asio::ip::tcp;

// How much a client may still send after it has its answer. These bytes are read and ignored:
// closing with unread bytes would reset the connection, and the answer could be lost with it.
constexpr std::size_t kMostIgnored = 65536;
constexpr std::chrono::milliseconds kRetryAccept{100};

const char* StatusText(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 421:
      return "Misdirected Request";
    default:
      return "Service Unavailable";
  }
}

std::string LowerCase(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  return text;
}

std::string Trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\r") + 1 - begin);
}

// Reads the lines after the request line, up to the empty line.
std::map<std::string, std::string> ReadHeaders(std::istream* in) {
  std::map<std::string, std::string> headers;
  std::string line;
  std::getline(*in, line);  // the rest of the request line
  while (std::getline(*in, line) && line != "\r") {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    headers.emplace(LowerCase(line.substr(0, colon)), Trimmed(line.substr(colon + 1)));
  }
  return headers;
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c = static_cast<char>(c | 0x20);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// Decodes percent escapes and "+". An escape that is not valid stays as it is.
std::string Decoded(const std::string& text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const int high = text[i] == '%' && i + 2 < text.size() ? HexDigit(text[i + 1]) : -1;
    const int low = high < 0 ? -1 : HexDigit(text[i + 2]);
    if (low >= 0) {
      decoded += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      decoded += text[i] == '+' ? ' ' : text[i];
    }
  }
  return decoded;
}

std::map<std::string, std::string> ReadQuery(const std::string& target) {
  std::map<std::string, std::string> query;
  const std::size_t mark = target.find('?');
  if (mark == std::string::npos) return query;
  std::istringstream parts(target.substr(mark + 1));
  for (std::string part; std::getline(parts, part, '&');) {
    const std::size_t equals = part.find('=');
    const std::string value = equals == std::string::npos ? "" : part.substr(equals + 1);
    query.emplace(Decoded(part.substr(0, equals)), Decoded(value));
  }
  return query;
}

using Plain = tcp::socket;
using Tls = asio::ssl::stream<tcp::socket>;

tcp::socket& SocketOf(Plain& stream) { return stream; }
tcp::socket& SocketOf(Tls& stream) { return stream.next_layer(); }

// One connection, as the server sees it: the same for plain TCP and TLS.
class Session {
 public:
  virtual ~Session() = default;
  virtual void Start() = 0;
  virtual void Close() = 0;
  bool closed() const { return closed_; }
  bool has_asked() const { return has_asked_; }
  bool streams() const { return static_cast<bool>(next_) && !closed_; }

 protected:
  bool has_asked_ = false, closed_ = false;
  std::function<std::optional<std::string>()> next_;  // of an answer that goes on
};

// Answers one request and then closes the connection: keeping it open is not worth it, as the
// clients (kubelet, Prometheus, the command line) ask seldom.
template <typename Stream>
class SessionOver final : public Session, public std::enable_shared_from_this<SessionOver<Stream>> {
 public:
  SessionOver(Stream stream, const Server::Answer* answer, const ServerLimits& limits)
      : stream_(std::move(stream)),
        timer_(stream_.get_executor()),
        tick_(stream_.get_executor()),
        answer_(answer),
        limits_(limits),
        request_(limits.request_bytes) {}

  void Start() override {
    LimitTo(limits_.deadline);
    if constexpr (std::is_same_v<Stream, Tls>) {
      stream_.async_handshake(asio::ssl::stream_base::server,
                              [self = this->shared_from_this()](std::error_code error) {
                                if (self->closed_) return;
                                if (error) return self->Close();
                                self->ReadRequest();
                              });
    } else {
      ReadRequest();
    }
  }

  void Close() override {
    closed_ = true;
    next_ = nullptr;
    timer_.cancel();
    tick_.cancel();
    std::error_code ignored;
    SocketOf(stream_).shutdown(tcp::socket::shutdown_both, ignored);
    SocketOf(stream_).close(ignored);
  }

 private:
  // Closes the connection after that time, unless this is called again.
  void LimitTo(std::chrono::milliseconds time) {
    timer_.expires_after(time);
    timer_.async_wait([self = this->shared_from_this()](std::error_code error) {
      if (!error) self->Close();
    });
  }

  void ReadRequest() {
    asio::async_read_until(stream_, request_, "\r\n\r\n",
                           [self = this->shared_from_this()](std::error_code error, std::size_t) {
                             if (self->closed_) return;
                             if (error && error != asio::error::not_found) return self->Close();
                             self->Respond(error
                                               ? Response{400, "text/plain", "request too large\n"}
                                               : self->AnswerRequest());
                           });
  }

  Response AnswerRequest() {
    std::istream in(&request_);
    std::string method, target, version;
    in >> method >> target >> version;
    if (version.rfind("HTTP/1.", 0) != 0) return {400, "text/plain", "not HTTP/1\n"};
    head_ = method == "HEAD";
    if (method != "GET" && !head_) return {405, "text/plain", "only GET is served\n"};
    return (*answer_)(
        {target.substr(0, target.find('?')), ReadHeaders(&in), ReadQuery(target), head_});
  }

  void Respond(Response response) {
    has_asked_ = true;
    text_ = "HTTP/1.1 " + std::to_string(response.status) + " " + StatusText(response.status) +
            "\r\nContent-Type: " + response.content_type;
    if (!response.next) text_ += "\r\nContent-Length: " + std::to_string(response.body.size());
    for (const auto& [name, value] : response.headers) text_ += "\r\n" + name + ": " + value;
    text_ += "\r\nConnection: close\r\n\r\n";
    if (!head_) {
      text_ += response.body;
      next_ = std::move(response.next);
      stream_until_ = std::chrono::steady_clock::now() + limits_.stream_life;
    }
    Write();
  }

  void Write() {
    asio::async_write(stream_, asio::buffer(text_),
                      [self = this->shared_from_this()](std::error_code error, std::size_t) {
                        if (error || self->closed_) return self->Close();
                        if (!self->next_) return self->End();
                        self->timer_.cancel();
                        self->GoOn();
                      });
  }

  // Writes the stream's next part. If there is none yet, looks again at the next tick.
  void GoOn() {
    if (std::chrono::steady_clock::now() >= stream_until_) return Close();
    auto part = next_();
    if (!part) next_ = nullptr;
    if (part && part->empty()) return LookLater();
    text_ = part ? std::move(*part) : "";
    LimitTo(limits_.deadline);
    Write();
  }

  void LookLater() {
    tick_.expires_after(limits_.tick);
    tick_.async_wait([self = this->shared_from_this()](std::error_code cancelled) {
      if (!cancelled && !self->closed_) self->GoOn();
    });
  }

  // Ends the connection after a whole answer. The deadline holds for this, too.
  void End() {
    if constexpr (std::is_same_v<Stream, Tls>) {
      stream_.async_shutdown([self = this->shared_from_this()](std::error_code) { self->Close(); });
    } else {
      std::error_code ignored;
      stream_.shutdown(tcp::socket::shutdown_send, ignored);
      IgnoreTheRest(0);
    }
  }

  void IgnoreTheRest(std::size_t so_far) {
    stream_.async_read_some(asio::buffer(rest_), [self = this->shared_from_this(), so_far](
                                                     std::error_code error, std::size_t n) {
      if (error || self->closed_ || so_far + n > kMostIgnored) return self->Close();
      self->IgnoreTheRest(so_far + n);
    });
  }

  Stream stream_;
  asio::steady_timer timer_;
  asio::steady_timer tick_;
  const Server::Answer* const answer_;
  const ServerLimits limits_;
  asio::streambuf request_;
  std::string text_;
  std::array<char, 4096> rest_;
  bool head_ = false;
  std::chrono::steady_clock::time_point stream_until_;
};

// Null: the certificate or its key can't be used.
std::unique_ptr<asio::ssl::context> MakeContext(const Certificate& certificate) {
  auto context = std::make_unique<asio::ssl::context>(asio::ssl::context::tls_server);
  std::error_code error;
  context->set_options(asio::ssl::context::no_tlsv1 | asio::ssl::context::no_tlsv1_1, error);
  if (!error) {
    context->use_certificate_chain(asio::buffer(certificate.certificates_pem), error);
  }
  if (!error) {
    context->use_private_key(asio::buffer(certificate.key_pem), asio::ssl::context::pem, error);
  }
  return error ? nullptr : std::move(context);
}

class ServerImpl final : public Server {
 public:
  // Null `tls`: the server is plain HTTP.
  ServerImpl(tcp::acceptor acceptor, Answer answer, std::unique_ptr<asio::ssl::context> tls,
             const ServerLimits& limits)
      : acceptor_(std::move(acceptor)),
        retry_(acceptor_.get_executor()),
        answer_(std::move(answer)),
        tls_(std::move(tls)),
        limits_(limits),
        asked_([this](const Request& request) { return AnswerTo(request); }) {
    Accept();
  }
  ~ServerImpl() override { Stop(); }

  int port() const override {
    std::error_code ignored;
    return acceptor_.local_endpoint(ignored).port();
  }

  void Stop() override {
    stopped_ = true;  // the handler of a connection that was accepted may not have run yet
    std::error_code ignored;
    acceptor_.close(ignored);
    retry_.cancel();
    for (auto& weak : sessions_) {
      if (auto session = weak.lock()) session->Close();
    }
    sessions_.clear();
  }

 private:
  void Accept() {
    acceptor_.async_accept([this](std::error_code error, tcp::socket socket) {
      if (stopped_ || error == asio::error::operation_aborted) return;
      if (error) return AcceptLater();
      MakeRoom();
      const std::shared_ptr<Session> session = MakeSession(std::move(socket));
      sessions_.push_back(session);
      session->Start();
      Accept();
    });
  }

  std::shared_ptr<Session> MakeSession(tcp::socket socket) {
    if (tls_ == nullptr) {
      return std::make_shared<SessionOver<Plain>>(std::move(socket), &asked_, limits_);
    }
    return std::make_shared<SessionOver<Tls>>(Tls(std::move(socket), *tls_), &asked_, limits_);
  }

  Response AnswerTo(const Request& request) {
    Response response = answer_(request);
    if (!response.next) return response;
    const auto streams = std::count_if(sessions_.begin(), sessions_.end(), [](const auto& weak) {
      const auto session = weak.lock();
      return session != nullptr && session->streams();
    });
    if (static_cast<std::size_t>(streams) < limits_.streams) return response;
    return {503, "text/plain", "too many streams are open\n"};
  }

  void AcceptLater() {
    retry_.expires_after(kRetryAccept);
    retry_.async_wait([this](std::error_code cancelled) {
      if (!cancelled) Accept();
    });
  }

  void MakeRoom() {
    std::erase_if(sessions_, [](const auto& weak) {
      const auto session = weak.lock();
      return session == nullptr || session->closed();
    });
    if (sessions_.size() < limits_.connections) return;
    auto oldest = std::find_if(sessions_.begin(), sessions_.end(), [](const auto& weak) {
      const auto session = weak.lock();
      return session != nullptr && !session->has_asked();
    });
    if (oldest == sessions_.end()) oldest = sessions_.begin();
    if (const auto session = oldest->lock()) session->Close();
    sessions_.erase(oldest);
  }

  tcp::acceptor acceptor_;
  asio::steady_timer retry_;
  const Answer answer_;
  const std::unique_ptr<asio::ssl::context> tls_;
  const ServerLimits limits_;
  const Answer asked_;                          // calls `answer_` and limits the streams
  std::list<std::weak_ptr<Session>> sessions_;  // the oldest first
  bool stopped_ = false;
};

}  // namespace

std::unique_ptr<Server> Server::Start(tcp::acceptor acceptor, Answer answer,
                                      const ServerLimits& limits) {
  return std::make_unique<ServerImpl>(std::move(acceptor), std::move(answer), nullptr, limits);
}

std::unique_ptr<Server> Server::StartTls(tcp::acceptor acceptor, Answer answer,
                                         const Certificate& certificate,
                                         const ServerLimits& limits) {
  auto context = MakeContext(certificate);
  if (context == nullptr) return nullptr;
  return std::make_unique<ServerImpl>(std::move(acceptor), std::move(answer), std::move(context),
                                      limits);
}

}  // namespace ringmaster::http
