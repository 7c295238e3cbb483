// The commands and options of the command line for CLI11: names, help, examples. command_line.cc
// checks rules that involve several options.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>
#include <vector>

#include "common/bench/options.h"
#include "operator/cli/commands.h"

namespace ringmaster::cli {

// The words that an option or an argument may be, where there are few.
using Choices = std::map<const CLI::Option*, std::vector<std::string>>;

// CLI11 fills it in. It is one struct, so that references into it stay valid.
struct Parsed {
  RunOptions run;
  GetOptions get;
  DescribeOptions describe;
  WhyOptions why;
  TopOptions top;
  TimelineOptions timeline;
  UiOptions ui;
  BenchOptions bench;
  bench::Options measured;  // by bench
  ConvertOptions convert;
  LogsOptions logs;
  ScaleOptions scale;
  DrainOptions drain;
  KillOptions kill;
  DeleteOptions del;
  ApplyOptions apply;
  NodeCommandOptions node;
  std::vector<std::string> run_words;
  std::string format = "table";
  int logs_tail = -1;
  int logs_rank = -1;
  int kill_slot = -1;
  double timeout = 0;
  int abandon_after = 3600;  // for node and for run
  std::string hosts;
  double top_interval = 2;
  double ui_interval = 1;
  std::string shell;
  Choices choices;
};

// Whether its values are files or folders.
bool TakesFile(const CLI::Option& option);

// `program` is the command's name. The parsed command is found by its name.
void AddCommands(CLI::App* root, const std::string& program, Parsed* parsed);

}  // namespace ringmaster::cli
