#include "operator/runtime/reflector.h"

#include <algorithm>
#include <set>
#include <utility>

#include "common/sync/pause.h"
#include "operator/runtime/jitter.h"

namespace ringmaster::runtime {
namespace {

void Wait(std::chrono::milliseconds duration, const std::stop_token& stop) {
  sync::Pause(stop, WithJitter(duration, 2));
}

}  // namespace

Reflector::Reflector(std::shared_ptr<kube::KubeApi> api, const kube::Resource& resource,
                     ReflectorOptions options, Handler handler)
    : api_(std::move(api)),
      resource_(resource),
      options_(std::move(options)),
      handler_(std::move(handler)),
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

std::vector<ObjectPtr> Reflector::InNamespace(const std::string& ns) const {
  return cache_.InNamespace(ns);
}

bool Reflector::Observe(const kube::Json& object) { return cache_.PutWritten(Kept(object)); }

kube::Json Reflector::Kept(const kube::Json& object) const {
  return options_.keep ? options_.keep(object) : object;
}

bool Reflector::Relist() {
  kube::ListOptions list_options;
  list_options.label_selector = options_.label_selector;
  const auto list = api_->ListAll(resource_, options_.ns, list_options);
  if (!list) {
    health_.Failed(list.error());
    return false;
  }
  std::set<ObjectCache::Key> listed;
  for (const kube::Json& item : list->items) {
    listed.insert(ObjectCache::KeyOf(item));
    const kube::Json kept = Kept(item);
    if (cache_.PutListed(kept, list->resource_version)) handler_(kept, false);
  }
  const auto gone = cache_.RemoveUnlisted(listed, list->resource_version);
  health_.SetSynced();
  health_.Recovered();
  for (const ObjectPtr& object : gone) handler_(*object, true);
  resource_version_ = list->resource_version;
  return true;
}

bool Reflector::OnWatchEvent(const kube::WatchEvent& event) {
  const std::string version = MetaField(event.object, "resourceVersion");
  if (!version.empty()) resource_version_ = version;
  switch (event.type) {
    case kube::WatchEvent::Type::kBookmark:
      return true;
    case kube::WatchEvent::Type::kDeleted:
      cache_.Remove(event.object);
      handler_(event.object, true);
      return true;
    default:
      const kube::Json kept = Kept(event.object);
      if (cache_.Put(kept)) handler_(kept, false);
      return true;
  }
}

// True: the watch went well, however it ended.
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
  if (news) backoff = options_.relist_backoff;  // it went well until now
  const bool gone = !ended && ended.error().code == kube::ErrorCode::kGone;
  const bool gone_before = std::exchange(expired_, gone && !news);
  if (ended) {
    const bool lasted = std::chrono::steady_clock::now() - began >= options_.short_watch;
    if (lasted) health_.Recovered();
    // A server or proxy that closes every watch at once must not make us turn round hot.
    if (!news && !lasted) Wait(backoff, stop);
    return news || lasted;
  }
  health_.Failed(ended.error());
  // Whatever went wrong, a new list is right; only 410 needs it.
  if (gone) resource_version_.clear();
  // It is the usual answer of a server that was away. That is over: no reason to wait as long as
  // for one that is still away, unless the list doesn't help.
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
