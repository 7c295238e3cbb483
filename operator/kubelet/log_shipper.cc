#include "operator/kubelet/log_shipper.h"

#include <pthread.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <utility>

#include "common/sync/pause.h"
#include "operator/kubelet/log_chunk.h"

namespace ringmaster::kubelet {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLook{100};
constexpr std::chrono::milliseconds kServerAway{1000};
constexpr std::size_t kMostBytes = 256 * 1024;

std::string ReadFrom(const std::filesystem::path& file, std::uint64_t at) {
  std::ifstream in(file, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(at));
  std::string bytes(kMostBytes, '\0');
  in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, in.gcount())));
  return bytes;
}

}  // namespace

LogShipper::LogShipper(std::shared_ptr<kube::KubeApi> api,
                       std::function<std::vector<PodLogFile>()> list)
    : api_(std::move(api)), list_(std::move(list)) {}

LogShipper::~LogShipper() {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

void LogShipper::Start() {
  thread_ = std::jthread([this](std::stop_token stop) { Run(std::move(stop)); });
}

bool LogShipper::Stop(std::chrono::milliseconds patience) {
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
  // Of containers that have begun since the last look, too.
  TakeNew();
  for (auto& [key, log] : logs_) log.file.log.running = false;
  const auto end = Clock::now() + patience;
  while (!ShipAll()) {
    if (Clock::now() >= end) return false;
    sync::Pause({}, kLook);
  }
  return true;
}

void LogShipper::Run(std::stop_token stop) {
  pthread_setname_np(pthread_self(), "log-shipper");
  while (!stop.stop_requested()) {
    TakeNew();
    sync::Pause(stop, ShipAll() ? kLook : kServerAway);
  }
}

void LogShipper::TakeNew() {
  std::set<std::string> there;
  for (PodLogFile& file : list_()) {
    const std::string key = file.uid + "/" + file.container;
    there.insert(key);
    const auto [it, first] = logs_.try_emplace(key);
    if (first) it->second.sent = file.log.offset;
    // A container that has started again goes on with its log.
    if (file.log.running || file.log.offset != it->second.file.log.offset) it->second.ended = false;
    it->second.file = std::move(file);
  }
  for (auto& [key, log] : logs_) {
    if (!there.contains(key)) log.file.log.running = false;
  }
  std::erase_if(
      logs_, [&](const auto& entry) { return entry.second.ended && !there.contains(entry.first); });
}

bool LogShipper::ShipAll() {
  return std::all_of(logs_.begin(), logs_.end(),
                     [this](auto& entry) { return Ship(&entry.second); });
}

bool LogShipper::Ship(Log* log) {
  const PodLogFile& file = log->file;
  while (!log->ended) {
    LogChunk chunk{file.ns,   file.pod,        file.uid, file.container,
                   log->sent, file.log.offset, true,     ""};
    chunk.bytes = ReadFrom(file.log.file, log->sent);
    // It had ended before the file was read, so what it wrote was there.
    const bool last = !file.log.running && chunk.bytes.size() < kMostBytes;
    chunk.running = !last;
    if (chunk.bytes.empty() && log->begun && !last) return true;
    const auto taken = api_->Create(LogChunks(), file.ns, ToJson(chunk));
    if (!taken) return false;
    log->begun = true;
    const std::uint64_t next = NextOf(*taken);
    const bool whole = next == log->sent + chunk.bytes.size();
    log->sent = next;
    if (whole && last) log->ended = true;
    if (whole && chunk.bytes.size() < kMostBytes) return true;
  }
  return true;
}

}  // namespace ringmaster::kubelet
