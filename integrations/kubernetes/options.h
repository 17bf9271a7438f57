// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "integrations/command_line.h"
#include "integrations/kubernetes/https_api.h"
#include "model/error.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace berth::kubernetes {

using integrations::ExitStatus;

// The treatment of a pod that should run elsewhere: an Event alone, or an eviction, too.
enum class Relocate { report, evict };

inline constexpr const char* kDefaultConfig = "/etc/berth/kube.toml";

// berth-kube's settings, of its file and its command line.
struct Options {
  std::string node;  // the host's name in small letters, as kubelet's default is
  Access access;
  std::string domain = "berth.org";
  std::string state_file = "/run/berth/state.json";
  double max_age_s = 120;
  double interval_s = 60;
  double min_change = 0.01;
  bool taint = true;
  bool events = true;
  Relocate relocate = Relocate::report;
  Relocate end = Relocate::evict;  // of pods that berth ends
  double relocate_after_s = 60;

  bool once = false;
  bool dry_run = false;
  bool withdraw = false;
};

// Reads the command line, and before it the file that --config names, or the default one if there is one.
// Options of the command line win. For --help, --version or a fault it prints the answer, an error as one
// line on standard error, and returns the exit status. `host` is the name of this host.
std::variant<Options, ExitStatus> parse_options(int argc, char* const* argv, const std::string& host);

// Applies a TOML document to the options. Error invalid_input with NAME:LINE.
model::Result<void> apply_config(Options& options, const std::string& text, const std::string& name);

// A setting that the file and the command line of berth-kube share.
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
