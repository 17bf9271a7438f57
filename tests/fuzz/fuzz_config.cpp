// SPDX-License-Identifier: Apache-2.0
// Any text is read as a configuration or refused with its place, in one line.
#include "config/config.h"
#include "tests/fuzz/property.h"

#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto settings = berth::config::parse(fuzz::text_of(data, size), "fuzz.toml");
  if (settings) return 0;
  fuzz::require(settings.error().message().starts_with("fuzz.toml:"), "a refusal names file and line");
  fuzz::require(settings.error().message().find('\n') == std::string::npos, "a refusal is one line");
  return 0;
}
