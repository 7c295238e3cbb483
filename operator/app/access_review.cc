#include "operator/app/access_review.h"

#include <algorithm>
#include <utility>

#include "common/fields/fields.h"

namespace ringmaster::app {
namespace {

using kube::Json;

constexpr char kBearer[] = "Bearer ";
constexpr std::chrono::minutes kHolds{1};
// A user who has just been given a right doesn't have to wait long.
constexpr std::chrono::seconds kRefusalHolds{5};
constexpr std::size_t kMostKnown = 64;

const kube::Resource& TokenReviews() {
  static const kube::Resource kReviews = {"authentication.k8s.io", "v1", "tokenreviews",
                                          "TokenReview", false};
  return kReviews;
}

const kube::Resource& SubjectAccessReviews() {
  static const kube::Resource kReviews = {"authorization.k8s.io", "v1", "subjectaccessreviews",
                                          "SubjectAccessReview", false};
  return kReviews;
}

// A review is not stored: Create returns it with the answer in its status.
kube::Result<Json> Review(kube::KubeApi* api, const kube::Resource& resource, const Json& spec) {
  auto answer =
      api->Create(resource, "",
                  {{"apiVersion", resource.ApiVersion()}, {"kind", resource.kind}, {"spec", spec}});
  if (!answer) return answer;
  return fields::Member(*answer, "status");
}

Json AccessOf(const Json& user, const Json& what) {
  Json spec = what;
  spec["user"] = fields::Text(user, "username");
  spec["uid"] = fields::Text(user, "uid");
  for (const char* field : {"groups", "extra"}) {
    if (const Json& value = fields::Member(user, field); !value.is_null()) spec[field] = value;
  }
  return spec;
}

AccessReview::Decision CanNotTell(const kube::Error& error) {
  return {503, "the API server can't tell who may: " + error.message};
}

}  // namespace

std::string BearerToken(const http::Request& request) {
  const std::string header = request.Header("authorization");
  return header.starts_with(kBearer) ? header.substr(sizeof(kBearer) - 1) : "";
}

AccessReview::Decision AccessReview::MayGet(const std::string& token, const std::string& path) {
  return Check(token, {.what = {{"nonResourceAttributes", {{"path", path}, {"verb", "get"}}}},
                       .in_words = "get " + path,
                       .gives = "a ClusterRole with nonResourceURLs gives the right"});
}

AccessReview::Decision AccessReview::MayReadLogs(const std::string& token, const std::string& ns) {
  return Check(
      token,
      {.what =
           {{"resourceAttributes",
             {{"namespace", ns}, {"resource", "pods"}, {"subresource", "log"}, {"verb", "get"}}}},
       .in_words = "get pods/log in namespace " + ns,
       .gives = "a Role in it gives the right"});
}

AccessReview::Decision AccessReview::Check(const std::string& token, const Question& question) {
  if (token.empty()) return {401, "a bearer token is wanted"};
  const auto now = now_();
  const std::string key = question.in_words + " " + token;
  for (auto* kept : {&admitted_, &refused_}) {
    std::erase_if(*kept, [now](const auto& entry) { return entry.second.until <= now; });
    if (const auto known = kept->find(key); known != kept->end()) return known->second.decision;
  }
  Decision decision = Ask(token, question);
  if (decision.status == 200) Remember(&admitted_, key, {decision, now + kHolds});
  if (decision.status == 401 || decision.status == 403)
    Remember(&refused_, key, {decision, now + kRefusalHolds});
  return decision;
}

// Removes the oldest entry if there are too many.
void AccessReview::Remember(std::map<std::string, Known>* kept, const std::string& key,
                            Known known) {
  if (kept->size() >= kMostKnown) {
    kept->erase(std::min_element(kept->begin(), kept->end(), [](const auto& a, const auto& b) {
      return a.second.until < b.second.until;
    }));
  }
  (*kept)[key] = std::move(known);
}

AccessReview::Decision AccessReview::Ask(const std::string& token, const Question& question) {
  const auto who = Review(api_.get(), TokenReviews(), {{"token", token}});
  if (!who) return CanNotTell(who.error());
  const Json& user = fields::Member(*who, "user");
  const std::string name = fields::Text(user, "username");
  if (!fields::Flag(*who, "authenticated") || name.empty()) {
    return {401, "the API server doesn't know this token"};
  }
  const auto may = Review(api_.get(), SubjectAccessReviews(), AccessOf(user, question.what));
  if (!may) return CanNotTell(may.error());
  if (fields::Flag(*may, "allowed")) return {};
  return {403, name + " may not " + question.in_words + ": " + question.gives};
}

}  // namespace ringmaster::app
