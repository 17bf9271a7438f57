// SPDX-License-Identifier: Apache-2.0
#include "cli/cpu_use.h"

#include "model/text.h"
#include "os/proc_files.h"

#include <charconv>
#include <optional>
#include <system_error>

namespace berth::cli {

namespace {

// user nice system idle iowait irq softirq steal; the guest times that follow are in user and nice already.
constexpr std::size_t kFields = 8;
constexpr std::size_t kIdle = 3;
constexpr std::size_t kIoWait = 4;

template <typename Number>
std::optional<Number> take_number(std::string_view& text) {
  text = model::trimmed_start(text, " ");
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

std::optional<CpuTimes> take_times(std::string_view& line) {
  CpuTimes times;
  for (std::size_t field = 0; field < kFields; ++field) {
    const auto ticks = take_number<std::uint64_t>(line);
    if (!ticks) return std::nullopt;
    times.total += *ticks;
    if (field != kIdle && field != kIoWait) times.busy += *ticks;
  }
  return times;
}

}  // namespace

std::map<int, CpuTimes> parse_cpu_times(std::string_view stat) {
  std::map<int, CpuTimes> all;
  while (!stat.empty()) {
    std::string_view line = model::take_line(stat);
    if (!line.starts_with("cpu") || line.size() < 4 || line[3] == ' ') continue;
    line.remove_prefix(3);
    const auto cpu = take_number<int>(line);
    const auto times = cpu && *cpu >= 0 ? take_times(line) : std::nullopt;
    if (times) all[*cpu] = *times;
  }
  return all;
}

std::map<int, CpuTimes> read_cpu_times() {
  constexpr std::size_t kMost = std::size_t{4} << 20;  // with a line of thousands of interrupts
  return parse_cpu_times(os::read_start("/proc/stat", kMost));
}

std::map<int, double> cpu_use(const std::map<int, CpuTimes>& before, const std::map<int, CpuTimes>& after) {
  std::map<int, double> use;
  for (const auto& [cpu, now] : after) {
    const auto then = before.find(cpu);
    // Idle times may go back a little (proc_stat(5)); such a reading has no meaning.
    if (then == before.end() || now.total <= then->second.total || now.busy < then->second.busy) continue;
    const auto busy = static_cast<double>(now.busy - then->second.busy);
    const auto total = static_cast<double>(now.total - then->second.total);
    if (busy <= total) use[cpu] = busy / total;
  }
  return use;
}

}  // namespace berth::cli
