#include "common/bench/options.h"

#include <string>

#include "common/option_bounds/option_bounds.h"

namespace ringmaster::bench {

const char* NameOf(Operation operation) {
  switch (operation) {
    case Operation::kAllreduce:
      return "allreduce";
    case Operation::kAllgather:
      return "allgather";
    case Operation::kReducescatter:
      return "reducescatter";
    case Operation::kBroadcast:
      return "broadcast";
    case Operation::kAlltoall:
      return "alltoall";
    case Operation::kBarrier:
      return "barrier";
  }
  return "";
}

namespace {

// Makes the number of the operation of its name, or says what is allowed.
std::string ReadOperation(std::string& word) {
  std::string allowed;
  for (const Operation operation : kOperations) {
    if (word == NameOf(operation)) {
      word = std::to_string(static_cast<int>(operation));
      return "";
    }
    allowed += (allowed.empty() ? "" : ", ") + std::string(NameOf(operation));
  }
  return "\"" + word + "\" is no operation: allowed are " + allowed;
}

// Makes the number of bytes of "64K", or says what is allowed.
std::string ReadSize(std::string& word) {
  const std::string given = word;
  try {
    if (const std::string wrong = CLI::AsSizeValue(false)(word); wrong.empty()) return "";
  } catch (const CLI::ValidationError&) {  // so it tells of an unknown unit
  }
  return "\"" + given +
         "\" is not a number of bytes: allowed is a whole number, with K, M, G or T behind it";
}

}  // namespace

void AddOptions(CLI::App* app, Options* options) {
  app->add_option("--op", options->operations, "operations, with a comma between (default: all)")
      ->delimiter(',')
      ->transform(CLI::Validator(ReadOperation,
                                 "allreduce,allgather,reducescatter,broadcast,alltoall,barrier"));
  const auto bytes = [app](const char* name, std::size_t* value, const char* help) {
    app->add_option(name, *value, help)
        ->transform(CLI::Validator(ReadSize, ""))
        ->check(option_bounds::WholeNumber(4, std::int64_t{1} << 40).description(""))
        ->type_name("BYTES")
        ->capture_default_str();
  };
  bytes("--min-bytes", &options->min_bytes,
        "the smallest buffer; each is four times the one before");
  bytes("--max-bytes", &options->max_bytes, "the largest buffer: 64K, 16M, 1G");
  app->add_option("--seconds", options->seconds, "for each operation and size")
      ->check(option_bounds::Number(0.01, 600))
      ->capture_default_str();
  app->add_option("--csv", options->csv, "write the figures there, too")->type_name("FILE");
  bytes("--model-bytes", &options->model_bytes,
        "gradients of the model whose scaling is predicted");
  app->add_option("--step-ms", options->step_ms, "how long one step of that model computes")
      ->check(option_bounds::Number(0.01, 1e7))
      ->capture_default_str();
  app->add_option("--servers", options->servers, "parameter servers to compare with")
      ->check(option_bounds::WholeNumber(1, 100000))
      ->capture_default_str();
}

std::string WhatIsWrong(const Options& options) {
  if (options.min_bytes <= options.max_bytes) return "";
  return "--min-bytes " + std::to_string(options.min_bytes) + " is more than --max-bytes " +
         std::to_string(options.max_bytes);
}

}  // namespace ringmaster::bench
