// The Kubernetes REST API over a Store: HTTPS with a bearer token, on 127.0.0.1 where nothing else
// is said. What people's
// kubectl needs for get, describe, apply, delete, scale and logs is here; openapi is not (kubectl
// apply wants --validate=false).
//
// Thread rule: Start and Stop from one thread. Each connection has a thread of its own while it is
// open.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "operator/local/server/https_limits.h"
#include "operator/local/server/log_file.h"
#include "operator/local/server/tls_material.h"
#include "operator/local/store/store.h"

namespace ringmaster::local {

struct RestServerOptions {
  std::string address = "127.0.0.1";
  int port = 0;  // 0: chosen free
  TlsMaterial tls;
  HttpsLimits limits;
  std::string token;
  std::string crd_yaml;  // for printer columns and short names; may be empty
  FindLog logs;
  // What a kubelet::LogChunk that a node has sent is answered with, as its status. None: there are
  // no nodes but this machine.
  std::function<Answer<Json>(const Json& chunk)> take_log;
  // What a TokenReview or SubjectAccessReview (`kind`) of this spec is answered with, as its
  // status. None: there are no reviews here, for there is one user.
  std::function<nlohmann::json(const std::string& kind, const nlohmann::json& spec)> review;
};

class RestServer {
 public:
  // The error is a sentence: the port is in use, ...
  static tl::expected<std::unique_ptr<RestServer>, std::string> Start(RestServerOptions options,
                                                                      std::shared_ptr<Store> store);
  ~RestServer();
  int port() const;
  void Stop();

 private:
  struct Impl;
  explicit RestServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ringmaster::local
