// Reading: Get, List, Watch. Writing is in store_write.cc, deletion and garbage collection in
// store_delete.cc.
#include "operator/local/store.h"

#include <algorithm>

#include "operator/kube/resources.h"
#include "operator/local/admission.h"

namespace ringmaster::local {
namespace {

std::optional<uint64_t> ParseVersion(const std::string& text) {
  if (text.empty() || text.size() > 19 ||
      !std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c); })) {
    return std::nullopt;
  }
  return std::stoull(text);
}

std::optional<CrdSchema> LoadCrd(const std::string& yaml) {
  if (yaml.empty()) return std::nullopt;
  auto schema = CrdSchema::FromYaml(yaml);
  return schema ? std::optional<CrdSchema>(std::move(*schema)) : std::nullopt;
}

struct Selectors {
  kube::LabelSelector labels;
  kube::FieldSelector fields;
  bool Match(const Json& object) const { return labels.Matches(object) && fields.Matches(object); }
};

Answer<Selectors> ParseSelectors(const Resource& resource, const std::string& labels,
                                 const std::string& fields) {
  auto l = kube::LabelSelector::Parse(labels);
  if (!l) return tl::unexpected(BadRequest(l.error()));
  auto f = kube::FieldSelector::Parse(fields, SelectableFields(resource));
  if (!f) return tl::unexpected(BadRequest(f.error()));
  return Selectors{*l, *f};
}

}  // namespace

tl::expected<void, std::string> CheckCrd(const std::string& crd_yaml) {
  auto schema = CrdSchema::FromYaml(crd_yaml);
  if (!schema) return tl::unexpected(schema.error());
  return {};
}

Store::Store(StoreOptions options)
    : options_(std::move(options)), crd_(LoadCrd(options_.crd_yaml)) {
  for (const Resource& resource : kube::AllResources()) buckets_[resource.plural];
  for (const char* ns : {"default", "kube-system"}) {
    (void)CreateLocked(kube::Namespaces(), "", {{"metadata", {{"name", ns}}}}, {});
  }
  // Their definition came after the first versions, as on a real cluster.
  buckets_[kube::HorovodJobs().plural].forgotten = version_;
}

std::string Store::Now() const {
  auto now = options_.now ? options_.now() : std::chrono::system_clock::now();
  std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

Store::Object Store::Find(const Resource& resource, const std::string& ns,
                          const std::string& name) const {
  const auto& objects = BucketOf(resource).objects;
  auto it = objects.find({resource.namespaced ? ns : "", name});
  return it == objects.end() ? nullptr : it->second;
}

Answer<Json> Store::Get(const Resource& resource, const std::string& ns,
                        const std::string& name) const {
  std::lock_guard lock(mu_);
  Object object = Find(resource, ns, name);
  if (!object) return tl::unexpected(NotFound(resource, name));
  return *object;
}

Answer<ListAnswer> Store::List(const Resource& resource, const std::string& ns,
                               const ListRequest& request) const {
  auto selectors = ParseSelectors(resource, request.label_selector, request.field_selector);
  if (!selectors) return tl::unexpected(selectors.error());
  std::vector<Object> matching;
  ListAnswer answer;
  {
    std::lock_guard lock(mu_);
    uint64_t version = version_;
    Key after;
    if (!request.continue_token.empty()) {
      // "version/namespace/name" of the last item given: the list goes on in the old state.
      const std::string& token = request.continue_token;
      size_t first = token.find('/'), second = token.find('/', first + 1);
      auto at = ParseVersion(token.substr(0, first));
      if (first == std::string::npos || second == std::string::npos || !at || *at > version_) {
        return tl::unexpected(
            BadRequest("invalid continue token: continue key is not valid: " + token));
      }
      if (*at < BucketOf(resource).forgotten) {
        return tl::unexpected(Failure(410, "Expired",
                                      "The provided continue parameter is too old to display a "
                                      "consistent list result."));
      }
      version = *at;
      after = {token.substr(first + 1, second - first - 1), token.substr(second + 1)};
    }
    answer.resource_version = std::to_string(version);
    const std::map<Key, Object> then =
        version == version_ ? std::map<Key, Object>() : StateAt(resource, version);
    const auto& objects = version == version_ ? BucketOf(resource).objects : then;
    for (auto it = objects.upper_bound(after); it != objects.end(); ++it) {
      if (!ns.empty() && resource.namespaced && it->first.first != ns) continue;
      if (selectors->Match(*it->second)) matching.push_back(it->second);
    }
  }
  size_t limit = request.limit > 0 ? static_cast<size_t>(request.limit) : matching.size();
  for (size_t i = 0; i < std::min(limit, matching.size()); ++i)
    answer.items.push_back(*matching[i]);
  if (limit < matching.size()) {
    const Json& meta = answer.items.back()["metadata"];
    // With a selector nobody has counted.
    bool counted = request.label_selector.empty() && request.field_selector.empty();
    answer.remaining = counted ? matching.size() - limit : 0;
    answer.continue_token = answer.resource_version + "/" + meta.value("namespace", "") + "/" +
                            meta["name"].get<std::string>();
  }
  return answer;
}

// The objects as they were, from those of now and what has happened since.
std::map<Store::Key, Store::Object> Store::StateAt(const Resource& resource,
                                                   uint64_t version) const {
  const Bucket& bucket = BucketOf(resource);
  std::map<Key, Object> objects = bucket.objects;
  for (auto event = bucket.history.rbegin();
       event != bucket.history.rend() && event->version > version; ++event) {
    const Json& meta = (event->before ? *event->before : *event->after)["metadata"];
    Key key{meta.value("namespace", ""), meta["name"].get<std::string>()};
    if (event->before) {
      objects[key] = event->before;
    } else {
      objects.erase(key);
    }
  }
  return objects;
}

uint64_t Store::version() const {
  std::lock_guard lock(mu_);
  return version_;
}

void Store::Close() {
  std::lock_guard lock(mu_);
  closed_ = true;
  changed_.notify_all();
}

void Store::WakeAll() {
  std::lock_guard lock(mu_);
  ++wakes_;
  changed_.notify_all();
}

Answer<WatchCursor> Store::Watch(const Resource& resource, const std::string& ns,
                                 const WatchRequest& request) {
  auto selectors = ParseSelectors(resource, request.label_selector, request.field_selector);
  if (!selectors) return tl::unexpected(selectors.error());
  WatchCursor cursor;
  cursor.store_ = this;
  cursor.resource_ = kube::FindResource(resource.group, resource.version, resource.plural);
  cursor.ns_ = resource.namespaced ? ns : "";
  cursor.labels_ = selectors->labels;
  cursor.fields_ = selectors->fields;
  std::lock_guard lock(mu_);
  const Bucket& bucket = BucketOf(resource);
  if (request.resource_version.empty() || request.resource_version == "0") {
    cursor.version_ = version_;
    for (const auto& [key, object] : bucket.objects) {
      if (!cursor.ns_.empty() && key.first != cursor.ns_) continue;
      if (selectors->Match(*object)) cursor.initial_.push_back(*object);
    }
    return cursor;
  }
  auto version = ParseVersion(request.resource_version);
  if (!version) {
    return tl::unexpected(BadRequest("Invalid value: \"" + request.resource_version +
                                     "\": invalid resource version"));
  }
  // A version from the future is one of an earlier life of this store: its reader must list again.
  if (*version < bucket.forgotten || *version > version_) {
    return tl::unexpected(Expired(*version, bucket.forgotten));
  }
  cursor.version_ = *version;
  return cursor;
}

Answer<std::optional<kube::WatchEvent>> WatchCursor::Next(std::chrono::milliseconds timeout) {
  using Type = kube::WatchEvent::Type;
  if (!initial_.empty()) {
    kube::WatchEvent event{Type::kAdded, std::move(initial_.front())};
    initial_.pop_front();
    return event;
  }
  auto deadline = std::chrono::steady_clock::now() + timeout;
  auto match = [&](const std::shared_ptr<const Json>& object) {
    if (!object) return false;
    if (!ns_.empty() && (*object)["metadata"].value("namespace", "") != ns_) return false;
    return labels_.Matches(*object) && fields_.Matches(*object);
  };
  std::unique_lock lock(store_->mu_);
  const auto& bucket = store_->BucketOf(*resource_);
  uint64_t wakes = store_->wakes_;
  while (true) {
    if (version_ < bucket.forgotten) return tl::unexpected(Expired(version_, bucket.forgotten));
    auto it = std::upper_bound(bucket.history.begin(), bucket.history.end(), version_,
                               [](uint64_t v, const auto& event) { return v < event.version; });
    for (; it != bucket.history.end(); ++it) {
      version_ = it->version;
      bool before = match(it->before), after = match(it->after);
      if (after) return kube::WatchEvent{before ? Type::kModified : Type::kAdded, *it->after};
      // Deleted, or no longer what the selectors ask for.
      if (before) return kube::WatchEvent{Type::kDeleted, it->after ? *it->after : *it->gone};
    }
    version_ = std::max(version_, store_->version_);
    if (store_->closed_ || store_->wakes_ != wakes ||
        store_->changed_.wait_until(lock, deadline) == std::cv_status::timeout) {
      return std::nullopt;
    }
  }
}

}  // namespace ringmaster::local
