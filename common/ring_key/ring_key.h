// The key by which workers of a job prove to each other that they are of it: 32 bytes. It is in a
// file and in the `welcome` frame, never in an environment, on a command line, in a view, a status
// or a log. And the token of the job's sidecars, which is made of the key and says nothing about
// it.
//
// Thread rule: any thread.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace ringmaster::ring_key {

inline constexpr size_t kBytes = 32;
inline constexpr char kFileName[] = "ring.key";  // in a Secret, in a run directory

std::string MakeRandom();
// The key of that job under an operator that holds `secret`: the same each time, so that a Secret
// which was deleted comes back with the key that running workers have.
std::string Derive(std::string_view secret, std::string_view job_uid);

// An authentication code of `text` that only a holder of `key` can make. No purpose may be the
// beginning of another purpose, so that a code for one is worth nothing for any other.
std::string Prove(std::string_view key, std::string_view purpose, std::string_view text);
// Takes a time that doesn't depend on how much of `code` is right.
bool Proves(std::string_view key, std::string_view purpose, std::string_view text,
            std::string_view code);

// What opens the sidecars' /status, in this header: hexadecimal, so that it may be one.
inline constexpr char kTokenHeader[] = "Ringmaster-Token";
std::string MakeToken(std::string_view key);
// Takes a time that doesn't depend on how much of it is right.
bool IsToken(std::string_view key, std::string_view claimed);

// As the `welcome` frame carries it.
std::string Encode(std::string_view key);
std::optional<std::string> Decode(std::string_view text);

// Writes a file that only its owner can read, in the place of one that was there before. Errors are
// texts for people.
tl::expected<void, std::string> WriteFile(const std::filesystem::path& path, std::string_view key);
tl::expected<std::string, std::string> ReadFile(const std::filesystem::path& path);

}  // namespace ringmaster::ring_key
