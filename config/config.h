// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/listen_address.h"
#include "model/error.h"
#include "model/workload_rule.h"
#include "policies/settings.h"

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace berth::config {

inline constexpr const char* kDefaultFile = "/etc/berth/berth.toml";

enum class Mode { observe, enforce };

// The reaction to a change of berth's value by another program (docs/ending-a-workload.md, other writers).
enum class ForeignWriter { yield, reassert, alarm };

// Every setting, defaults included. Durations in seconds.
struct Settings {
  Mode mode = Mode::observe;
  double tick_s = 1.0;  // [sampling] interval
  int history = 60;     // [sampling] samples kept per workload
  // [sampling] share of a second; once tasks stall for that long, berthd looks at once. 0: never
  double pressure_threshold = 0.1;
  bool ebpf = true;  // [sampling] count in the kernel, where it permits that
  double sampling_max_cpu =
      0.005;           // [sampling] max_cpu: cores that sampling may use; ticks are further apart then
  bool blame = false;  // [sampling] divide waits for vCPUs without a question
  double blame_linger_s = 600;  // [sampling] how long it goes on after a question
  ForeignWriter foreign_writer = ForeignWriter::yield;
  std::string log_level = "info";
  double log_retention_s = 7 * 86400.0;  // [log] how long decisions are kept
  ListenAddress metrics_listen;          // [metrics] where to serve them
  bool spark_watch = true;               // [spark] ask drivers of this host
  double spark_interval_s = 2.0;         // [spark] how often
  bool spark_leaf = true;                // [spark] give executors cgroups of their own
  policies::PolicySettings policies;
  std::vector<model::WorkloadRule> rules;  // in the order they are tried
  std::vector<std::string> warnings;       // former keys, with their place in the file
};

// One key the configuration knows; berth.toml(5), the parser and the override option read this one table.
struct Key {
  std::string name;          // dotted: "interference.window_step"
  std::string type;          // "integer", "number", "boolean", "string", "cpulist", "duration", "size",
                             // "table"
  std::string default_text;  // as it would be written in TOML
  std::string range;         // in words; empty where the type is enough
};
const std::vector<Key>& known_keys();
// Keys of one [[workload]] table.
const std::vector<Key>& known_workload_keys();

// Reads FILE, then FILE.d/*.toml in lexical order. Later values replace earlier ones; [[workload]] tables add
// up. A missing FILE or directory means defaults. All or nothing. Error invalid_input: "FILE:LINE:COLUMN:
// fault, and the word that was perhaps meant".
model::Result<Settings> load(const std::filesystem::path& file);

// One document, for tests and for `-`: `name` stands in messages.
model::Result<Settings> parse(std::string_view toml, const std::string& name);

// Applies "KEY=VALUE" (dotted key, TOML value; a bare word is taken as a string) to `settings`.
model::Result<void> override_setting(Settings& settings, std::string_view assignment);

}  // namespace berth::config
