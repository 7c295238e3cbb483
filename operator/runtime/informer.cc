#include "operator/runtime/informer.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include "common/logging/log.h"
#include "common/sync/pause.h"
#include "operator/runtime/jitter.h"

namespace ringmaster::runtime {
namespace {

constexpr std::chrono::seconds kSayAgain{60};
constexpr std::size_t kMaxGone = 4096;

// Versions of one resource are comparable as numbers where they are numbers (etcd's and ours are).
// nullopt: can't say.
std::optional<std::uint64_t> Version(const std::string& text) {
  std::uint64_t version = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), version);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return version;
}

bool IsOlder(const kube::Json& a, const kube::Json& b) {
  const auto va = Version(MetaField(a, "resourceVersion"));
  const auto vb = Version(MetaField(b, "resourceVersion"));
  return va && vb && *va < *vb;
}

void Wait(std::chrono::milliseconds duration, const std::stop_token& stop) {
  sync::Pause(stop, WithJitter(duration, 2));
}

}  // namespace

std::string MetaField(const kube::Json& object, const char* field) {
  const auto metadata = object.find("metadata");
  if (metadata == object.end() || !metadata->is_object()) return "";
  const auto value = metadata->find(field);
  return value != metadata->end() && value->is_string() ? value->get<std::string>() : "";
}

Informer::Key Informer::KeyOf(const kube::Json& object) {
  return {MetaField(object, "namespace"), MetaField(object, "name")};
}

Informer::Informer(std::shared_ptr<kube::KubeApi> api, const kube::Resource& resource,
                   InformerOptions options, Handler handler)
    : api_(std::move(api)),
      resource_(resource),
      options_(std::move(options)),
      handler_(std::move(handler)) {}

Informer::~Informer() { Stop(); }

void Informer::Start() {
  Turn();
  thread_ = std::jthread([this](std::stop_token stop) { Run(stop); });
}

void Informer::Stop() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  thread_.join();
}

bool Informer::WaitForSync(std::chrono::milliseconds timeout) {
  sync::MutexLock lock(&mu_);
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (!synced_ && synced_changed_.WaitUntil(&mu_, deadline)) {
  }
  return synced_;
}

std::string Informer::LastError() const {
  const sync::MutexLock lock(&mu_);
  return last_error_;
}

ObjectPtr Informer::Get(const std::string& ns, const std::string& name) const {
  const sync::MutexLock lock(&mu_);
  const auto at = objects_.find({ns, name});
  return at == objects_.end() ? nullptr : at->second;
}

std::vector<ObjectPtr> Informer::InNamespace(const std::string& ns) const {
  const sync::MutexLock lock(&mu_);
  std::vector<ObjectPtr> found;
  for (auto at = objects_.lower_bound({ns, ""}); at != objects_.end() && at->first.first == ns;
       ++at) {
    found.push_back(at->second);
  }
  return found;
}

bool Informer::Observe(const kube::Json& object) {
  const kube::Json kept = Kept(object);
  const sync::MutexLock lock(&mu_);
  // Written by us just before somebody deleted it: the answer must not bring it back.
  if (gone_.count({KeyOf(kept), MetaField(kept, "uid")}) != 0) return false;
  return PutLocked(kept);
}

kube::Json Informer::Kept(const kube::Json& object) const {
  return options_.keep ? options_.keep(object) : object;
}

// What the server tells of is there, also if it had gone: out of the selection and back.
bool Informer::Put(const kube::Json& object) {
  const sync::MutexLock lock(&mu_);
  gone_.erase({KeyOf(object), MetaField(object, "uid")});
  return PutLocked(object);
}

// What the list is newer than it replaces, also by something older: the server was restored from a
// backup.
bool Informer::PutListed(const kube::Json& object, std::optional<std::uint64_t> listed) {
  const sync::MutexLock lock(&mu_);
  const auto at = objects_.find(KeyOf(object));
  if (at != objects_.end()) {
    const auto version = Version(MetaField(*at->second, "resourceVersion"));
    if (version && listed && *version <= *listed) objects_.erase(at);
  }
  gone_.erase({KeyOf(object), MetaField(object, "uid")});
  return PutLocked(object);
}

bool Informer::PutLocked(const kube::Json& object) {
  ObjectPtr& slot = objects_[KeyOf(object)];
  // Old news: we have written it since, and put the result here ourselves.
  if (slot != nullptr && IsOlder(object, *slot)) return false;
  slot = std::make_shared<const kube::Json>(object);
  return true;
}

void Informer::Remove(const kube::Json& object) {
  const Key key = KeyOf(object);
  const sync::MutexLock lock(&mu_);
  if (gone_.size() >= kMaxGone) gone_.clear();  // the races that they are for take moments
  gone_.insert({key, MetaField(object, "uid")});
  const auto at = objects_.find(key);
  // The name may have been taken again already, by an object that we have made and put here
  // ourselves.
  if (at != objects_.end() && MetaField(*at->second, "uid") == MetaField(object, "uid")) {
    objects_.erase(at);
  }
}

// An API server that is away for an hour is told of some times, not at each try.
void Informer::Fail(const kube::Error& error) {
  const auto now = std::chrono::steady_clock::now();
  if (error.message != logged_error_ || now - logged_at_ >= kSayAgain) {
    spdlog::warn("list or watch failed resource={} error={}", resource_.plural,
                 logging::Value(error.message));
    logged_error_ = error.message;
    logged_at_ = now;
  }
  const sync::MutexLock lock(&mu_);
  last_error_ = error.message;
  ++failures_;
}

void Informer::Recovered() {
  if (logged_error_.empty()) return;
  logged_error_.clear();
  spdlog::info("list and watch go well again resource={}", resource_.plural);
  const sync::MutexLock lock(&mu_);
  last_error_.clear();
}

void Informer::Turn() {
  const sync::MutexLock lock(&mu_);
  last_turn_ = std::chrono::steady_clock::now();
}

Informer::State Informer::state() const {
  const sync::MutexLock lock(&mu_);
  return {.resource = options_.name.empty() ? resource_.plural : options_.name,
          .synced = synced_,
          .error = last_error_,
          .failures = failures_,
          .last_turn = last_turn_};
}

std::vector<ObjectPtr> Informer::All() const {
  const sync::MutexLock lock(&mu_);
  std::vector<ObjectPtr> all;
  all.reserve(objects_.size());
  for (const auto& [key, object] : objects_) all.push_back(object);
  return all;
}

bool Informer::Relist() {
  kube::ListOptions list_options;
  list_options.label_selector = options_.label_selector;
  const auto list = api_->ListAll(resource_, options_.ns, list_options);
  if (!list) {
    Fail(list.error());
    return false;
  }
  const auto listed = Version(list->resource_version);
  std::set<Key> seen;
  for (const kube::Json& item : list->items) {
    seen.insert(KeyOf(item));
    const kube::Json kept = Kept(item);
    if (PutListed(kept, listed)) handler_(kept, false);
  }
  std::vector<ObjectPtr> gone;
  {
    const sync::MutexLock lock(&mu_);
    for (const auto& [key, object] : objects_) {
      // What we made after the list was taken can't be in it.
      const auto version = Version(MetaField(*object, "resourceVersion"));
      const bool newer = version && listed && *version > *listed;
      if (seen.count(key) == 0 && !newer) gone.push_back(object);
    }
    for (const ObjectPtr& object : gone) {
      objects_.erase(KeyOf(*object));
    }
    synced_ = true;
    last_error_.clear();
  }
  Recovered();
  for (const ObjectPtr& object : gone) handler_(*object, true);
  synced_changed_.NotifyAll();
  resource_version_ = list->resource_version;
  return true;
}

bool Informer::OnWatchEvent(const kube::WatchEvent& event) {
  const std::string version = MetaField(event.object, "resourceVersion");
  if (!version.empty()) resource_version_ = version;
  switch (event.type) {
    case kube::WatchEvent::Type::kBookmark:
      return true;
    case kube::WatchEvent::Type::kDeleted:
      Remove(event.object);
      handler_(event.object, true);
      return true;
    default:
      const kube::Json kept = Kept(event.object);
      if (Put(kept)) handler_(kept, false);
      return true;
  }
}

// True: the watch went well, however it ended.
bool Informer::WatchOnce(std::stop_token stop, std::chrono::milliseconds backoff) {
  kube::WatchOptions watch;
  watch.label_selector = options_.label_selector;
  watch.resource_version = resource_version_;
  const auto began = std::chrono::steady_clock::now();
  bool news = false;
  const auto ended = api_->Watch(
      resource_, options_.ns, watch,
      [&](const kube::WatchEvent& event) {
        if (!std::exchange(news, true)) Recovered();
        return OnWatchEvent(event) && !stop.stop_requested();
      },
      stop);
  if (stop.stop_requested()) return true;
  if (news) backoff = options_.relist_backoff;  // it went well until now
  const bool gone = !ended && ended.error().code == kube::ErrorCode::kGone;
  const bool gone_before = std::exchange(expired_, gone && !news);
  if (ended) {
    const bool lasted = std::chrono::steady_clock::now() - began >= options_.short_watch;
    if (lasted) Recovered();
    // A server or proxy that closes every watch at once must not make us turn round hot.
    if (!news && !lasted) Wait(backoff, stop);
    return news || lasted;
  }
  Fail(ended.error());
  // Whatever went wrong, a new list is right; only 410 needs it.
  if (gone) resource_version_.clear();
  // It is the usual answer of a server that was away. That is over: no reason to wait as long as
  // for one that is still away, unless the list doesn't help.
  if (gone && !gone_before) backoff = options_.relist_backoff;
  Wait(std::max(backoff, ended.error().retry_after), stop);
  return news;
}

void Informer::Run(std::stop_token stop) {
  auto backoff = options_.relist_backoff;
  const auto longer = [&] { return std::min(backoff * 2, options_.max_relist_backoff); };
  while (!stop.stop_requested()) {
    Turn();
    if (resource_version_.empty() && !Relist()) {
      Wait(backoff, stop);
      backoff = longer();
      continue;
    }
    backoff = WatchOnce(stop, backoff) ? options_.relist_backoff : longer();
  }
}

}  // namespace ringmaster::runtime
