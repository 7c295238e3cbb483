#include "common/membership/clause.h"

#include <array>

namespace ringmaster::membership {
namespace {

constexpr std::array<std::string_view, static_cast<int>(Clause::kCount)> kNames = {
    "Majority",          "ResignationNoVote", "ResignationPromise", "OneAccepted",
    "AdoptAccepted",     "AdoptResigned",     "RoundZeroOnce",      "PrepareFirst",
    "CurrentViewOnly",   "ResignedSilent",    "PromiseKept",        "StopBeforeAccept",
    "StoreBeforeAnswer", "LostFileJoins",     "IncarnationMatches", "InstallNewerOnly",
    "RecordVotes",       "RecordSwaps",       "RecordRefusesOlder", "FaultAdmitsNobody",
    "BoundaryFirst",     "HolderStays",       "ReportAllOrProof",   "FreshPods",
    "StopBeforeReport",  "LineagePromise",    "HighestView",        "ResignedExcluded",
    "RecordLineageSwap", "LineageWritten"};

}  // namespace

std::string_view ClauseName(Clause clause) { return kNames[static_cast<int>(clause)]; }

std::optional<Clause> ClauseFromName(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<Clause>(i);
  }
  return std::nullopt;
}

}  // namespace ringmaster::membership
