// SPDX-License-Identifier: Apache-2.0
#include "os/mounts.h"

#include <fstream>
#include <sstream>

namespace berth::os {

namespace {

// mountinfo writes space, tab, line break and backslash as "\ooo".
std::string unescaped(std::string_view field) {
  std::string text;
  const auto is_octal = [](char c) { return c >= '0' && c <= '7'; };
  for (std::size_t i = 0; i < field.size(); ++i) {
    if (field[i] == '\\' && i + 3 < field.size() && is_octal(field[i + 1]) && is_octal(field[i + 2]) &&
        is_octal(field[i + 3])) {
      text +=
          static_cast<char>(((field[i + 1] - '0') << 6) | ((field[i + 2] - '0') << 3) | (field[i + 3] - '0'));
      i += 3;
    } else {
      text += field[i];
    }
  }
  return text;
}

std::optional<Mount> parse_mount(const std::string& line) {
  std::istringstream fields(line);
  std::string id, parent, device, root, point, flags, field;
  if (!(fields >> id >> parent >> device >> root >> point >> flags)) return std::nullopt;
  while (fields >> field && field != "-") {
  }
  Mount mount{.root = unescaped(root), .point = unescaped(point), .type = {}, .options = {}};
  std::string source;
  if (!(fields >> mount.type >> source >> mount.options)) return std::nullopt;
  return mount;
}

bool is_at_or_below(std::string_view path, std::string_view directory) {
  if (directory == "/") return true;
  return path.starts_with(directory) && (path.size() == directory.size() || path[directory.size()] == '/');
}

}  // namespace

std::optional<std::vector<Mount>> read_mounts(const std::filesystem::path& proc_root) {
  std::ifstream lines(proc_root / "self" / "mountinfo");
  if (!lines.is_open()) return std::nullopt;
  std::vector<Mount> mounts;
  for (std::string line; std::getline(lines, line);) {
    if (auto mount = parse_mount(line)) mounts.push_back(*std::move(mount));
  }
  return mounts;
}

const Mount* mount_of(const std::vector<Mount>& mounts, std::string_view path) {
  const Mount* innermost = nullptr;
  for (const Mount& mount : mounts) {
    if (!is_at_or_below(path, mount.point)) continue;
    if (innermost == nullptr || mount.point.size() >= innermost->point.size()) innermost = &mount;
  }
  return innermost;
}

}  // namespace berth::os
