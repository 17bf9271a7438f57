// SPDX-License-Identifier: Apache-2.0
#include "daemon/staged_file.h"

#include <fstream>
#include <system_error>

#include <fmt/format.h>

namespace berth::daemon {

model::Result<void> replace_file(const std::filesystem::path& file, std::string_view text, Readers readers) {
  std::filesystem::path staged = file;
  staged += ".new";
  {
    std::ofstream out(staged, std::ios::trunc | std::ios::binary);
    out.write(text.data(), static_cast<std::streamsize>(text.size()));
    out.close();
    if (!out) return model::fail(model::ErrorKind::io, fmt::format("cannot write {}", staged.string()));
  }
  std::error_code failed;
  if (readers == Readers::everybody) {
    using std::filesystem::perms;
    std::filesystem::permissions(
        staged, perms::owner_read | perms::owner_write | perms::group_read | perms::others_read, failed);
  }
  if (!failed) std::filesystem::rename(staged, file, failed);
  if (failed) {
    return model::fail(model::ErrorKind::io,
                       fmt::format("cannot replace {}: {}", file.string(), failed.message()));
  }
  return {};
}

}  // namespace berth::daemon
