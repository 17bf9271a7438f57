// SPDX-License-Identifier: Apache-2.0
#include "os/mounts.h"

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <utility>

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

bool is_at_or_below(std::string_view path, std::string_view directory) {
  if (directory == "/") return true;
  return path.starts_with(directory) && (path.size() == directory.size() || path[directory.size()] == '/');
}

}  // namespace

std::optional<Mount> parse_mount(std::string_view line) {
  // number, parent, device, root, point, options, optional fields, "-", type, source, options
  constexpr std::size_t kFixed = 6;
  std::vector<std::string_view> fields;
  for (std::size_t begin = 0; begin <= line.size();) {
    const std::size_t end = std::min(line.find(' ', begin), line.size());
    fields.push_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  if (fields.size() < kFixed) return std::nullopt;
  const auto dash = std::find(fields.begin() + kFixed, fields.end(), "-");
  if (fields.end() - dash < 4 || dash[1].empty()) return std::nullopt;
  return Mount{.root = unescaped(fields[3]), .point = unescaped(fields[4]), .type = std::string(dash[1])};
}

std::optional<MountTable> read_mounts(const std::filesystem::path& proc_root) {
  std::ifstream lines(proc_root / "self" / "mountinfo");
  if (!lines.is_open()) return std::nullopt;
  MountTable table;
  for (std::string line; std::getline(lines, line);) {
    if (auto mount = parse_mount(line)) {
      table.mounts.push_back(*std::move(mount));
    } else {
      table.complete = false;
    }
  }
  return table;
}

const Mount* mount_of(const MountTable& table, std::string_view path) {
  const Mount* innermost = nullptr;
  for (const Mount& mount : table.mounts) {
    if (!is_at_or_below(path, mount.point)) continue;
    if (innermost == nullptr || mount.point.size() >= innermost->point.size()) innermost = &mount;
  }
  return innermost;
}

}  // namespace berth::os
