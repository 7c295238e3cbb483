#include "operator/runtime/reflector.h"

#include <malloc.h>

#include <algorithm>
#include <utility>

#include "common/sync/pause.h"
#include "operator/runtime/jitter.h"

namespace ringmaster::runtime {
namespace {

// A parsed chunk of pods takes some megabytes.
constexpr int kChunk = 250;

std::string TextKey(const kube::Json& object) {
  return MetaField(object, "namespace") + "/" + MetaField(object, "name");
}

kube::Json Stub(const std::string& ns, const std::string& name, const std::string& uid) {
  return {{"metadata", {{"namespace", ns}, {"name", name}, {"uid", uid}}}};
}

void Wait(std::chrono::milliseconds duration, const std::stop_token& stop) {
  sync::Pause(stop, WithJitter(duration, 2));
}

// Gives free memory back to the kernel. AddressSanitizer has a heap of its own and never sets up
// the one of glibc, which crashes when two threads then trim it at once.
void ReturnFreeMemory() {
#ifdef __has_feature  // clang's, which compiles for the sanitizers
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  return;
#endif
#endif
  malloc_trim(0);
}

}  // namespace

Reflector::Reflector(std::shared_ptr<kube::KubeApi> api, const kube::Resource& resource,
                     ReflectorOptions options, Handler handler)
    : api_(std::move(api)),
      resource_(resource),
      options_(std::move(options)),
      handler_(std::move(handler)),
      cache_(options_.index),
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

std::vector<ObjectPtr> Reflector::All() const { return cache_.All(); }

ObjectPtr Reflector::Get(const std::string& ns, const std::string& name) const {
  return cache_.Get(ns, name);
}

std::vector<ObjectPtr> Reflector::Indexed(const std::string& value) const {
  return cache_.Indexed(value);
}

bool Reflector::Observe(const kube::Json& object) {
  kube::Json kept = Kept(object);
  return Stores(kept) && cache_.PutWritten(std::move(kept));
}

kube::Json Reflector::Kept(kube::Json object) const {
  return options_.keep ? options_.keep(std::move(object)) : object;
}

bool Reflector::Relist() {
  kube::ListOptions list_options;
  list_options.label_selector = options_.label_selector;
  // Lists in chunks, so that the full objects are never all in memory at once.
  list_options.chunk = kChunk;
  list_options.on_chunk = [this](std::vector<kube::Json> chunk, const std::string& version,
                                 bool first) {
    if (first) listed_.clear();
    for (kube::Json& object : chunk) TakeListed(std::move(object), version);
  };
  listed_.clear();
  auto list = api_->ListAll(resource_, options_.ns, list_options);
  if (!list) {
    health_.Failed(list.error());
    return false;
  }
  // A server without chunks returns the items instead.
  for (kube::Json& object : list->items) TakeListed(std::move(object), list->resource_version);
  ForgetUnlisted(list->resource_version);
  resource_version_ = list->resource_version;
  ReturnFreeMemory();  // the next list may be far away
  return true;
}

void Reflector::TakeListed(kube::Json object, const std::string& list_version) {
  listed_.insert(ObjectCache::KeyOf(object));
  kube::Json kept = Kept(std::move(object));
  if (!Stores(kept)) return PassOn(kept);
  TellReplaced(kept);
  if (cache_.PutListed(kept, list_version)) Tell(kept);
}

void Reflector::TakeWatched(kube::Json object) {
  kube::Json kept = Kept(std::move(object));
  if (!Stores(kept)) return PassOn(kept);
  TellReplaced(kept);
  if (cache_.Put(kept)) Tell(kept);
}

void Reflector::PassOn(const kube::Json& kept) {
  if (const ObjectPtr stored = cache_.Get(MetaField(kept, "namespace"), MetaField(kept, "name"))) {
    cache_.Remove(*stored);  // the object used to be among the stored ones
    told_.erase(TextKey(kept));
    handler_(*stored, true);
  }
  TellReplaced(kept);
  Tell(kept);
}

void Reflector::Tell(const kube::Json& kept) {
  told_[TextKey(kept)] = MetaField(kept, "uid");
  handler_(kept, false);
}

// Another object has the name now, and the deletion of the earlier one was not reported.
void Reflector::TellReplaced(const kube::Json& by) {
  const auto told = told_.find(TextKey(by));
  if (told == told_.end() || told->second == MetaField(by, "uid")) return;
  const std::string ns = MetaField(by, "namespace"), name = MetaField(by, "name"),
                    uid = told->second;
  told_.erase(told);
  const ObjectPtr last = cache_.Get(ns, name);
  if (last == nullptr || MetaField(*last, "uid") != uid) return handler_(Stub(ns, name, uid), true);
  cache_.Remove(*last);
  handler_(*last, true);
}

void Reflector::ForgetTold(const kube::Json& object) {
  const auto told = told_.find(TextKey(object));
  if (told != told_.end() && told->second == MetaField(object, "uid")) told_.erase(told);
}

void Reflector::ForgetUnlisted(const std::string& list_version) {
  const auto gone = cache_.RemoveUnlisted(listed_, list_version);
  for (const ObjectPtr& object : gone) ForgetTold(*object);
  std::vector<kube::Json> others;
  std::erase_if(told_, [&](const auto& object) {
    const std::size_t slash = object.first.find('/');
    const ObjectCache::Key key{object.first.substr(0, slash), object.first.substr(slash + 1)};
    if (listed_.count(key) != 0) return false;
    const ObjectPtr stored = cache_.Get(key.first, key.second);  // not null: newer than the list
    if (stored != nullptr && MetaField(*stored, "uid") == object.second) return false;
    others.push_back(Stub(key.first, key.second, object.second));
    return true;
  });
  listed_.clear();
  health_.SetSynced();
  health_.Recovered();
  for (const ObjectPtr& object : gone) handler_(*object, true);
  for (const kube::Json& object : others) handler_(object, true);
}

bool Reflector::OnWatchEvent(kube::WatchEvent event) {
  const std::string version = MetaField(event.object, "resourceVersion");
  if (!version.empty()) resource_version_ = version;
  switch (event.type) {
    case kube::WatchEvent::Type::kBookmark:
      return true;
    case kube::WatchEvent::Type::kDeleted:
      cache_.Remove(event.object);
      ForgetTold(event.object);
      handler_(event.object, true);
      return true;
    default:
      TakeWatched(std::move(event.object));
      return true;
  }
}

// Returns true if the watch had events or lasted, however it ended.
bool Reflector::WatchOnce(std::stop_token stop, std::chrono::milliseconds backoff) {
  kube::WatchOptions watch;
  watch.label_selector = options_.label_selector;
  watch.resource_version = resource_version_;
  const auto began = std::chrono::steady_clock::now();
  bool news = false;
  const auto ended = api_->Watch(
      resource_, options_.ns, watch,
      [&](const kube::WatchEvent& event) {
        if (!std::exchange(news, true)) health_.Recovered();
        return OnWatchEvent(event) && !stop.stop_requested();
      },
      stop);
  if (stop.stop_requested()) return true;
  if (news) backoff = options_.relist_backoff;  // the watch worked until now
  const bool gone = !ended && ended.error().code == kube::ErrorCode::kGone;
  const bool gone_before = std::exchange(expired_, gone && !news);
  if (ended) {
    const bool lasted = std::chrono::steady_clock::now() - began >= options_.short_watch;
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
  Wait(std::max(backoff, ended.error().retry_after), stop);
  return news;
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
