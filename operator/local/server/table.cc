#include "operator/local/server/table.h"

#include "common/fields/fields.h"
#include "operator/kube/resources.h"

namespace ringmaster::local {
namespace {

struct Column {
  std::string name, type, path;
  int priority = 0;
};

std::string Age(const Json& timestamp, std::time_t now) {
  std::tm utc{};
  if (!timestamp.is_string() ||
      !strptime(timestamp.get<std::string>().c_str(), "%Y-%m-%dT%H:%M:%SZ", &utc)) {
    return "<unknown>";
  }
  return AgeText(now - timegm(&utc));
}

struct PodRow {
  int ready = 0, total = 0, restarts = 0;
  std::string status;
};

PodRow RowOf(const Json& pod) {
  PodRow row;
  const Json& status = fields::Member(pod, "status");
  row.status = fields::Text(status, fields::Text(status, "reason").empty() ? "phase" : "reason");
  for (const Json& c : fields::List(status, "conditions")) {
    if (fields::Text(c, "reason") == "SchedulingGated") row.status = "SchedulingGated";
  }
  for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
    for (const Json& c : fields::List(status, list)) {
      row.restarts += static_cast<int>(fields::Integer(c, "restartCount"));
      const Json& state = fields::Member(c, "state");
      const bool sidecar = list[0] == 'i' && state.contains("running");
      if (list[0] == 'c' || sidecar) {
        ++row.total;
        row.ready += fields::Flag(c, "ready");
      }
      const std::string waits = fields::TextAt(c, "/state/waiting/reason");
      if (!waits.empty() && list[0] == 'c') row.status = waits;
    }
  }
  if (row.total == 0) row.total = static_cast<int>(fields::ListAt(pod, "/spec/containers").size());
  if (pod["metadata"].contains("deletionTimestamp")) row.status = "Terminating";
  return row;
}

std::vector<Column> ColumnsOf(const Resource& resource, const CrdSchema& crd) {
  std::vector<Column> columns = {{"Name", "string", ".metadata.name"}};
  if (resource == kube::HorovodJobs()) {
    for (const Json& c : crd.printer_columns()) {
      columns.push_back({c.value("name", ""), c.value("type", "string"), c.value("jsonPath", ""),
                         c.value("priority", 0)});
    }
    if (!crd.printer_columns().empty()) return columns;
  } else if (resource == kube::Pods()) {
    return {{"Name", "string", ".metadata.name"},
            {"Ready", "string", "pod:ready"},
            {"Status", "string", "pod:status"},
            {"Restarts", "string", "pod:restarts"},
            {"Age", "date", ".metadata.creationTimestamp"},
            {"IP", "string", ".status.podIP", 1},
            {"Node", "string", ".spec.nodeName", 1},
            {"Nominated Node", "string", ".status.nominatedNodeName", 1},
            {"Readiness Gates", "string", "pod:gates", 1}};
  } else if (resource == kube::Events()) {
    return {{"Last Seen", "date", ".metadata.creationTimestamp"},
            {"Type", "string", ".type"},
            {"Reason", "string", ".reason"},
            {"Object", "string", ".regarding.name"},
            {"Message", "string", ".note"}};
  } else if (resource == kube::Namespaces()) {
    columns.push_back({"Status", "string", ".status.phase"});
  } else if (resource == kube::Leases()) {
    columns.push_back({"Holder", "string", ".spec.holderIdentity"});
  }
  columns.push_back({"Age", "date", ".metadata.creationTimestamp"});
  return columns;
}

Json Cell(const Column& column, const Json& object, std::time_t now) {
  if (column.path.starts_with("pod:")) {
    PodRow row = RowOf(object);
    if (column.path == "pod:ready")
      return std::to_string(row.ready) + "/" + std::to_string(row.total);
    if (column.path == "pod:restarts") return std::to_string(row.restarts);
    if (column.path == "pod:gates") return "<none>";
    return row.status;
  }
  Json value = ValueAt(object, column.path);
  if (column.type == "date") return value.is_null() ? Json("<unknown>") : Json(Age(value, now));
  if (value.is_null() && column.priority > 0) return "<none>";
  return value.is_structured() ? Json(value.dump()) : value;
}

}  // namespace

std::string AgeText(std::time_t s) {
  auto text = [](std::time_t n, const char* unit) { return std::to_string(n) + unit; };
  if (s < 0) return "0s";
  if (s < 120) return text(s, "s");
  if (s < 600) return text(s / 60, "m") + (s % 60 ? text(s % 60, "s") : "");
  if (s < 3 * 3600) return text(s / 60, "m");
  if (s < 8 * 3600) return text(s / 3600, "h") + (s / 60 % 60 ? text(s / 60 % 60, "m") : "");
  if (s < 48 * 3600) return text(s / 3600, "h");
  return text(s / 86400, "d");
}

Json MakeTable(const Resource& resource, const std::vector<Json>& objects, const CrdSchema& crd,
               std::time_t now) {
  std::vector<Column> columns = ColumnsOf(resource, crd);
  Json definitions = Json::array(), rows = Json::array();
  for (const Column& c : columns) {
    definitions.push_back({{"name", c.name},
                           {"type", c.type == "date" ? "string" : c.type},
                           {"format", c.name == "Name" ? "name" : ""},
                           {"description", ""},
                           {"priority", c.priority}});
  }
  for (const Json& object : objects) {
    Json cells = Json::array();
    for (const Column& c : columns) cells.push_back(Cell(c, object, now));
    rows.push_back({{"cells", std::move(cells)},
                    {"object",
                     {{"kind", "PartialObjectMetadata"},
                      {"apiVersion", "meta.k8s.io/v1"},
                      {"metadata", object["metadata"]}}}});
  }
  return {{"kind", "Table"},
          {"apiVersion", "meta.k8s.io/v1"},
          {"metadata", Json::object()},
          {"columnDefinitions", std::move(definitions)},
          {"rows", std::move(rows)}};
}

}  // namespace ringmaster::local
