// What the converters of all job kinds (convert_mpi_job.cc and so on) have in common: which fields
// are copied, and pieces of a job. Pure. Whatever is not carried over becomes a note.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace ringmaster::cli::conversion {

using Json = nlohmann::json;
using Notes = std::vector<std::string>;
using Words = std::vector<std::string>;

inline constexpr char kTheSame[] = "";  // copied without changes
// What becomes of each field of an object: kTheSame, or why it is left out.
using Fields = std::map<std::string, const char*>;

// Copies the convertible fields, and notes the others. `path` is that of `from`.
Json Take(const Json& from, const std::string& path, const Fields& known, Notes* notes);

// The runPolicy of an MPIJob or a PyTorchJob, which is the same type.
Json TakeRunPolicy(const Json& run_policy, Notes* notes);

// The HorovodJob, with the name, namespace, labels and annotations of `job`. What else people have
// written into its metadata, or beside metadata and spec, is noted.
Json JobOf(const Json& job, Json spec, Notes* notes);

// Why the containers of a pod template can't be read; empty if they can. `path` is that of the
// template.
std::string WrongContainers(const Json& pod_template, const std::string& path);

// Command and arguments.
Words WordsOf(const Json& container);

// The whole number that the text is; none if it is something else.
std::optional<std::int64_t> NumberIn(const std::string& text);

// Adds the variables of `from` that `into` doesn't have.
void AddVariables(const Json& from, Json* into);

// Takes a restart policy out that a HorovodJob's pods can't have. `path` is that of the pod's spec.
void DropRestartPolicy(const std::string& path, Json* pod_spec, Notes* notes);

// One size without an elastic policy: `kind` is that of the job, with its article.
std::string OneSizeNote(const std::string& kind);

}  // namespace ringmaster::cli::conversion
