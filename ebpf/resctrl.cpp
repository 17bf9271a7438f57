// SPDX-License-Identifier: Apache-2.0
#include "ebpf/resctrl.h"

#include <fstream>

namespace berth::ebpf {

std::string resctrl_offer(const std::filesystem::path& sys_root) {
  const auto root = sys_root / "fs/resctrl";
  std::error_code ignored;
  if (!std::filesystem::is_directory(root, ignored))
    return "no resource control (" + root.string() + " is missing)";
  if (!std::filesystem::is_directory(root / "info", ignored)) return "resource control is not mounted";
  std::ifstream features(root / "info/L3_MON/mon_features");
  std::string names;
  for (std::string name; features >> name;) names += (names.empty() ? "" : ", ") + name;
  if (names.empty()) return "resource control monitors nothing here";
  return "resource control monitors " + names + ", but by monitoring groups, which berth does not make";
}

}  // namespace berth::ebpf
