#include "operator/cli/ui/ui_server.h"

#include <httplib.h>
#include <openssl/crypto.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>

#include "common/ring_key/ring_key.h"
#include "operator/cli/ui/assets.h"

namespace ringmaster::ui {
namespace {

using httplib::Request;
using httplib::Response;

constexpr std::size_t kConnections = 64;
constexpr std::chrono::milliseconds kLookAround{500};
constexpr int kMostLines = 10'000;
constexpr char kCookie[] = "ringmaster_ui";
// Nothing from anywhere else, and nobody else's page around it.
constexpr char kPolicy[] =
    "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; frame-ancestors "
    "'none'; base-uri 'none'";

bool Same(const std::string& a, const std::string& b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string CookieOf(const Request& request, const std::string& name) {
  const std::string cookies = "; " + request.get_header_value("Cookie");
  const std::string before = "; " + name + "=";
  const auto at = cookies.find(before);
  if (at == std::string::npos) return "";
  const auto begin = at + before.size();
  return cookies.substr(begin, cookies.find(';', begin) - begin);
}

void SendJson(Response& response, const nlohmann::json& json) {
  response.set_content(json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
                       "application/json");
}

void Refuse(Response& response, int status, const std::string& text) {
  response.status = status;
  response.set_content(text + "\n", "text/plain; charset=utf-8");
}

class Server final : public UiServer {
 public:
  Server(const Observatory* observatory)
      : observatory_(observatory), token_(ring_key::MakeToken(ring_key::MakeRandom())) {}

  ~Server() override {
    if (!thread_.joinable()) return;
    stopping_ = true;
    while (!http_.is_running()) std::this_thread::yield();  // stop() before would be lost
    http_.stop();
    thread_.join();
  }

  // Empty: it listens.
  std::string Listen(int port) {
    http_.new_task_queue = [] { return new httplib::ThreadPool(kConnections); };
    // Without SO_REUSEPORT, which httplib would set: two servers on one port are an error here.
    http_.set_socket_options([](socket_t fd) {
      int yes = 1;
      setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    http_.set_payload_max_length(0);
    http_.set_pre_routing_handler([this](const Request& request, Response& response) {
      return LetIn(request, response) ? httplib::Server::HandlerResponse::Unhandled
                                      : httplib::Server::HandlerResponse::Handled;
    });
    Route();
    if (port == 0) {
      port_ = http_.bind_to_any_port("127.0.0.1");
      if (port_ <= 0) return "no free port on 127.0.0.1";
    } else if (port_ = port; !http_.bind_to_port("127.0.0.1", port)) {
      return "can't listen on 127.0.0.1:" + std::to_string(port) + ": " +
             std::strerror(errno ? errno : EADDRINUSE);
    }
    thread_ = std::thread([this] { http_.listen_after_bind(); });
    return "";
  }

  std::string address() const override {
    return "http://127.0.0.1:" + std::to_string(port_) + "/?token=" + token_;
  }

 private:
  // False: answered.
  bool LetIn(const Request& request, Response& response) const {
    response.set_header("Content-Security-Policy", kPolicy);
    response.set_header("X-Content-Type-Options", "nosniff");
    response.set_header("Referrer-Policy", "no-referrer");
    response.set_header("Cache-Control", "no-store");
    const std::string port = ":" + std::to_string(port_);
    const std::string host = request.get_header_value("Host");
    if (host != "127.0.0.1" + port && host != "localhost" + port) {
      Refuse(response, 421, "this server is 127.0.0.1" + port + ", not '" + host + "'");
      return false;
    }
    // Browsers send cookies to every port of a host, so the name tells whose it is.
    const std::string cookie = std::string(kCookie) + "_" + std::to_string(port_);
    if (Same(CookieOf(request, cookie), token_)) return true;
    if (!Same(request.get_param_value("token"), token_)) {
      Refuse(response, 401,
             "Open the address that the command has printed: it ends with ?token=...");
      return false;
    }
    response.set_header("Set-Cookie",
                        cookie + "=" + token_ + "; HttpOnly; SameSite=Strict; Path=/");
    return true;
  }

  void Route() {
    for (const Asset& asset : kAssets) {
      http_.Get(asset.path, [&asset](const Request&, Response& response) {
        response.set_content(asset.text, asset.bytes, asset.type);
      });
    }
    http_.Get("/api/jobs", [this](const Request&, Response& response) {
      SendJson(response, observatory_->Jobs());
    });
    http_.Get("/api/job", [this](const Request& request, Response& response) {
      const std::string key = request.get_param_value("job");
      const nlohmann::json job = observatory_->Job(key);
      if (job.is_null()) return Refuse(response, 404, "no job '" + key + "' has been seen");
      SendJson(response, job);
    });
    http_.Get("/api/stream", [this](const Request& request, Response& response) {
      Stream(request.get_param_value("job"), response);
    });
    http_.Get("/api/log", [this](const Request& request, Response& response) {
      const int lines = std::atoi(request.get_param_value("lines").c_str());
      response.set_content(
          observatory_->Log(request.get_param_value("namespace"), request.get_param_value("pod"),
                            std::clamp(lines, 1, kMostLines)),
          "text/plain; charset=utf-8");
    });
  }

  void Stream(const std::string& key, Response& response) const {
    response.set_chunked_content_provider(
        "text/event-stream", [this, key, seen = std::make_shared<std::uint64_t>(0)](
                                 std::size_t, httplib::DataSink& sink) {
          if (stopping_) {
            sink.done();
            return true;
          }
          const nlohmann::json newer = observatory_->Newer(key, seen.get(), kLookAround);
          if (newer.is_null()) return sink.is_writable();
          const std::string event =
              "data: " + newer.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) +
              "\n\n";
          return sink.write(event.data(), event.size());
        });
  }

  const Observatory* const observatory_;
  const std::string token_;
  httplib::Server http_;
  int port_ = 0;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace

tl::expected<std::unique_ptr<UiServer>, std::string> UiServer::Start(const Observatory* observatory,
                                                                     int port) {
  auto server = std::make_unique<Server>(observatory);
  if (std::string error = server->Listen(port); !error.empty()) return tl::unexpected(error);
  return server;
}

}  // namespace ringmaster::ui
