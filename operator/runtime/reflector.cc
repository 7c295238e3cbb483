#include "operator/runtime/reflector.h"

#include <malloc.h>

#include <algorithm>
#include <utility>

#include "common/sync/pause.h"
#include "operator/runtime/jitter.h"

// Of jemalloc: null in a program that isn't linked with it.
extern "C" int mallctl(const char* name, void* old, size_t* old_size, void* value, size_t size)
    __attribute__((weak));

namespace ringmaster::runtime {
namespace {

// A parsed chunk of pods takes some megabytes.
constexpr int kChunk = 250;

void Wait(std::chrono::milliseconds duration, const std::stop_token& stop) {
  sync::Pause(stop, WithJitter(duration, 2));
}

// Gives free memory back to the kernel, where it is glibc's allocator that has it: jemalloc does so
// by itself. With jemalloc or AddressSanitizer the heap of glibc is never set up, and glibc crashes
// when two threads then trim it at once.
void ReturnFreeMemory() {
#ifdef __has_feature  // clang's, which compiles for the sanitizers
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  return;
#endif
#endif
  if (mallctl == nullptr) malloc_trim(0);
}

}  // namespace

Reflector::Reflector(std::shared_ptr<kube::KubeApi> api, const kube::Resource& resource,
                     ReflectorOptions options, Handler handler)
    : api_(std::move(api)),
      resource_(resource),
      options_(std::move(options)),
      feed_(options_.objects, std::move(handler)),
      health_(resource.plural + (options_.ns.empty() ? "" : " of " + options_.ns)) {}

Reflector::~Reflector() { Stop(); }

void Reflector::Start() {
  health_.SetTurn();
  thread_ = std::jthread([this](std::stop_token stop) { Run(stop); });
}

void Reflector::Stop() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
}

bool Reflector::WaitForSync(std::chrono::milliseconds timeout) {
  return health_.WaitForSync(timeout);
}

bool Reflector::Relist() {
  kube::ListOptions list_options;
  list_options.label_selector = options_.label_selector;
  // Lists in chunks, so that the full objects are never all in memory at once.
  list_options.chunk = kChunk;
  list_options.unread = options_.objects.unread;
  list_options.on_chunk = [this](std::vector<kube::Json> chunk, const std::string& version,
                                 bool first) {
    if (first) feed_.BeginList();
    for (kube::Json& object : chunk) feed_.TakeListed(std::move(object), version);
  };
  feed_.ListBegins();
  feed_.BeginList();
  auto list = api_->ListAll(resource_, options_.ns, list_options);
  if (!list) {
    health_.Failed(list.error());
    return false;
  }
  // A server without chunks returns the items instead.
  for (kube::Json& object : list->items)
    feed_.TakeListed(std::move(object), list->resource_version);
  feed_.EndList(list->resource_version, [this] {
    health_.SetSynced();
    health_.Recovered();
  });
  resource_version_ = list->resource_version;
  ReturnFreeMemory();  // the next list may be far away
  return true;
}

void Reflector::OnWatchEvent(kube::WatchEvent event) {
  const std::string version = MetaField(event.object, "resourceVersion");
  if (!version.empty()) resource_version_ = version;
  switch (event.type) {
    case kube::WatchEvent::Type::kBookmark:
      return;
    case kube::WatchEvent::Type::kDeleted:
      return feed_.TakeDeleted(event.object);
    default:
      return feed_.TakeWatched(std::move(event.object));
  }
}

// Returns true if the watch had events or lasted, however it ended.
bool Reflector::WatchOnce(std::stop_token stop, std::chrono::milliseconds backoff) {
  kube::WatchOptions watch;
  watch.label_selector = options_.label_selector;
  watch.resource_version = resource_version_;
  watch.unread = options_.objects.unread;
  const auto began = std::chrono::steady_clock::now();
  bool news = false;
  const auto ended = api_->Watch(
      resource_, options_.ns, watch,
      [&](kube::WatchEvent event) {
        if (!std::exchange(news, true)) health_.Recovered();
        OnWatchEvent(std::move(event));
        return !stop.stop_requested();
      },
      stop);
  if (stop.stop_requested()) return true;
  if (news) backoff = options_.relist_backoff;  // the watch worked until now
  const bool gone = !ended && ended.error().code == kube::ErrorCode::kGone;
  const bool gone_before = std::exchange(expired_, gone && !news);
  // A proxy may cut every watch that is quiet for long. An answer with an error is no watch,
  // however long the server took for it.
  const bool answered = !ended && ended.error().http_status != 0;
  const bool lasted = !answered && std::chrono::steady_clock::now() - began >= options_.short_watch;
  if (lasted) backoff = options_.relist_backoff;
  if (ended) {
    if (lasted) health_.Recovered();
    // If a server or proxy closes every watch at once, we must not retry without a pause.
    if (!news && !lasted) Wait(backoff, stop);
    return news || lasted;
  }
  health_.Failed(ended.error());
  // Only 410 makes a new list necessary; after other errors the watch continues.
  if (gone) resource_version_.clear();
  // A server that comes back after an outage usually answers 410. Since it is reachable again, the
  // wait starts from the beginning, unless 410 comes again after a list.
  if (gone && !gone_before) backoff = options_.relist_backoff;
  // The server may be back long before a proxy expects it.
  Wait(std::max(backoff, std::min(ended.error().retry_after, options_.max_relist_backoff)), stop);
  return news || lasted;
}

void Reflector::Run(std::stop_token stop) {
  auto backoff = options_.relist_backoff;
  const auto longer = [&] { return std::min(backoff * 2, options_.max_relist_backoff); };
  while (!stop.stop_requested()) {
    health_.SetTurn();
    if (resource_version_.empty() && !Relist()) {
      Wait(backoff, stop);
      backoff = longer();
      continue;
    }
    backoff = WatchOnce(stop, backoff) ? options_.relist_backoff : longer();
  }
}

}  // namespace ringmaster::runtime
