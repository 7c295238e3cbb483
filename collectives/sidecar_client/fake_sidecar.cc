#include "collectives/sidecar_client/fake_sidecar.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "common/worker_link/frame.h"

namespace ringmaster::sidecar_client {

using worker_link::EncodeFrame;
using worker_link::FrameReader;

namespace {

constexpr std::chrono::seconds kPatience{30};

}  // namespace

FakeSidecar::FakeSidecar(std::string path)
    : path_(std::move(path)), wake_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  {
    sync::MutexLock lock(&mu_);
    Listen();
  }
  thread_ = std::thread([this] { Loop(); });
}

FakeSidecar::~FakeSidecar() {
  {
    sync::MutexLock lock(&mu_);
    closing_ = true;
  }
  eventfd_write(wake_, 1);
  thread_.join();
  {
    sync::MutexLock lock(&mu_);
    CloseAll();
  }
  close(wake_);
  unlink(path_.c_str());
}

void FakeSidecar::Listen() {
  unlink(path_.c_str());
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path_.c_str(), sizeof(address.sun_path) - 1);
  listener_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) std::abort();
  listen(listener_, 16);
}

void FakeSidecar::CloseAll() {
  for (Peer& peer : peers_) {
    if (peer.fd >= 0) close(peer.fd);
  }
  peers_.clear();
  close(listener_);
}

void FakeSidecar::Restart() {
  sync::MutexLock lock(&mu_);
  CloseAll();
  Listen();
  eventfd_write(wake_, 1);
}

void FakeSidecar::Welcome(int slot, const std::string& state) {
  sync::MutexLock lock(&mu_);
  welcome_[slot] = state;
}

void FakeSidecar::AnswerPings(bool answer) {
  sync::MutexLock lock(&mu_);
  answer_pings_ = answer;
}

void FakeSidecar::SetRingKey(const std::string& key) {
  sync::MutexLock lock(&mu_);
  ring_key_ = key;
}

void FakeSidecar::LetRest() {
  sync::MutexLock lock(&mu_);
  rests_ = true;
}

void FakeSidecar::SetPing(int ms) {
  sync::MutexLock lock(&mu_);
  ping_ms_ = ms;
}

void FakeSidecar::SetFence(int ms) {
  sync::MutexLock lock(&mu_);
  fence_ms_ = ms;
}

int FakeSidecar::hellos(int slot) {
  sync::MutexLock lock(&mu_);
  return hellos_[slot];
}

void FakeSidecar::Loop() {
  while (true) {
    std::vector<pollfd> waits;
    {
      sync::MutexLock lock(&mu_);
      if (closing_) return;
      waits.push_back({wake_, POLLIN, 0});
      waits.push_back({listener_, POLLIN, 0});
      for (const Peer& peer : peers_) waits.push_back({peer.fd, POLLIN, 0});
    }
    poll(waits.data(), waits.size(), 1000);
    sync::MutexLock lock(&mu_);
    eventfd_t ignored;
    eventfd_read(wake_, &ignored);
    for (size_t i = 0; i < peers_.size(); ++i) Read(&peers_[i]);
    std::erase_if(peers_, [](const Peer& peer) { return peer.fd < 0; });
    Accept();
    changed_.NotifyAll();
  }
}

void FakeSidecar::Accept() {
  pollfd wait{listener_, POLLIN, 0};
  if (poll(&wait, 1, 0) != 1) return;
  const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (fd >= 0) peers_.push_back({fd, -1, {}});
}

void FakeSidecar::Read(Peer* peer) {
  char buffer[65536];
  while (true) {
    const ssize_t n = recv(peer->fd, buffer, sizeof(buffer), MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN) break;
    if (n <= 0) {
      close(peer->fd);
      peer->fd = -1;
      break;
    }
    peer->reader.Feed({buffer, static_cast<size_t>(n)});
  }
  Json frame;
  while (peer->reader.Next(&frame) == FrameReader::Result::kFrame) Handle(peer, frame);
}

void FakeSidecar::Handle(Peer* peer, const Json& frame) {
  const std::string type = frame.at("t");
  if (type == "hello") {
    peer->slot = frame.at("slot");
    hello_[peer->slot] = frame;
    ++hellos_[peer->slot];
    const auto told = welcome_.find(peer->slot);
    Json welcome = {{"t", "welcome"},
                    {"version", 1},
                    {"job", "test"},
                    {"pod", "pod-0"},
                    {"slot", peer->slot},
                    {"incarnation", 1},
                    {"state", told == welcome_.end() ? "bootstrap" : told->second},
                    {"epoch", 0},
                    {"rank", peer->slot},
                    {"size", 1},
                    {"localRank", 0},
                    {"localSize", 1},
                    {"pingMs", ping_ms_},
                    {"fenceMs", fence_ms_}};
    if (rests_) welcome["rests"] = true;
    if (!ring_key_.empty()) welcome["ringKey"] = ring_key_;
    Write(peer->fd, welcome);
  } else if (type == "ping" && answer_pings_) {
    Write(peer->fd, {{"t", "pong"}, {"n", frame.at("n")}});
  }
  heard_[peer->slot].push_back(frame);
}

void FakeSidecar::Write(int fd, const Json& frame) {
  if (fd < 0) return;
  const std::string bytes = EncodeFrame(frame);
  (void)!send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

void FakeSidecar::Send(int slot, const Json& frame) {
  sync::MutexLock lock(&mu_);
  for (const Peer& peer : peers_) {
    if (peer.slot == slot) Write(peer.fd, frame);
  }
}

FakeSidecar::Json FakeSidecar::Await(int slot, const std::string& type,
                                     const std::function<bool(const Json&)>& matches) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  sync::MutexLock lock(&mu_);
  const Json* found = FindHeard(slot, type, matches);
  while (found == nullptr && changed_.WaitUntil(&mu_, deadline)) {
    found = FindHeard(slot, type, matches);
  }
  return found == nullptr ? Json() : *found;
}

const FakeSidecar::Json* FakeSidecar::FindHeard(int slot, const std::string& type,
                                                const std::function<bool(const Json&)>& matches) {
  const auto& frames = heard_[slot];
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
    if ((*frame)["t"] == type && (!matches || matches(*frame))) return &*frame;
  }
  return nullptr;
}

int FakeSidecar::heard(int slot, const std::string& type) {
  sync::MutexLock lock(&mu_);
  return CountHeard(slot, type);
}

bool FakeSidecar::AwaitHeard(int slot, const std::string& type, int count) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  sync::MutexLock lock(&mu_);
  while (CountHeard(slot, type) < count && changed_.WaitUntil(&mu_, deadline)) continue;
  return CountHeard(slot, type) >= count;
}

int FakeSidecar::CountHeard(int slot, const std::string& type) {
  const auto& frames = heard_[slot];
  return static_cast<int>(std::count_if(frames.begin(), frames.end(),
                                        [&](const Json& frame) { return frame["t"] == type; }));
}

bool FakeSidecar::AwaitGone(int slot) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  sync::MutexLock lock(&mu_);
  while (IsConnected(slot) && changed_.WaitUntil(&mu_, deadline)) continue;
  return !IsConnected(slot);
}

bool FakeSidecar::IsConnected(int slot) const {
  return std::any_of(peers_.begin(), peers_.end(),
                     [&](const Peer& peer) { return peer.slot == slot; });
}

uint64_t FakeSidecar::InstallView(const std::vector<int>& slots, const std::string& reason,
                                  const std::vector<int>& stop_first, bool train) {
  uint64_t parent, epoch;
  Json view;
  {
    sync::MutexLock lock(&mu_);
    parent = epoch_;
    epoch = ++epoch_;
  }
  for (int slot : stop_first) Send(slot, {{"t", "stop"}, {"epoch", parent}});
  for (int slot : stop_first)
    Await(slot, "stopped", [&](const Json& f) { return f["epoch"] == parent; });
  view = {{"epoch", epoch},        {"parent", parent}, {"reason", reason},
          {"train", train},        {"planned", false}, {"pods", Json::array({{{"uid", "pod-0"}}})},
          {"ranks", Json::array()}};
  {
    sync::MutexLock lock(&mu_);
    for (int slot : slots) {
      view["ranks"].push_back(
          {{"pod", 0}, {"slot", slot}, {"tcp", hello_[slot]["tcp"]}, {"shm", hello_[slot]["shm"]}});
    }
  }
  for (size_t rank = 0; rank < slots.size(); ++rank) {
    Send(slots[rank], {{"t", "view"}, {"view", view}, {"self", rank}});
  }
  return epoch;
}

}  // namespace ringmaster::sidecar_client
