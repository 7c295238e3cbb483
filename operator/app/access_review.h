// Decides who may read closed pages of the operator. It asks the API server to whom a bearer token
// belongs (TokenReview) and whether that user has the right (SubjectAccessReview), as
// kube-rbac-proxy does. A positive answer is kept for a minute, a negative one for a few seconds,
// so that repeated requests with one token don't use up the calls to the API server.
//
// Thread rule: one thread. It blocks for up to two calls of the API.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "common/http/server.h"
#include "operator/kube/kube_api.h"

namespace ringmaster::app {

// The token in the header Authorization; empty if there is none.
std::string BearerToken(const http::Request& request);

class AccessReview {
 public:
  using Clock = std::chrono::steady_clock;

  // `api` should be a client of its own with a low rate limit, because anyone who reaches the port
  // causes its calls.
  explicit AccessReview(std::shared_ptr<kube::KubeApi> api,
                        std::function<Clock::time_point()> now = Clock::now)
      : api_(std::move(api)), now_(std::move(now)) {}

  struct Decision {
    int status = 200;  // 401: unknown token, 403: not allowed, 503: the API server can't tell
    std::string why;
  };
  // Whether the token's user may `get` this non-resource path.
  Decision MayGet(const std::string& token, const std::string& path);
  // Whether the token's user may read the logs of the pods in a namespace.
  Decision MayReadLogs(const std::string& token, const std::string& ns);

 private:
  struct Known {
    Decision decision;
    Clock::time_point until;
  };
  // `what` has the attributes for a SubjectAccessReview; `in_words` and `gives` describe them for
  // people.
  struct Question {
    kube::Json what;
    std::string in_words, gives;
  };
  Decision Check(const std::string& token, const Question& question);
  static void Remember(std::map<std::string, Known>* kept, const std::string& key, Known known);
  Decision Ask(const std::string& token, const Question& question);

  const std::shared_ptr<kube::KubeApi> api_;
  const std::function<Clock::time_point()> now_;
  // By question and token. Refusals have a map of their own, so that they can't displace
  // admissions.
  std::map<std::string, Known> admitted_, refused_;
};

}  // namespace ringmaster::app
