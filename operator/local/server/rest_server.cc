#include "operator/local/server/rest_server.h"

#include <httplib.h>
#include <openssl/crypto.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "operator/kube/resources.h"
#include "operator/kubelet/log_chunk.h"
#include "operator/local/server/discovery.h"
#include "operator/local/server/https_server.h"
#include "operator/local/server/request_path.h"
#include "operator/local/server/rest_messages.h"
#include "operator/local/server/rest_streams.h"
#include "operator/local/server/table.h"
#include "operator/local/store/admission.h"

namespace ringmaster::local {
namespace {

using httplib::Request;
using httplib::Response;

// A strategic merge patch merges the items of lists by their keys and has directives such as
// "$patch". Without a list and a directive it is the same as a merge patch.
bool IsPlainMerge(const Json& patch) {
  if (patch.is_array()) return false;
  if (!patch.is_object()) return true;
  return std::all_of(patch.items().begin(), patch.items().end(), [](const auto& field) {
    return !field.key().starts_with('$') && IsPlainMerge(field.value());
  });
}

Json StrategicPatchRefused(bool custom) {
  return Failure(415, "UnsupportedMediaType",
                 std::string("application/strategic-merge-patch+json is not known for ") +
                     (custom ? "this kind" : "lists in local mode, where it would replace them") +
                     ": take application/merge-patch+json (kubectl patch --type=merge), "
                     "application/json-patch+json (--type=json), or kubectl replace");
}

Json MethodNotAllowed() {
  return Failure(405, "MethodNotAllowed",
                 "the server does not allow this method on the requested resource");
}

}  // namespace

struct RestServer::Impl {
  RestServerOptions options;
  std::shared_ptr<Store> store;
  CrdSchema crd;
  std::unique_ptr<HttpsServer> http;
  std::thread thread;
  std::atomic<bool> stopping{false};
  StreamSources streams = {};
  int port = 0;

  bool Authorized(const Request& request) const {
    std::string expected = "Bearer " + options.token;
    std::string given = request.get_header_value("Authorization");
    return given.size() == expected.size() &&
           CRYPTO_memcmp(given.data(), expected.data(), given.size()) == 0;
  }

  // What needs no body, or is refused with it unread. False: the request goes on.
  bool AnswerBeforeTheBody(const Request& request, Response& response) const {
    const std::string& path = request.path;
    if (path == "/healthz" || path == "/livez" || path == "/readyz") {
      response.set_content("ok", "text/plain");
    } else if (!Authorized(request)) {
      SendStatus(response, Failure(401, "Unauthorized", "Unauthorized"));
    } else if (request.has_header("Content-Encoding")) {
      // Unpacked it may be a thousand times as long.
      SendStatus(response, Failure(415, "UnsupportedMediaType",
                                   "Content-Encoding: the body must not be compressed"));
    } else {
      HttpsServer::Admit(request);
      return false;
    }
    HttpsServer::EndAfter(request);
    return true;
  }

  void Handle(const Request& request, Response& response) {
    try {
      Route(request, response);
    } catch (const Json::exception& e) {
      SendStatus(response, BadRequest(std::string("malformed request: ") + e.what()));
    }
  }

  void Route(const Request& request, Response& response) {
    const std::string& path = request.path;
    if (auto document = Discover(path, crd)) return Send(response, 200, *document);
    if (IsReview(request)) return Review(request, response);
    if (IsLogChunk(request)) return TakeLog(request, response);
    auto api = ParsePath(path);
    if (!api) return SendStatus(response, NoSuchPath());
    const std::string& sub = api->subresource;
    const bool goes_on = Flag(request, "watch") || Flag(request, "follow");
    if (goes_on && HttpsServer::IsShort(request)) return SendAway(response);
    if (sub == "log" && *api->resource == kube::Pods())
      return StreamLog(streams, request, *api, response);
    if (request.method == "GET") {
      if (!api->name.empty()) return Get(request, *api, response);
      return Flag(request, "watch") ? StreamWatch(streams, request, *api, response)
                                    : List(request, *api, response);
    }
    if (request.method == "DELETE") return Delete(request, *api, response);
    Write(request, *api, response);
  }

  void SendAway(Response& response) const {
    const size_t most = options.limits.connections - options.limits.short_connections;
    response.set_header("Retry-After", "1");
    SendStatus(response, Failure(429, "TooManyRequests",
                                 "this server has " + std::to_string(most) +
                                     " connections, and takes no more that watch or follow"));
  }

  bool IsReview(const Request& request) const {
    return options.review && request.method == "POST" &&
           (request.path == "/apis/authentication.k8s.io/v1/tokenreviews" ||
            request.path == "/apis/authorization.k8s.io/v1/subjectaccessreviews");
  }

  void Review(const Request& request, Response& response) {
    auto body = Body(request);
    if (!body) return SendStatus(response, body.error());
    (*body)["status"] = options.review((*body).value("kind", ""), (*body)["spec"]);
    Send(response, 201, *body);
  }

  bool IsLogChunk(const Request& request) const {
    return options.take_log && request.method == "POST" &&
           request.path.starts_with("/apis/" + kubelet::LogChunks().ApiVersion() + "/") &&
           request.path.ends_with("/" + kubelet::LogChunks().plural);
  }

  void TakeLog(const Request& request, Response& response) {
    auto body = Body(request);
    if (!body) return SendStatus(response, body.error());
    const auto taken = options.take_log(*body);
    if (!taken) return SendStatus(response, taken.error());
    Send(response, 201, {{"status", *taken}});
  }

  void SendObject(const Request& request, const ApiRequest& api, Response& response, int code,
                  const Json& object) {
    if (WantsTable(request) && request.method == "GET" && api.subresource.empty()) {
      return Send(response, code, MakeTable(*api.resource, {object}, crd, std::time(nullptr)));
    }
    Send(response, code, api.core_event ? ToCoreEvent(object) : object);
  }

  void Get(const Request& request, const ApiRequest& api, Response& response) {
    const std::string& sub = api.subresource;
    bool served = sub.empty() || (sub == "scale" && *api.resource == kube::HorovodJobs()) ||
                  (sub == "status" && TraitsOf(*api.resource).status);
    if (!served) return SendStatus(response, NoSuchPath());
    Answer<Json> object = api.subresource == "scale" ? store->GetScale(api.ns, api.name)
                                                     : store->Get(*api.resource, api.ns, api.name);
    if (!object) return SendStatus(response, object.error());
    SendObject(request, api, response, 200, *object);
  }

  void List(const Request& request, const ApiRequest& api, Response& response) {
    auto answer =
        store->List(*api.resource, api.ns,
                    {Param(request, "labelSelector"), FieldSelectorOf(request, api.core_event)});
    if (!answer) return SendStatus(response, answer.error());
    Json meta = {{"resourceVersion", answer->resource_version}};
    if (WantsTable(request)) {
      Json table = MakeTable(*api.resource, answer->items, crd, std::time(nullptr));
      table["metadata"] = std::move(meta);
      return Send(response, 200, table);
    }
    Json items = Json::array();
    for (Json& item : answer->items)
      items.push_back(api.core_event ? ToCoreEvent(item) : std::move(item));
    Send(response, 200,
         {{"kind", api.resource->kind + "List"},
          {"apiVersion", api.core_event ? "v1" : api.resource->ApiVersion()},
          {"metadata", std::move(meta)},
          {"items", std::move(items)}});
  }

  void Write(const Request& request, const ApiRequest& api, Response& response) {
    auto body = Body(request);
    if (!body) return SendStatus(response, body.error());
    if (api.core_event) *body = FromCoreEvent(*body);
    std::vector<std::string> dropped;
    WriteOptions options;
    options.strict_fields = Param(request, "fieldValidation") == "Strict";
    options.dry_run = Param(request, "dryRun") == "All";
    options.core_event = api.core_event;
    options.field_manager = ManagerOf(request);
    options.dropped = &dropped;
    Answer<Json> written = tl::unexpected(MethodNotAllowed());
    bool created = false;
    if (request.method == "POST" && api.name.empty()) {
      written = store->Create(*api.resource, api.ns, std::move(*body), options);
      created = true;
    } else if (request.method == "PUT" && !api.name.empty()) {
      written = store->Update(*api.resource, api.ns, api.name, std::move(*body), api.subresource,
                              options);
    } else if (request.method == "PATCH" && !api.name.empty()) {
      PatchRequest patch{PatchRequest::Type::kMerge, std::move(*body), api.subresource,
                         Param(request, "fieldManager"), Flag(request, "force")};
      std::string type = request.get_header_value("Content-Type");
      if (type.starts_with("application/strategic-merge-patch+json")) {
        const bool custom = *api.resource == kube::HorovodJobs();
        if (custom || !IsPlainMerge(patch.patch))
          return SendStatus(response, StrategicPatchRefused(custom));
      }
      if (type.starts_with("application/json-patch+json"))
        patch.type = PatchRequest::Type::kJson;
      else if (type.starts_with("application/apply-patch+yaml"))
        patch.type = PatchRequest::Type::kApply;
      else if (!type.starts_with("application/merge-patch+json") &&
               !type.starts_with("application/strategic-merge-patch+json")) {
        return SendStatus(response,
                          Failure(415, "UnsupportedMediaType",
                                  "the body of the request was in an unknown format: " + type));
      }
      written = store->Patch(*api.resource, api.ns, api.name, patch, options);
    }
    if (!written) return SendStatus(response, written.error());
    if (Param(request, "fieldValidation") != "Ignore") {
      for (const std::string& field : dropped)
        response.headers.emplace("Warning", "299 - \"unknown field \\\"" + field + "\\\"\"");
    }
    SendObject(request, api, response, created ? 201 : 200, *written);
  }

  void Delete(const Request& request, const ApiRequest& api, Response& response) {
    if (api.name.empty() || !api.subresource.empty())
      return SendStatus(response, MethodNotAllowed());
    auto body = Body(request);
    if (!body) return SendStatus(response, body.error());
    const bool dry_run = Param(request, "dryRun") == "All" ||
                         fields::ListAt(*body, "/dryRun") == Json::array({"All"});
    auto deleted =
        store->Delete(*api.resource, api.ns, api.name, ReadDeleteOptions(*body, request), dry_run);
    if (!deleted) return SendStatus(response, deleted.error());
    SendObject(request, api, response, 200, *deleted);
  }
};

RestServer::RestServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RestServer::~RestServer() { Stop(); }
int RestServer::port() const { return impl_->port; }

tl::expected<std::unique_ptr<RestServer>, std::string> RestServer::Start(
    RestServerOptions options, std::shared_ptr<Store> store) {
  auto impl = std::make_unique<Impl>();
  impl->options = std::move(options);
  impl->store = std::move(store);
  if (auto crd = CrdSchema::FromYaml(impl->options.crd_yaml)) impl->crd = std::move(*crd);
  impl->streams = {impl->store.get(), &impl->crd, &impl->options.logs, &impl->stopping};
  impl->http = std::make_unique<HttpsServer>(impl->options.tls, impl->options.limits);
  HttpsServer& http = *impl->http;
  if (!http.is_valid()) return tl::unexpected<std::string>("the server certificate is not usable");
  http.set_tcp_nodelay(true);
  http.set_keep_alive_max_count(1'000'000);
  http.set_keep_alive_timeout(60);
  http.set_payload_max_length(impl->options.limits.body_bytes);
  http.set_pre_routing_handler([impl = impl.get()](const Request& request, Response& response) {
    return impl->AnswerBeforeTheBody(request, response)
               ? httplib::Server::HandlerResponse::Handled
               : httplib::Server::HandlerResponse::Unhandled;
  });
  // Without SO_REUSEPORT, which httplib would set: two servers on one port are an error here.
  http.set_socket_options([](socket_t fd) {
    int yes = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  auto handler = [impl = impl.get()](const Request& request, Response& response) {
    impl->Handle(request, response);
  };
  http.Get("/.*", handler)
      .Post("/.*", handler)
      .Put("/.*", handler)
      .Patch("/.*", handler)
      .Delete("/.*", handler);
  if (impl->options.port > 0) {
    impl->port = impl->options.port;
    if (!http.bind_to_port(impl->options.address, impl->port)) {
      return tl::unexpected("can't listen on " + impl->options.address + ":" +
                            std::to_string(impl->port) + ": " +
                            std::strerror(errno ? errno : EADDRINUSE));
    }
  } else {
    impl->port = http.bind_to_any_port(impl->options.address);
    if (impl->port <= 0)
      return tl::unexpected<std::string>("no free port on " + impl->options.address);
  }
  http.DeepenBacklog();
  impl->thread = std::thread([impl = impl.get()] { impl->http->listen_after_bind(); });
  return std::unique_ptr<RestServer>(new RestServer(std::move(impl)));
}

void RestServer::Stop() {
  if (!impl_->thread.joinable()) return;
  impl_->stopping = true;
  while (!impl_->http->is_running())
    std::this_thread::yield();  // stop() before it listens would be lost
  impl_->http->stop();
  impl_->store->WakeAll();
  impl_->http->EndConnections();
  impl_->thread.join();
}

}  // namespace ringmaster::local
