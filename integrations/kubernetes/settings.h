// SPDX-License-Identifier: Apache-2.0
// The settings that the file and the command line of berth-kube share.
#pragma once

#include "integrations/kubernetes/options.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace berth::kubernetes {

struct Setting {
  enum class Type { text, number };
  const char* name;  // of the option: "max-age"; the file has "max_age"
  Type type;
  // Takes a value. Returns the reason for refusing it.
  std::optional<std::string> (*take)(Options& options, std::string_view value);
};

std::span<const Setting> known_settings();

// Why the text is no absolute path of a file; nullopt if it is one.
std::optional<std::string> why_no_path(std::string_view text);

// Why all settings together do not lead to an API server; nullopt if they do.
std::optional<std::string> why_no_access(const Access& access);

}  // namespace berth::kubernetes
