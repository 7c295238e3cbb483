#include "operator/local/server/rest_streams.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>
#include <thread>

#include "operator/kube/resources.h"
#include "operator/local/server/log_tail.h"
#include "operator/local/server/rest_messages.h"

namespace ringmaster::local {
namespace {

using httplib::DataSink;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

constexpr seconds kBookmarkEvery{10};
constexpr milliseconds kLookAround{250};  // how soon a watch sees that its client has gone
constexpr milliseconds kLogPoll{50};
// How soon a log whose container has ended does. The kubelet is asked, which has more to do.
constexpr milliseconds kAskForEnd{200};

// Types that httplib doesn't compress: gzip would hold events back until it has a block full.
constexpr char kWatchType[] = "application/json;stream=watch";
constexpr char kLogType[] = "application/octet-stream";

const char* TypeName(kube::WatchEvent::Type type) {
  switch (type) {
    case kube::WatchEvent::Type::kAdded:
      return "ADDED";
    case kube::WatchEvent::Type::kModified:
      return "MODIFIED";
    case kube::WatchEvent::Type::kDeleted:
      return "DELETED";
    case kube::WatchEvent::Type::kBookmark:
      return "BOOKMARK";
  }
  return "ERROR";
}

bool Write(DataSink& sink, const std::string& text) { return sink.write(text.data(), text.size()); }

// A watch that is being written.
class WatchStream {
 public:
  WatchStream(const StreamSources& sources, const httplib::Request& request, const ApiRequest& api,
              WatchCursor cursor)
      : sources_(sources),
        api_(api),
        table_(WantsTable(request)),
        bookmarks_(Flag(request, "allowWatchBookmarks")),
        cursor_(std::move(cursor)) {
    const int timeout = std::atoi(Param(request, "timeoutSeconds").c_str());
    end_ = Clock::now() + seconds(timeout > 0 ? timeout : 1800);
  }

  // The next event, if one comes within the time of a look around. False: the client has gone.
  bool Next(DataSink& sink) {
    const auto now = Clock::now();
    if (*sources_.stopping || now >= end_) {
      const bool ok = Bookmark(sink);
      sink.done();
      return ok;
    }
    if (now >= bookmark_at_) {
      bookmark_at_ = now + kBookmarkEvery;
      if (!Bookmark(sink)) return false;
    }
    auto event = cursor_.Next(std::min(std::chrono::ceil<milliseconds>(end_ - now), kLookAround));
    if (!event) {
      Write(sink, Line("ERROR", event.error()));
      sink.done();
      return true;
    }
    return *event ? Write(sink, LineOf(**event)) : sink.is_writable();
  }

 private:
  bool Bookmark(DataSink& sink) const {
    // It would say that what it still has to show is behind it.
    if (!bookmarks_ || cursor_.HasInitial()) return true;
    return Write(
        sink,
        Line("BOOKMARK", {{"kind", api_.resource->kind},
                          {"apiVersion", api_.resource->ApiVersion()},
                          {"metadata", {{"resourceVersion", std::to_string(cursor_.version())}}}}));
  }

  std::string LineOf(const kube::WatchEvent& event) const {
    const Json& object = event.object;
    if (table_)
      return Line(TypeName(event.type),
                  MakeTable(*api_.resource, {object}, *sources_.crd, std::time(nullptr)));
    return Line(TypeName(event.type), api_.core_event ? ToCoreEvent(object) : object);
  }

  const StreamSources sources_;
  const ApiRequest api_;
  const bool table_, bookmarks_;
  WatchCursor cursor_;
  Clock::time_point end_;
  Clock::time_point bookmark_at_ = Clock::now() + kBookmarkEvery;
};

// What `file` has grown by since `at`, up to `end`. False: the client has gone.
bool WriteNews(const std::filesystem::path& path, uint64_t* at, uint64_t end, DataSink& sink) {
  std::ifstream file(path, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(*at));
  char buffer[16384];
  while (*at < end && (file.read(buffer, static_cast<std::streamsize>(
                                             std::min<uint64_t>(end - *at, sizeof buffer))),
                       file.gcount() > 0)) {
    *at += static_cast<uint64_t>(file.gcount());
    if (!sink.write(buffer, static_cast<size_t>(file.gcount()))) return false;
  }
  return true;
}

}  // namespace

void StreamWatch(const StreamSources& sources, const httplib::Request& request,
                 const ApiRequest& api, httplib::Response& response) {
  // Clients that ask for it would wait for a mark that this server does not send. Refused as by a
  // server without the feature, they list and watch.
  if (!Param(request, "sendInitialEvents").empty())
    return SendStatus(
        response,
        Invalid({"meta.k8s.io", "v1", "listoptions", "ListOptions", false}, "",
                {{"FieldValueForbidden",
                  "Forbidden: sendInitialEvents is forbidden for watch unless the WatchList "
                  "feature gate is enabled",
                  "sendInitialEvents"}}));
  auto cursor = sources.store->Watch(
      *api.resource, api.ns,
      {Param(request, "labelSelector"), FieldSelectorOf(request, api.core_event),
       Param(request, "resourceVersion")});
  if (!cursor) {
    if (cursor.error().value("code", 0) != 410) return SendStatus(response, cursor.error());
    // As the real server: the watch begins, and its only event is the error.
    response.set_content(Line("ERROR", cursor.error()), "application/json");
    return;
  }
  auto stream = std::make_shared<WatchStream>(sources, request, api, std::move(*cursor));
  response.set_chunked_content_provider(
      kWatchType, [stream](size_t, DataSink& sink) { return stream->Next(sink); });
}

void StreamLog(const StreamSources& sources, const httplib::Request& request, const ApiRequest& api,
               httplib::Response& response) {
  for (const char* name : {"timestamps", "sinceSeconds", "sinceTime", "limitBytes"}) {
    const std::string value = Param(request, name);
    if (value.empty() || value == "false") continue;
    return SendStatus(response, BadRequest(std::string(name) + "=" + value +
                                           ": this server knows neither times nor a limit of a "
                                           "log; it knows follow, previous and tailLines"));
  }
  const std::string container = Param(request, "container");
  auto pod = sources.store->Get(kube::Pods(), api.ns, api.name);
  if (!pod) return SendStatus(response, pod.error());
  const auto find = [=, ns = api.ns, name = api.name] {
    return (*sources.find_log)(ns, name, container);
  };
  auto log = *sources.find_log ? find()
                               : Answer<LogFile>(tl::unexpected(NotFound(kube::Pods(), api.name)));
  if (!log) return SendStatus(response, log.error());
  const bool previous = Flag(request, "previous");
  if (previous && !log->previous)
    return SendStatus(response, BadRequest("container \"" + container + "\" in pod \"" + api.name +
                                           "\" has not been started before this time"));
  uint64_t start = previous ? *log->previous : log->offset;
  const uint64_t end = previous ? log->offset : UINT64_MAX;
  if (const auto tail = ParseTailLines(Param(request, "tailLines")))
    start = OffsetOfLastLines(log->file, start, *tail, end);
  auto provide = [find, path = log->file, stopping = sources.stopping, end,
                  follow = Flag(request, "follow") && !previous, begun = log->offset, at = start,
                  ask_at = Clock::now()](size_t, DataSink& sink) mutable {
    bool ended = !follow;
    // Before the file is read: what the container wrote before its end is there.
    if (follow && Clock::now() >= ask_at) {
      const auto now = find();
      ended = !now || !now->running || now->offset != begun;  // it may have started again
      ask_at = Clock::now() + kAskForEnd;
    }
    const uint64_t before = at;
    if (!WriteNews(path, &at, end, sink)) return false;
    if (ended || *stopping) {
      sink.done();
      return true;
    }
    if (at == before) std::this_thread::sleep_for(kLogPoll);
    return sink.is_writable();
  };
  response.set_chunked_content_provider(kLogType, std::move(provide));
}

}  // namespace ringmaster::local
