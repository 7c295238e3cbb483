#include "collectives/bench/options.h"

#include <CLI/CLI.hpp>
#include <iostream>
#include <map>

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

bool ParseOptions(int argc, char** argv, Options* options, int* exit_code) {
  CLI::App app(
      "Measures the collectives of the job that it is started in, and fits a model of their cost.",
      "ringmaster bench");
  app.footer(
      "Examples:\n  ringmaster bench -np 4\n"
      "  ringmaster bench -np 4 --op allreduce --max-bytes 64M --csv out.csv\n"
      "  ringmaster bench -np 2 --model-bytes 500M --step-ms 350    # how far does my model "
      "scale?");
  std::map<std::string, Operation> names;
  for (Operation operation : kOperations) names[NameOf(operation)] = operation;
  std::size_t model_bytes = static_cast<std::size_t>(options->model_bytes);
  double step_ms = options->step_seconds * 1e3;
  app.add_option("--op", options->operations, "operations, with a comma between (default: all)")
      ->delimiter(',')
      ->transform(CLI::CheckedTransformer(names).description(
          "allreduce,allgather,reducescatter,broadcast,alltoall,barrier"));
  const auto bytes = [&app](const char* name, std::size_t* value, const char* help) {
    app.add_option(name, *value, help)
        ->transform(CLI::AsSizeValue(false))
        ->check(CLI::Range(std::size_t{4}, std::size_t{1} << 40))
        ->capture_default_str();
  };
  bytes("--min-bytes", &options->min_bytes,
        "the smallest buffer; each is four times the one before");
  bytes("--max-bytes", &options->max_bytes, "the largest buffer: 64K, 16M, 1G");
  app.add_option("--seconds", options->seconds, "for each operation and size")
      ->check(CLI::Range(0.01, 600.0))
      ->capture_default_str();
  app.add_option("--csv", options->csv, "write the figures there, too")->type_name("FILE");
  bytes("--model-bytes", &model_bytes, "gradients of the model whose scaling is predicted");
  app.add_option("--step-ms", step_ms, "how long one step of that model computes")
      ->check(CLI::Range(0.01, 1e7))
      ->capture_default_str();
  app.add_option("--servers", options->servers, "parameter servers to compare with")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  try {
    app.parse(argc, argv);
    if (options->min_bytes > options->max_bytes)
      throw CLI::ValidationError("--min-bytes", std::to_string(options->min_bytes) +
                                                    " is more than --max-bytes " +
                                                    std::to_string(options->max_bytes));
  } catch (const CLI::ParseError& error) {
    *exit_code = app.exit(error, std::cout, std::cerr) == 0 ? 0 : 2;
    return false;
  }
  options->model_bytes = static_cast<double>(model_bytes);
  options->step_seconds = step_ms / 1e3;
  return true;
}

}  // namespace ringmaster::bench
