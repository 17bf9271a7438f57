// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace berth::daemon {

// Who may read a file: its owner alone, as the umask has it, or everybody.
enum class Readers { owner, everybody };

// Replaces the file at once, by way of FILE.new, so that a reader never meets half of it. Error io, naming
// the file.
model::Result<void> replace_file(const std::filesystem::path& file, std::string_view text,
                                 Readers readers = Readers::owner);

// Reads back what replace_file() wrote, a JSON document of `most_bytes` at most, and hands it to `take`,
// which says what is wrong with it, and may let the JSON library's exceptions through. What kept the file
// from being read, "FILE: why"; nullopt where it was read, and where there is none.
using TakeDocument = std::function<std::optional<std::string>(const nlohmann::json&)>;
std::optional<std::string> read_document(const std::filesystem::path& file, std::uintmax_t most_bytes,
                                         const TakeDocument& take);

}  // namespace berth::daemon
