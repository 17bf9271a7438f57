// SPDX-License-Identifier: Apache-2.0
// Any KEY=VALUE changes the settings or is refused in one line.
#include "config/config.h"
#include "tests/fuzz/property.h"

#include <string>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  berth::config::Settings settings;
  const auto done = berth::config::override_setting(settings, fuzz::text_of(data, size));
  if (!done) fuzz::require(done.error().message().find('\n') == std::string::npos, "a refusal is one line");
  return 0;
}
