// The objects of one resource in a namespace, kept up to date by list and watch on a thread of its
// own.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "operator/kube/kube_api.h"

namespace ringmaster::cli {

// For Observer's `on_error`: so that who waits knows that nothing is heard.
void SayOnStandardError(const std::string& error);

class Observer {
 public:
  // Calls `on_object(object, gone)` on the observer's thread; after an interruption for every
  // object again. `on_error`, if there is one, hears why there has been no answer for seconds, once
  // until the reason changes or there is one.
  Observer(std::shared_ptr<kube::KubeApi> api, const kube::Resource& resource, std::string ns,
           std::function<void(const kube::Json& object, bool gone)> on_object,
           std::function<void(const std::string& error)> on_error = nullptr);
  ~Observer();

 private:
  void Run(std::stop_token stop);
  void Tell(const std::string& error);
  // Lists, then watches until the watch ends. False: there was no list.
  bool Follow(std::stop_token stop);

  const std::shared_ptr<kube::KubeApi> api_;
  const kube::Resource& resource_;
  const std::string ns_;
  const std::function<void(const kube::Json&, bool)> on_object_;
  const std::function<void(const std::string&)> on_error_;
  // Used only by the observer's thread:
  std::map<std::string, kube::Json> known_;  // by uid
  std::optional<std::chrono::steady_clock::time_point> failing_since_;
  std::string told_;     // the last error; empty: it is over, or none was told
  std::jthread thread_;  // last member: its thread uses the others
};

}  // namespace ringmaster::cli
