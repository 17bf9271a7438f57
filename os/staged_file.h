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

namespace berth::os {

// The readers of a file: its owner alone, as the umask has it, or all users.
enum class Readers { owner, everybody };

// How long the file's content counts. After power loss, a file that was not written to the disk may be empty,
// whatever it was before. Only `power_loss` waits for the disk.
enum class Lasts { until_boot, power_loss };

// Replaces the file at once, by way of FILE.new, so that a reader never sees half of it. Error io, naming
// the file and the cause; then the file stays as it was.
model::Result<void> replace_file(const std::filesystem::path& file, std::string_view text,
                                 Readers readers = Readers::owner, Lasts lasts = Lasts::until_boot);

// Reads a file of `most_bytes` at most, and passes its text to `take`, which returns the fault of the text.
// Returns "FILE: why" where the file cannot be read or has a fault; nullopt where it was read, and where
// there is none.
using TakeText = std::function<std::optional<std::string>(std::string_view)>;
std::optional<std::string> read_text(const std::filesystem::path& file, std::uintmax_t most_bytes,
                                     const TakeText& take);

// Reads a file of replace_file(), a JSON document of `most_bytes` at most, and passes it to `take`. `take`
// returns the document's fault, and may let the JSON library's exceptions through. Returns as read_text().
using TakeDocument = std::function<std::optional<std::string>(const nlohmann::json&)>;
std::optional<std::string> read_document(const std::filesystem::path& file, std::uintmax_t most_bytes,
                                         const TakeDocument& take);

}  // namespace berth::os
