// A cache of one resource, kept up to date by list and watch. It lists again when the watch has
// lost its place (410), with jitter, so that many operators don't do so at once.
//
// Thread rule: every method is safe from any thread. The handler is called from the informer's
// thread, never under a lock.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/sync/mutex.h"
#include "operator/kube/kube_api.h"

namespace ringmaster::runtime {

using ObjectPtr = std::shared_ptr<const kube::Json>;

struct InformerOptions {
  std::string ns;  // empty: all
  std::string label_selector;
  std::function<kube::Json(const kube::Json&)> keep;  // what is stored and handed on; none: all
  std::chrono::milliseconds relist_backoff{200};
  std::chrono::milliseconds max_relist_backoff{30'000};
  // A watch that ends sooner than this, and had no news, is not begun again at once.
  std::chrono::milliseconds short_watch{1'000};
  std::string name;  // in state(), if there is another cache of the resource
};

class Informer {
 public:
  // `object` is the newest state; for a deleted object its last one.
  using Handler = std::function<void(const kube::Json& object, bool deleted)>;

  Informer(std::shared_ptr<kube::KubeApi> api, const kube::Resource& resource,
           InformerOptions options, Handler handler);
  ~Informer();
  Informer(const Informer&) = delete;

  void Start();
  void Stop();  // joins
  // False if the first list has not succeeded within `timeout`; LastError() says why.
  bool WaitForSync(std::chrono::milliseconds timeout);
  std::string LastError() const;

  struct State {
    std::string resource;  // plural, or the cache's name
    bool synced = false;
    std::string error;  // of the last list or watch; empty: it went well
    std::uint64_t failures = 0;
    // When the thread last began a list or a watch; a watch takes a few minutes.
    std::chrono::steady_clock::time_point last_turn;
  };
  State state() const;

  std::vector<ObjectPtr> All() const;
  ObjectPtr Get(const std::string& ns, const std::string& name) const;
  std::vector<ObjectPtr> InNamespace(const std::string& ns) const;
  // An object that we have just written: the cache must not be older than our own writes. False: it
  // is newer already.
  bool Observe(const kube::Json& object);

 private:
  using Key = std::pair<std::string, std::string>;
  static Key KeyOf(const kube::Json& object);

  void Run(std::stop_token stop);
  bool Relist();
  bool OnWatchEvent(const kube::WatchEvent& event);
  kube::Json Kept(const kube::Json& object) const;
  bool Put(const kube::Json& object);
  bool PutListed(const kube::Json& object, std::optional<std::uint64_t> listed);
  bool PutLocked(const kube::Json& object) REQUIRES(mu_);
  void Remove(const kube::Json& object);
  void Fail(const kube::Error& error);
  void Recovered();
  void Turn();
  bool WatchOnce(std::stop_token stop, std::chrono::milliseconds backoff);

  const std::shared_ptr<kube::KubeApi> api_;
  const kube::Resource resource_;
  const InformerOptions options_;
  const Handler handler_;
  std::string resource_version_;  // informer thread only, as these; empty: list first
  bool expired_ = false;          // the last watch was refused with 410
  std::string logged_error_;
  std::chrono::steady_clock::time_point logged_at_;

  mutable sync::Mutex mu_;
  sync::CondVar synced_changed_;
  bool synced_ GUARDED_BY(mu_) = false;
  std::string last_error_ GUARDED_BY(mu_);
  std::uint64_t failures_ GUARDED_BY(mu_) = 0;
  std::chrono::steady_clock::time_point last_turn_ GUARDED_BY(mu_);
  std::set<std::pair<Key, std::string>> gone_ GUARDED_BY(mu_);  // deleted ones, with uid
  std::map<Key, ObjectPtr> objects_ GUARDED_BY(mu_);
  std::jthread thread_;
};

// metadata.<field> as text, empty if absent.
std::string MetaField(const kube::Json& object, const char* field);

}  // namespace ringmaster::runtime
