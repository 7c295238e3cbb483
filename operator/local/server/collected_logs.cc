#include "operator/local/server/collected_logs.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

#include "common/fields/fields.h"
#include "operator/kube/resources.h"
#include "operator/kubelet/log_folder.h"

namespace ringmaster::local {
namespace {

namespace fs = std::filesystem;

std::string KeyOf(const std::string& uid, const std::string& container) {
  return uid + "/" + container;
}

std::uint64_t SizeOf(const fs::path& file) {
  std::error_code error;
  const auto size = fs::file_size(file, error);
  return error ? 0 : size;
}

// Where not all of it can be written, nothing of it stays: the node sends the piece again.
tl::expected<void, std::string> Append(const fs::path& file, std::string_view bytes) {
  std::error_code ignored;
  fs::create_directories(file.parent_path(), ignored);
  const int fd = open(file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  if (fd < 0) return tl::unexpected(std::string(std::strerror(errno)));
  const off_t before = lseek(fd, 0, SEEK_END);
  int error = before < 0 ? errno : 0;
  while (error == 0 && !bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written > 0)
      bytes.remove_prefix(static_cast<size_t>(written));
    else if (written == 0 || errno != EINTR)
      error = written == 0 ? ENOSPC : errno;
  }
  if (error != 0 && before >= 0 && ftruncate(fd, before) != 0) error = errno;
  // Some file systems say only here that there was no room.
  if (close(fd) != 0 && error == 0) {
    error = errno;
    fs::resize_file(file, static_cast<std::uintmax_t>(before), ignored);
  }
  if (error != 0) return tl::unexpected(std::string(std::strerror(error)));
  return {};
}

// Of the status; null: the kubelet has said nothing of it.
const Json& StateOf(const Json& pod, const std::string& container) {
  for (const char* list : {"/status/containerStatuses", "/status/initContainerStatuses"}) {
    for (const Json& status : fields::ListAt(pod, list)) {
      if (fields::Text(status, "name") == container) return status;
    }
  }
  static const Json kNone;
  return kNone;
}

bool HasStarted(const Json& status) {
  const Json& state = fields::Member(status, "state");
  return state.contains("running") || state.contains("terminated") ||
         fields::Integer(status, "restartCount") > 0;
}

}  // namespace

CollectedLogs::CollectedLogs(fs::path dir, std::shared_ptr<Store> store)
    : dir_(std::move(dir)), store_(std::move(store)) {}

fs::path CollectedLogs::FileOf(const std::string& ns, const std::string& pod,
                               const std::string& container) const {
  return dir_ / kubelet::LogFolder(ns, pod) / (container + ".log");
}

Answer<Json> CollectedLogs::Take(const Json& body) {
  const auto chunk = kubelet::ParseLogChunk(body);
  if (!chunk) return tl::unexpected(BadRequest(chunk.error()));
  const fs::path file = FileOf(chunk->ns, chunk->pod, chunk->container);
  const sync::MutexLock lock(&mu_);
  const auto [it, first] = logs_.try_emplace(KeyOf(chunk->uid, chunk->container));
  Log& log = it->second;
  // The node's file may begin with the output of an earlier pod of the name.
  if (first) log = {chunk->at, {file, SizeOf(file), chunk->running}};
  if (chunk->at != log.next) return kubelet::LogAnswer(log.next);
  const std::uint64_t size = SizeOf(file);
  if (!chunk->bytes.empty()) {
    const auto appended = Append(file, chunk->bytes);
    if (!appended)
      return tl::unexpected(
          Failure(500, "InternalError", "can't write " + file.string() + ": " + appended.error()));
  }
  if (chunk->start >= chunk->at) {
    const std::uint64_t begins = size + (chunk->start - chunk->at);
    if (!first && begins != log.file.offset) log.file.previous = log.file.offset;
    log.file.offset = begins;
  }
  log.next += chunk->bytes.size();
  log.file.running = chunk->running;
  return kubelet::LogAnswer(log.next);
}

Answer<LogFile> CollectedLogs::Find(const std::string& ns, const std::string& pod,
                                    const std::string& container) {
  const auto object = store_->Get(kube::Pods(), ns, pod);
  if (!object) return tl::unexpected(object.error());
  std::string name = container;
  const Json& mains = fields::ListAt(*object, "/spec/containers");
  if (name.empty() && !mains.empty()) name = fields::Text(mains[0], "name");
  {
    const sync::MutexLock lock(&mu_);
    const auto log = logs_.find(KeyOf(fields::TextAt(*object, "/metadata/uid"), name));
    if (log != logs_.end()) return log->second.file;
  }
  const Json& status = StateOf(*object, name);
  if (status.is_null()) {
    return tl::unexpected(
        BadRequest("container \"" + name + "\" of pod \"" + pod + "\" has no log"));
  }
  if (!HasStarted(status)) {
    return tl::unexpected(
        BadRequest("container \"" + name + "\" in pod \"" + pod + "\" is waiting to start"));
  }
  const fs::path file = FileOf(ns, pod, name);
  return LogFile{file, SizeOf(file), true};
}

}  // namespace ringmaster::local
