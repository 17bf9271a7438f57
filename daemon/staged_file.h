// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/error.h"

#include <filesystem>
#include <string_view>

namespace berth::daemon {

// Who may read a file: its owner alone, as the umask has it, or everybody.
enum class Readers { owner, everybody };

// Replaces the file at once, by way of FILE.new, so that a reader never meets half of it. Error io, naming
// the file.
model::Result<void> replace_file(const std::filesystem::path& file, std::string_view text,
                                 Readers readers = Readers::owner);

}  // namespace berth::daemon
