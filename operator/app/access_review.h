// Who may read what the operator serves where that is closed: the API server is asked whose token
// it is that came (TokenReview) and whether that one may (SubjectAccessReview), as kube-rbac-proxy
// does. A yes holds for a minute, a no for a few seconds, so that who comes with the same token
// again and again does not use up the calls of the others.
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

// Of the header Authorization; empty: there is none.
std::string BearerToken(const http::Request& request);

class AccessReview {
 public:
  using Clock = std::chrono::steady_clock;

  // `api`: of its own, and slow: whoever reaches the port decides how often it is asked.
  explicit AccessReview(std::shared_ptr<kube::KubeApi> api,
                        std::function<Clock::time_point()> now = Clock::now)
      : api_(std::move(api)), now_(std::move(now)) {}

  struct Decision {
    int status = 200;  // 401: nobody we know, 403: not allowed, 503: the API server can't tell
    std::string why;
  };
  // Whether the one with this token may `get` this path of no resource.
  Decision MayGet(const std::string& token, const std::string& path);
  // Whether that one may read the logs of a namespace's pods.
  Decision MayReadLogs(const std::string& token, const std::string& ns);

 private:
  struct Known {
    Decision decision;
    Clock::time_point until;
  };
  // `what`: the attributes that a SubjectAccessReview is about; `in_words` and `gives` for people.
  struct Question {
    kube::Json what;
    std::string in_words, gives;
  };
  Decision Check(const std::string& token, const Question& question);
  static void Remember(std::map<std::string, Known>* kept, const std::string& key, Known known);
  Decision Ask(const std::string& token, const Question& question);

  const std::shared_ptr<kube::KubeApi> api_;
  const std::function<Clock::time_point()> now_;
  // By question and token. Two, so that those who may not push nobody out who may.
  std::map<std::string, Known> admitted_, refused_;
};

}  // namespace ringmaster::app
