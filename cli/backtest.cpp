// SPDX-License-Identifier: Apache-2.0
#include "policies/eviction/forecast/backtest.h"

#include "cli/command.h"
#include "cli/document.h"
#include "cli/input.h"
#include "cli/table.h"
#include "config/units.h"
#include "model/json.h"
#include "model/json_text.h"
#include "policies/eviction/settings.h"

#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include <fmt/core.h>

namespace berth::cli {

namespace {

constexpr double kLeastHorizon_s = 1;
constexpr double kMostHorizon_s = 3600;

struct BacktestArguments {
  std::string what;
  std::string trace;
  std::string capacity;
  std::optional<std::string> reserve;
  std::string horizon = "30s";
};

struct Backtest {
  std::uint64_t capacity_bytes = 0;
  std::uint64_t reserve_bytes = 0;
  double horizon_s = 0;
  std::vector<model::MemoryReading> demand;
  std::vector<policies::ForecastVerdict> verdicts;  // in the order of kForecastMethods
};

Outcome<std::uint64_t> bytes_of(const char* option, const std::string& text) {
  const auto bytes = config::parse_size_bytes(text);
  if (!bytes) return problem(Exit::wrong_use, fmt::format("{}: {}", option, bytes.error().message()));
  if (*bytes > model::kMaxBytes)
    return problem(Exit::wrong_use, fmt::format("{}: more than {} bytes", option, model::kMaxBytes));
  return *bytes;
}

// The limits of the command line, without the demand.
Outcome<Backtest> read_limits(const BacktestArguments& arguments) {
  Backtest test;
  const auto capacity = bytes_of("--capacity", arguments.capacity);
  if (!capacity) return tl::unexpected(capacity.error());
  test.capacity_bytes = *capacity;
  test.reserve_bytes = static_cast<std::uint64_t>(
      std::ceil(policies::EvictionSettings().reserve * static_cast<double>(*capacity)));
  if (arguments.reserve) {
    const auto reserve = bytes_of("--reserve", *arguments.reserve);
    if (!reserve) return tl::unexpected(reserve.error());
    test.reserve_bytes = *reserve;
  }
  if (test.reserve_bytes >= test.capacity_bytes)
    return problem(Exit::wrong_use, "--capacity: not more than the reserve, so no demand fits");
  const auto horizon = config::parse_duration_s(arguments.horizon);
  if (!horizon) return problem(Exit::wrong_use, "--horizon: " + horizon.error().message());
  if (*horizon < kLeastHorizon_s || *horizon > kMostHorizon_s)
    return problem(Exit::wrong_use, "--horizon: a horizon is from 1s to 1h");
  test.horizon_s = *horizon;
  return test;
}

void run_methods(Backtest& test) {
  const policies::EvictionSettings defaults;
  const policies::BacktestSettings settings{.horizon_s = test.horizon_s,
                                            .confidence = defaults.confidence,
                                            .z = defaults.z,
                                            .window = defaults.window};
  const policies::ForecastTask task{
      .capacity_bytes = static_cast<double>(test.capacity_bytes),
      .line_bytes = static_cast<double>(test.capacity_bytes - test.reserve_bytes),
      .horizon_s = test.horizon_s};
  for (const auto method : policies::kForecastMethods) {
    const auto expected = policies::expectations_of(method, test.demand, settings);
    test.verdicts.push_back(policies::judge_forecast(test.demand, expected, task));
  }
}

Document faults_json(const policies::ForecastFaults& faults) {
  return {{"events", faults.events}, {"bytes", std::llround(faults.bytes)}};
}

void print_json(std::ostream& out, const Backtest& test) {
  Document methods = Document::array();
  for (std::size_t i = 0; i < test.verdicts.size(); ++i) {
    const policies::ForecastVerdict& verdict = test.verdicts[i];
    methods.push_back({{"method", policies::to_string(policies::kForecastMethods[i])},
                       {"crossings", verdict.crossings},
                       {"missed", faults_json(verdict.missed)},
                       {"sudden", faults_json(verdict.sudden)},
                       {"needless", faults_json(verdict.needless)}});
  }
  out << model::json_text({{"schema", "berth.backtest/1"},
                           {"readings", test.demand.size()},
                           {"capacity_bytes", test.capacity_bytes},
                           {"reserve_bytes", test.reserve_bytes},
                           {"horizon", test.horizon_s},
                           {"methods", std::move(methods)}})
      << "\n";
}

std::string events_text(const policies::ForecastFaults& faults) {
  if (faults.events == 0) return "0";
  return fmt::format("{} ({})", faults.events, format_bytes(static_cast<std::uint64_t>(faults.bytes)));
}

void print_table(Session& session, const Backtest& test) {
  session.out << fmt::format(
      "{} readings over {}, line {} ({} less {} reserve), horizon {}\n\n", test.demand.size(),
      config::duration_text(std::round(test.demand.back().time - test.demand.front().time)),
      format_bytes(test.capacity_bytes - test.reserve_bytes), format_bytes(test.capacity_bytes),
      format_bytes(test.reserve_bytes), config::duration_text(test.horizon_s));
  Table table({Column::text("METHOD"), Column::figure("CROSSINGS"), Column::figure("MISSED"),
               Column::figure("SUDDEN"), Column::figure("NEEDLESS")});
  for (std::size_t i = 0; i < test.verdicts.size(); ++i) {
    const policies::ForecastVerdict& verdict = test.verdicts[i];
    table.add({policies::to_string(policies::kForecastMethods[i]), fmt::format("{}", verdict.crossings),
               events_text(verdict.missed), events_text(verdict.sudden), events_text(verdict.needless)});
  }
  table.print(session.out, session.style);
}

Outcome<void> backtest(Session& session, const BacktestArguments& arguments) {
  if (arguments.what != "memory")
    return problem(Exit::wrong_use, fmt::format("\"{}\": there is memory only", arguments.what));
  auto test = read_limits(arguments);
  if (!test) return tl::unexpected(test.error());
  const auto text = read_input(arguments.trace, policies::kMostTraceBytes);
  if (!text) return tl::unexpected(text.error());
  auto demand = policies::parse_memory_trace(*text);
  if (!demand) return problem(demand.error().context(input_name(arguments.trace)));
  if (demand->size() < 2)
    return problem(Exit::wrong_use, input_name(arguments.trace) + ": it has fewer than two readings");
  test->demand = std::move(*demand);
  run_methods(*test);
  if (session.json) {
    print_json(session.out, *test);
  } else {
    print_table(session, *test);
  }
  return {};
}

}  // namespace

Action declare_backtest(const Options& options) {
  const auto arguments = std::make_shared<BacktestArguments>();
  options.option("what", arguments->what, "memory").required().type_name("");
  options.option("trace", arguments->trace, "Lines of time,bytes; - for standard input")
      .required()
      .type_name("TRACE");
  options.option("--capacity", arguments->capacity, "The memory that there is").required().type_name("BYTES");
  options.option("--reserve", arguments->reserve, "Memory kept free; 0.05 of the capacity by default")
      .type_name("BYTES");
  options.option("--horizon", arguments->horizon, "How long freeing memory takes")
      .type_name("DURATION")
      .show_default();
  return [arguments](Session& session) { return backtest(session, *arguments); };
}

}  // namespace berth::cli
