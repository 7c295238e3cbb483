// A worker that speaks the worker link and trains nothing: what the tests of the sidecar start
// instead of a script. SIGUSR1: all agreed to end. It answers `arm` at once, as if it always stood
// at a boundary.
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>

#include "common/worker_link/frame.h"

namespace {

using nlohmann::json;
using ringmaster::worker_link::FrameReader;

volatile sig_atomic_t g_finish = 0;

std::string Env(const char* name, const char* fallback) {
  const char* value = std::getenv(name);
  return value == nullptr ? fallback : value;
}

class FakeWorker {
 public:
  int Run() {
    for (int tries = 0; tries < 400; ++tries) {
      if (Connect()) {
        Serve();
        if (done_) return 0;
      }
      usleep(25'000);
    }
    return 9;
  }

 private:
  bool Connect() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    Env("RINGMASTER_SOCKET", "").copy(address.sun_path, sizeof address.sun_path - 1);
    if (fd_ >= 0) close(fd_);
    fd_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return false;
    reader_ = {};
    Send({{"t", "hello"},
          {"version", 1},
          {"role", "worker"},
          {"slot", slot_},
          {"incarnation", incarnation_},
          {"pid", getpid()},
          {"standby", standby_},
          {"tcp", "127.0.0.1:1"},
          {"shm", ""},
          {"epoch", epoch_}});
    if (entered_ && epoch_ == 0) Send({{"t", "enter"}});  // it waits to be let in
    return true;
  }

  void Send(const json& frame) {
    std::string bytes = ringmaster::worker_link::EncodeFrame(frame);
    [[maybe_unused]] ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }

  void Serve() {
    while (!done_) {
      if (g_finish != 0) {
        Send({{"t", "finished"}, {"epoch", epoch_}});
        Send({{"t", "bye"}, {"reason", "finished"}});
        done_ = true;
        return;
      }
      pollfd fd{fd_, POLLIN, 0};
      if (poll(&fd, 1, 20) <= 0) {
        ++step_;
        Send({{"t", "ping"},
              {"n", ++pings_},
              {"epoch", epoch_},
              {"step", step_},
              {"values", {{"samples", step_ * 8}}}});
        continue;
      }
      char buffer[16384];
      ssize_t got = recv(fd_, buffer, sizeof buffer, 0);
      if (got <= 0) return;
      reader_.Feed({buffer, static_cast<size_t>(got)});
      json frame;
      while (!done_ && reader_.Next(&frame) == FrameReader::Result::kFrame) Handle(frame);
    }
  }

  void Handle(const json& frame) {
    const std::string type = frame["t"];
    if (type == "welcome" && frame["state"] != "standby" && !entered_) {
      Enter();
    } else if (type == "promoted") {
      slot_ = frame["slot"];
      incarnation_ = frame["incarnation"];
      standby_ = false;
      Enter();
    } else if (type == "view") {
      if (frame["self"] == -1) {
        epoch_ = 0;
        return Enter();
      }
      epoch_ = frame["view"]["epoch"];
      Send({{"t", "installed"}, {"epoch", epoch_}, {"seconds", {{"connect", 0.001}}}});
      Send(
          {{"t", "rebuilt"},
           {"epoch", epoch_},
           {"step", step_},
           {"seconds", {{"stop", 0.001}, {"connect", 0.001}, {"redo", 0.002}, {"resume", 0.003}}}});
    } else if (type == "stop") {
      Send({{"t", "stopped"}, {"epoch", frame["epoch"]}});
    } else if (type == "arm") {
      Send({{"t", "boundary"}, {"epoch", frame["epoch"]}, {"step", step_}});
    } else if (type == "left") {
      Send({{"t", "bye"}, {"reason", "left"}});
      done_ = true;
    }
  }

  void Enter() {
    entered_ = true;
    Send({{"t", "enter"}});
  }

  int fd_ = -1;
  int slot_ = std::atoi(Env("RINGMASTER_SLOT", "0").c_str());
  uint64_t incarnation_ = std::strtoull(Env("RINGMASTER_INCARNATION", "1").c_str(), nullptr, 10);
  bool standby_ = Env("RINGMASTER_STANDBY", "0") == "1";
  bool entered_ = false, done_ = false;
  uint64_t epoch_ = 0, step_ = 0, pings_ = 0;
  FrameReader reader_;
};

}  // namespace

int main() {
  signal(SIGUSR1, [](int) { g_finish = 1; });
  return FakeWorker().Run();
}
