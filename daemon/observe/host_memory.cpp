// SPDX-License-Identifier: Apache-2.0
#include "daemon/observe/host_memory.h"

#include "model/error.h"
#include "model/text.h"
#include "os/file_descriptor.h"
#include "os/read_file.h"

#include <cerrno>
#include <charconv>
#include <optional>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>

namespace berth::daemon {

namespace {

constexpr std::size_t kLargestFile = 8192;

model::Result<std::string> read_small_file(const std::filesystem::path& path) {
  const os::FileDescriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return model::fail(model::Error::from_errno(errno, path.string()));
  std::string text;
  if (!os::read_up_to(fd.get(), kLargestFile, text))
    return model::fail(model::Error::from_errno(errno, path.string()));
  return text;
}

// The number that follows `label` in `text`, white space between them skipped.
template <typename Number>
std::optional<Number> number_after(std::string_view text, std::string_view label) {
  const auto at = text.find(label);
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + label.size());
  text = model::trimmed_start(text, model::kBlanks);
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  return value;
}

}  // namespace

HostLoad read_host_load(const std::filesystem::path& proc_root) {
  HostLoad load;
  if (const auto meminfo = read_small_file(proc_root / "meminfo")) {
    const auto total_kib = number_after<std::uint64_t>(*meminfo, "MemTotal:");
    const auto available_kib = number_after<std::uint64_t>(*meminfo, "MemAvailable:");
    if (!total_kib || !available_kib) {
      load.missing.push_back((proc_root / "meminfo").string() + ": lacks MemTotal or MemAvailable");
    }
    load.memory.total_bytes = total_kib.value_or(0) * 1024;
    load.memory.available_bytes = available_kib.value_or(0) * 1024;
  } else {
    load.missing.push_back(meminfo.error().message());
  }

  if (const auto pressure = read_small_file(proc_root / "pressure" / "memory")) {
    const auto full = pressure->find("full ");
    const auto avg10 = full == std::string::npos
                           ? std::nullopt
                           : number_after<double>(std::string_view(*pressure).substr(full), "avg10=");
    if (!avg10) load.missing.push_back((proc_root / "pressure/memory").string() + ": lacks the full line");
    load.memory.psi_full_avg10 = avg10.value_or(0);
  } else {
    load.missing.push_back(pressure.error().message());
  }

  if (const auto loadavg = read_small_file(proc_root / "loadavg")) {
    const auto load1 = number_after<double>(*loadavg, "");
    if (!load1) load.missing.push_back((proc_root / "loadavg").string() + ": does not start with a number");
    load.load1 = load1.value_or(0);
  } else {
    load.missing.push_back(loadavg.error().message());
  }
  return load;
}

}  // namespace berth::daemon
