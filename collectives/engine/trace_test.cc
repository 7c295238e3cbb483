#include "collectives/engine/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

namespace ringmaster::engine {
namespace {

using ::testing::UnorderedElementsAre;

class TraceTest : public ::testing::Test {
 protected:
  TraceTest() { timeline_.KeepRecent(); }

  Response Ask(std::vector<std::string> names) {
    std::vector<Request> requests;
    for (const std::string& name : names) {
      requests.push_back({name, Kind::kAllreduce, RM_FLOAT32, RM_SUM, "", 2, 1, 1});
      pending_.Add(std::make_shared<Operation>(requests.back(), nullptr, nullptr));
    }
    return Response::Of(std::move(requests));
  }
  void Run(Response response, uint64_t number) {
    trace_.OperationBegins(response, pending_);
    response.number = number;
    trace_.OperationEnds(response);
  }
  // By row and name: the numbers of the operations.
  std::multimap<std::string, int64_t> Numbers(const std::string& what) {
    std::string text = "[0";
    for (const std::string& piece : timeline_.Recent({.span = std::chrono::hours(1)}))
      text += piece;
    std::map<int, std::string> rows;
    std::multimap<std::string, int64_t> numbers;
    const auto events = nlohmann::json::parse(text + "]");
    for (const auto& event : events) {
      if (event.is_object() && event["name"] == "thread_name")
        rows[event["tid"]] = event["args"]["name"];
    }
    for (const auto& event : events) {
      if (event.is_object() && event["name"] == what)
        numbers.emplace(rows[event["tid"]], event["args"].at("number"));
    }
    return numbers;
  }

  timeline::Timeline timeline_;
  PendingTable pending_;
  Trace trace_{&timeline_};
};

TEST_F(TraceTest, TensorsOfOneNumberWereFused) {
  Run(Ask({"a", "b"}), 5);
  Run(Ask({"c"}), 6);
  using Row = std::pair<const std::string, int64_t>;
  EXPECT_THAT(Numbers("ALLREDUCE"),
              UnorderedElementsAre(Row{"a", 5}, Row{"b", 5}, Row{"c", 6}, Row{"operations", 5},
                                   Row{"operations", 6}));
  EXPECT_THAT(Numbers("NEGOTIATE_ALLREDUCE"),
              UnorderedElementsAre(Row{"a", 5}, Row{"b", 5}, Row{"c", 6}, Row{"waits", 5},
                                   Row{"waits", 6}));
}

}  // namespace
}  // namespace ringmaster::engine
