// SPDX-License-Identifier: Apache-2.0
#include "os/interrupts.h"

#include "os/directory.h"
#include "os/file_descriptor.h"
#include "os/irqbalance.h"
#include "os/proc_files.h"
#include "os/read_file.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

namespace berth::os {

namespace {

constexpr const char* kAffinity = "smp_affinity_list";
// A list of every second of kMaxCpu vCPUs.
constexpr std::size_t kMostListBytes = std::size_t{32} << 10;

std::optional<int> number_of(std::string_view name) {
  int number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || end != name.data() + name.size() || number < 0) return std::nullopt;
  return number;
}

}  // namespace

std::filesystem::path Interrupts::file_of(int number, const char* name) const {
  return directory_ / fmt::format("{}", number) / name;
}

model::Result<std::vector<int>> Interrupts::numbers() const {
  const FileDescriptor directory(open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto names = directory ? subdirectories(directory.get()) : std::nullopt;
  if (!names) return model::fail(model::Error::from_errno(errno, directory_.string()));
  std::vector<int> numbers;
  numbers.reserve(names->size());
  for (const std::string& name : *names) {
    if (const auto number = number_of(name)) numbers.push_back(*number);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

std::optional<std::size_t> Interrupts::count() const {
  struct stat links {};
  // One link each, beside "." and the entry in the parent.
  if (stat(directory_.c_str(), &links) != 0 || links.st_nlink < 2) return std::nullopt;
  return links.st_nlink - 2;
}

model::Result<model::CpuSet> Interrupts::cpus(int number) const {
  const auto path = file_of(number, kAffinity);
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  if (!file || !read_up_to(file.get(), kMostListBytes, text))
    return model::fail(model::Error::from_errno(errno, path.string()));
  auto cpus = model::CpuSet::parse(text);
  if (!cpus) return model::fail(cpus.error().context(path.string()));
  return cpus;
}

std::optional<model::CpuSet> Interrupts::default_cpus() const {
  auto cpus = parse_mask(read_start(directory_ / "default_smp_affinity", kMostListBytes));
  return cpus ? std::optional(std::move(*cpus)) : std::nullopt;
}

model::Result<void> Interrupts::set_cpus(int number, const model::CpuSet& cpus) const {
  const auto path = file_of(number, kAffinity);
  const FileDescriptor file(open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
  if (!file || !write_all(file.get(), cpus.to_string() + "\n"))
    return model::fail(model::Error::from_errno(errno, path.string()));
  return {};
}

bool Interrupts::has_handler(int number) const {
  const auto path = directory_ / fmt::format("{}", number);
  const FileDescriptor directory(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto handlers = directory ? subdirectories(directory.get(), 1) : std::nullopt;
  return handlers && !handlers->empty();
}

std::filesystem::path interrupts_directory(const std::filesystem::path& proc_root,
                                           const std::filesystem::path& runtime_dir) {
  auto usual = proc_root / "irq";
  auto bound = runtime_dir / "irq";
  const bool read_only = access(usual.c_str(), W_OK) != 0 && errno == EROFS;
  std::error_code ignored;
  return read_only && !std::filesystem::is_empty(bound, ignored) && !ignored ? bound : usual;
}

std::string list_text(const std::vector<int>& numbers) {
  constexpr int kMostRuns = 20;
  std::string text;
  int runs = 0;
  for (std::size_t i = 0; i < numbers.size(); ++runs) {
    if (runs == kMostRuns) return text + ", ...";
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ",", numbers[i]);
    if (last > i) text += fmt::format("-{}", numbers[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace berth::os
