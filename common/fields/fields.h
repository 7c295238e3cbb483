// Reads fields of JSON that anybody may have written: a field that is absent or of another type
// counts as empty. Use reader.h where the sender has to hear what is wrong.
//
// Nothing here throws. `object` need not be an object. A `pointer` is a JSON pointer:
//  "/metadata/name".
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace ringmaster::fields {

using Json = nlohmann::json;

// The field, or a null value if there is none. It lives as long as `object`.
const Json& Member(const Json& object, const char* name);
const Json& At(const Json& object, const char* pointer);

std::string Text(const Json& object, const char* name);
std::string TextAt(const Json& object, const char* pointer);
bool Flag(const Json& object, const char* name, bool otherwise = false);
// Fractions are cut off; a number that does not fit counts as absent.
std::int64_t Integer(const Json& object, const char* name, std::int64_t otherwise = 0);
std::int64_t IntegerAt(const Json& object, const char* pointer, std::int64_t otherwise = 0);
// Likewise; a number below zero counts as 0.
std::uint64_t Unsigned(const Json& object, const char* name, std::uint64_t otherwise = 0);
double Number(const Json& object, const char* name, double otherwise = 0);
// The array of this name, or an empty one. It lives as long as `object`.
const Json& List(const Json& object, const char* name);
const Json& ListAt(const Json& object, const char* pointer);
// The object of this name, or an empty one. It lives as long as `object`.
const Json& Object(const Json& object, const char* name);
const Json& ObjectAt(const Json& object, const char* pointer);
// The strings of an array; its other elements are left out.
std::vector<std::string> Texts(const Json& object, const char* name);

}  // namespace ringmaster::fields
