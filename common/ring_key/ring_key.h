// The ring key: 32 bytes by which the workers of a job prove to each other that they belong to it.
// It is in a file and in the `welcome` frame, never in an environment, on a command line, in a
// view, a status or a log. Also the token of the job's sidecars, which is derived from the key and
// does not reveal it.
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
inline constexpr char kFileName[] = "ring.key";  // in a Secret or a run directory

std::string MakeRandom();
// The key of that job under an operator that holds `secret`. It is the same each time, so that a
// Secret that was deleted is made again with the key that running workers have.
std::string Derive(std::string_view secret, std::string_view job_uid);

// An authentication code (HMAC) of `text` that only a holder of `key` can make. No purpose may be
// the beginning of another one: the code covers both strings joined together, so a code for one
// purpose could then be used for the other.
std::string Prove(std::string_view key, std::string_view purpose, std::string_view text);
// Whether `code` is right. The time that it takes does not depend on how much of `code` is right.
bool Proves(std::string_view key, std::string_view purpose, std::string_view text,
            std::string_view code);

// The HTTP header with the token that gives access to the sidecars' /status.
inline constexpr char kTokenHeader[] = "Ringmaster-Token";
// The token is hexadecimal text, so it is valid in a header.
std::string MakeToken(std::string_view key);
// The time that it takes does not depend on how much of `claimed` is right.
bool IsToken(std::string_view key, std::string_view claimed);

// The key as base64 text, as the `welcome` frame carries it.
std::string Encode(std::string_view key);
std::optional<std::string> Decode(std::string_view text);

// Writes a file that only its owner can read; a file that was there before is replaced. Errors are
// texts for people.
tl::expected<void, std::string> WriteFile(const std::filesystem::path& path, std::string_view key);
tl::expected<std::string, std::string> ReadFile(const std::filesystem::path& path);

}  // namespace ringmaster::ring_key
