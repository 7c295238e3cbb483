#include "operator/cli/command_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace ringmaster::cli {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsSupersetOf;
using testing::Not;

CommandWords Of(const std::string& name) {
  for (const CommandWords& command : AllCommandWords())
    if (command.name == name) return command;
  ADD_FAILURE() << "no command " << name;
  return {};
}

TEST(CommandWordsTest, AnotherNameOfACommandHasItsOptions) {
  EXPECT_EQ(Of("status").options, Of("get").options);
  EXPECT_THAT(Of("status").options, IsSupersetOf({"--output", "-w", "--context"}));
}

TEST(CommandWordsTest, FilesAreKnownByEveryNameOfAnOption) {
  EXPECT_TRUE(Of("convert").files);
  EXPECT_TRUE(Of("run").files);
  EXPECT_TRUE(Of("apply").files);
  EXPECT_FALSE(Of("logs").files);
  EXPECT_THAT(Of("timeline").with_file, IsSupersetOf({"-o", "--output", "--kubeconfig"}));
}

TEST(CommandWordsTest, WhereOneOfAFewWordsIsTakenTheyAreKnown) {
  EXPECT_THAT(Of("completion").arguments, ElementsAre("bash", "zsh", "fish"));
  for (const char* name : {"-o", "--output"})
    EXPECT_THAT(Of("get").values.at(name), ElementsAre("json", "yaml", "wide", "table"));
  EXPECT_THAT(Of("run").values.at("--backend"), Contains("Nccl"));
}

TEST(CommandWordsTest, WhatTheFirstArgumentNamesIsKnown) {
  for (const char* name :
       {"get", "status", "describe", "why", "top", "timeline", "scale", "delete"})
    EXPECT_EQ(Of(name).named, NameKind::kJob) << name;
  for (const char* name : {"drain", "kill"}) EXPECT_EQ(Of(name).named, NameKind::kPod) << name;
  EXPECT_EQ(Of("logs").named, NameKind::kPodOrJob);
  for (const char* name : {"run", "apply", "convert", "completion", "ui"})
    EXPECT_EQ(Of(name).named, NameKind::kNothing) << name;
}

TEST(CommandWordsTest, OptionsWithAValueAreToldFromFlags) {
  EXPECT_THAT(Of("logs").with_value, IsSupersetOf({"--tail", "-n", "--namespace", "--run-dir"}));
  for (const char* flag : {"-f", "--follow", "--help", "-h"})
    EXPECT_THAT(Of("logs").with_value, Not(Contains(flag)));
}

}  // namespace
}  // namespace ringmaster::cli
