// SPDX-License-Identifier: Apache-2.0
// First line a pattern of progress files, the rest what such a file holds: progress is a share, a path is
// absolute and has no way up, and a refusal does not repeat the text.
#include "model/progress.h"
#include "tests/fuzz/property.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  const auto end = text.find('\n');
  const std::string_view pattern = text.substr(0, end);
  const std::string_view content = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  const auto share = berth::model::parse_progress(content);
  if (share) {
    fuzz::require(*share >= 0 && *share <= 1, "progress is a share");
  } else {
    fuzz::require_line(share.error().message());
  }
  const auto path = berth::model::expand_progress_file(pattern, content);
  if (!path) return 0;
  fuzz::require(path->starts_with('/'), "a path is absolute");
  fuzz::require((*path + "/").find("/../") == std::string::npos, "a path has no way up");
  fuzz::require(path->find('\n') == std::string::npos, "a path is one line");
  return 0;
}
