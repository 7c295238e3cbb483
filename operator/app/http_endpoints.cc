#include "operator/app/http_endpoints.h"

#include <fmt/format.h>
#include <httplib.h>
#include <sys/socket.h>

#include <cstring>
#include <thread>

#include "operator/app/setting_texts.h"

namespace ringmaster::app {
namespace {

// Kubelet and Prometheus ask seldom, one question a connection; a client that says nothing must
// not keep them out.
constexpr std::size_t kThreads = 4;
constexpr int kSeconds = 5;

class Server final : public HttpEndpoints {
 public:
  explicit Server(Answers answers) : answers_(std::move(answers)) {
    http_.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
    http_.set_keep_alive_max_count(1);
    http_.set_read_timeout(kSeconds);
    http_.set_write_timeout(kSeconds);
    http_.set_payload_max_length(4096);
    // Not SO_REUSEPORT, the library's choice: two operators would each answer half of the scrapes.
    http_.set_socket_options([](int socket) {
      const int on = 1;
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    });
    for (const auto& entry : answers_) {
      const std::function<HttpAnswer()>* answer = &entry.second;
      http_.Get(entry.first, [answer](const httplib::Request&, httplib::Response& response) {
        const HttpAnswer given = (*answer)();
        response.status = given.status;
        response.set_content(given.body, given.content_type);
      });
    }
    http_.set_error_handler([this](const httplib::Request&, httplib::Response& response) {
      if (!response.body.empty()) return;
      std::string paths;
      for (const auto& [path, answer] : answers_) paths += path + " ";
      response.set_content("there is " + paths + "\n", "text/plain");
    });
  }
  ~Server() override { Stop(); }

  bool Open(const HostPort& where) {
    if (where.port == 0) {
      port_ = http_.bind_to_any_port(where.host);
    } else {
      port_ = http_.bind_to_port(where.host, where.port) ? where.port : -1;
    }
    if (port_ < 0) return false;
    thread_ = std::thread([this] { http_.listen_after_bind(); });
    return true;
  }
  int port() const override { return port_; }
  void Stop() override {
    if (!thread_.joinable()) return;
    // A stop before the start would be forgotten.
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(kSeconds);
    while (!http_.is_running() && std::chrono::steady_clock::now() < end) {
      std::this_thread::yield();
    }
    http_.stop();
    thread_.join();
  }

 private:
  const Answers answers_;
  httplib::Server http_;
  int port_ = -1;
  std::thread thread_;
};

}  // namespace

kube::Result<std::unique_ptr<HttpEndpoints>> HttpEndpoints::Listen(const std::string& flag,
                                                                   const std::string& host_port,
                                                                   Answers answers) {
  const auto fail = [&](const std::string& why) {
    return tl::unexpected(kube::Error{
        .code = kube::ErrorCode::kUnavailable,
        .message = fmt::format("{}: can't listen on \"{}\": {}", flag, host_port, why)});
  };
  const auto where = ParseHostPort(host_port);
  if (!where) return fail(where.error());
  auto server = std::make_unique<Server>(std::move(answers));
  errno = 0;
  if (!server->Open(*where)) {
    return fail(errno != 0 ? std::strerror(errno) : "the host is not known or not ours");
  }
  return server;
}

}  // namespace ringmaster::app
