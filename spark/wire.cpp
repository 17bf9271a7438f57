// SPDX-License-Identifier: Apache-2.0
#include "spark/wire.h"

#include "model/name.h"
#include "model/snapshot_checks.h"
#include "spark/names.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

namespace berth::spark::wire {

namespace {

using model::ErrorKind;

constexpr std::size_t kMostDrivers = 100'000;
constexpr std::size_t kMostEndpointBytes = 64;
constexpr std::size_t kMostMessageBytes = 2048;
constexpr std::size_t kMostQuestionBytes = std::size_t{64} << 20;
constexpr std::size_t kMostParts = 10'000;   // of a rolled event log
constexpr std::size_t kMostPartBytes = 255;  // NAME_MAX
constexpr std::size_t kMostPartsBytes = std::size_t{4} << 20;
constexpr double kMostSeconds = 1e12;

class Writer {
 public:
  template <typename Number>
  void number(Number value) {
    static_assert(std::is_arithmetic_v<Number> && !std::is_same_v<Number, bool>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  void flag(bool value) { number<std::uint8_t>(value ? 1 : 0); }
  void text(std::string_view value) {
    count(value.size());
    bytes_ += value;
  }
  void count(std::size_t value) { number(static_cast<std::uint32_t>(value)); }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Reads straight down. After the first fault every value is its type's default, and every list is empty.
class Reader {
 public:
  Reader(std::string_view bytes, std::size_t memory) : bytes_(bytes), memory_(memory) {}

  template <typename Number>
  Number number() {
    static_assert(std::is_arithmetic_v<Number> && !std::is_same_v<Number, bool>);
    Number value{};
    if (bytes_.size() < sizeof(value)) {
      fail();
    } else {
      std::memcpy(&value, bytes_.data(), sizeof(value));
      bytes_.remove_prefix(sizeof(value));
    }
    return value;
  }
  bool flag() {
    const auto value = number<std::uint8_t>();
    if (value > 1) fail();
    return value == 1;
  }
  // Finite, of a clock or a duration.
  double seconds(double lowest = 0) {
    const auto value = number<double>();
    if (value >= lowest && value <= kMostSeconds) return value;
    fail();
    return 0;
  }
  int integer(int lowest) {
    const auto value = number<std::int32_t>();
    if (value >= lowest) return value;
    fail();
    return std::max(lowest, 0);
  }
  std::string text(std::size_t longest) {
    const auto size = number<std::uint32_t>();
    if (size > longest || size > bytes_.size()) {
      fail();
      return {};
    }
    std::string value(bytes_.substr(0, size));
    bytes_.remove_prefix(size);
    // A short one lies in the std::string itself.
    use(size < sizeof(std::string) / 2 ? 0 : size);
    return value;
  }
  std::string name() {
    std::string value = text(kMostNameBytes);
    if (!failed_ && !is_name(value)) fail();
    return value;
  }
  // Of a list, whose elements take `each` bytes of memory, and at least one byte here.
  std::size_t count(std::size_t each, std::size_t most = std::numeric_limits<std::uint32_t>::max()) {
    const auto size = number<std::uint32_t>();
    if (size > most || size > bytes_.size()) {
      fail();
      return 0;
    }
    use(size * each);
    return failed_ ? 0 : size;
  }
  void fail() {
    failed_ = true;
    bytes_ = {};
  }
  bool is_whole() const { return !failed_ && bytes_.empty(); }
  std::size_t memory() const { return memory_; }

 private:
  void use(std::size_t bytes) {
    if (bytes > memory_) return fail();
    memory_ -= bytes;
  }

  std::string_view bytes_;
  std::size_t memory_;
  bool failed_ = false;
};

auto no_message(const char* kind) {
  return model::fail(ErrorKind::invalid_input, std::string(kind) + ": the bytes are no such message");
}

void write(Writer& out, const ProcessId& process) {
  out.number(static_cast<std::int32_t>(process.first));
  out.number(process.second);
}

ProcessId read_process(Reader& in) {
  const auto pid = in.number<std::int32_t>();
  return {pid, in.number<std::uint64_t>()};
}

void write(Writer& out, const model::SparkApp& app) {
  out.text(app.id);
  out.number(app.calculated_time_s);
  out.flag(app.shuffle_service);
  out.flag(app.migration);
  out.count(app.stages.size());
  for (const model::SparkStage& stage : app.stages) {
    out.number(static_cast<std::int32_t>(stage.id));
    out.number(static_cast<std::int32_t>(stage.partitions));
    out.number(stage.shuffle_write_bytes);
    out.flag(stage.cached);
    out.number(static_cast<std::int32_t>(stage.job));
    out.count(stage.parents.size());
    for (const int parent : stage.parents) out.number(static_cast<std::int32_t>(parent));
    out.count(stage.tasks.size());
    for (const model::SparkTask& task : stage.tasks) {
      out.text(task.executor);
      out.number(task.input_bytes);
      out.number(task.duration_s);
      out.count(task.kept_by.size());
      for (const std::string& executor : task.kept_by) out.text(executor);
    }
  }
  out.count(app.running.size());
  for (const model::SparkRunningTask& task : app.running) {
    out.text(task.executor);
    out.number(task.elapsed_s);
  }
}

model::SparkTask read_task(Reader& in) {
  model::SparkTask task;
  task.executor = in.name();
  task.input_bytes = in.number<std::uint64_t>();
  task.duration_s = in.seconds();
  task.kept_by.resize(in.count(sizeof(std::string)));
  for (std::string& executor : task.kept_by) executor = in.name();
  return task;
}

model::SparkStage read_stage(Reader& in) {
  model::SparkStage stage;
  stage.id = in.integer(0);
  stage.partitions = in.integer(0);
  stage.shuffle_write_bytes = in.number<std::uint64_t>();
  stage.cached = in.flag();
  stage.job = in.integer(-1);
  stage.parents.resize(in.count(sizeof(int)));
  for (int& parent : stage.parents) parent = in.integer(0);
  stage.tasks.resize(in.count(sizeof(model::SparkTask)));
  for (model::SparkTask& task : stage.tasks) task = read_task(in);
  return stage;
}

model::SparkApp read_app(Reader& in) {
  model::SparkApp app;
  app.id = in.name();
  app.calculated_time_s = in.seconds();
  app.shuffle_service = in.flag();
  app.migration = in.flag();
  app.stages.resize(in.count(sizeof(model::SparkStage)));
  for (model::SparkStage& stage : app.stages) stage = read_stage(in);
  app.running.resize(in.count(sizeof(model::SparkRunningTask)));
  for (model::SparkRunningTask& task : app.running) {
    task.executor = in.name();
    task.elapsed_s = in.seconds();
  }
  return app;
}

}  // namespace

std::string encode(const Question& question) {
  Writer out;
  out.number(question.now);
  out.number(question.wall_ahead_s);
  out.count(question.drivers.size());
  for (const DriverPlace& driver : question.drivers) {
    write(out, driver.process);
    out.flag(driver.user.has_value());
    out.number(static_cast<std::uint32_t>(driver.user.value_or(0)));
    out.flag(driver.guessed);
    out.count(driver.endpoints.size());
    for (const std::string& endpoint : driver.endpoints) out.text(endpoint);
  }
  return out.take();
}

std::string encode(const Open& open) {
  Writer out;
  write(out, open.process);
  out.text(open.path);
  return out.take();
}

std::string encode(const Opened& opened) {
  Writer out;
  out.flag(opened.done);
  out.number(static_cast<std::uint8_t>(opened.kind));
  out.text(model::shortened(opened.message, kMostMessageBytes));
  out.flag(opened.parts.has_value());
  if (opened.parts) {
    out.count(opened.parts->size());
    for (const std::string& part : *opened.parts) out.text(part);
  }
  return out.take();
}

std::string encode(const DriverFacts& facts) {
  Writer out;
  write(out, facts.process);
  out.text(facts.app_id);
  out.number(facts.read_at);
  out.flag(facts.app.has_value());
  if (facts.app) write(out, *facts.app);
  out.flag(facts.progress.has_value());
  if (facts.progress) {
    out.number(facts.progress->time);
    out.number(facts.progress->fraction);
  }
  out.count(facts.problems.size());
  for (const std::string& problem : facts.problems) out.text(problem);
  return out.take();
}

std::string encode_done(bool goes_on) {
  Writer out;
  out.flag(goes_on);
  return out.take();
}

model::Result<Question> decode_question(std::string_view bytes) {
  Reader in(bytes, kMostQuestionBytes);
  Question question;
  question.now = in.seconds();
  question.wall_ahead_s = in.seconds(-kMostSeconds);
  question.drivers.resize(in.count(sizeof(DriverPlace), kMostDrivers));
  for (DriverPlace& driver : question.drivers) {
    driver.process = read_process(in);
    const bool known = in.flag();
    const auto user = in.number<std::uint32_t>();
    if (known) driver.user = user;
    driver.guessed = in.flag();
    driver.endpoints.resize(in.count(sizeof(std::string), DriverPlace::kMostEndpoints));
    for (std::string& endpoint : driver.endpoints) endpoint = in.text(kMostEndpointBytes);
  }
  if (!in.is_whole()) return no_message("question");
  return question;
}

model::Result<Open> decode_open(std::string_view bytes) {
  Reader in(bytes, bytes.size());
  Open open;
  open.process = read_process(in);
  open.path = in.text(Open::kMostPathBytes);
  if (!in.is_whole() || !open.path.starts_with('/') || open.path.find('\0') != std::string::npos)
    return no_message("open");
  return open;
}

model::Result<Opened> decode_opened(std::string_view bytes) {
  Reader in(bytes, kMostPartsBytes);
  Opened opened;
  opened.done = in.flag();
  const auto kind = in.number<std::uint8_t>();
  opened.message = in.text(2 * kMostMessageBytes);
  if (in.flag()) {
    opened.parts.emplace(in.count(sizeof(std::string), kMostParts));
    for (std::string& part : *opened.parts) part = in.text(kMostPartBytes);
  }
  if (!in.is_whole() || kind > static_cast<std::uint8_t>(ErrorKind::refused)) return no_message("opened");
  opened.kind = static_cast<ErrorKind>(kind);
  return opened;
}

model::Result<DriverFacts> decode_facts(std::string_view bytes, std::size_t& most_bytes) {
  Reader in(bytes, most_bytes);
  DriverFacts facts;
  facts.process = read_process(in);
  facts.app_id = in.text(kMostNameBytes);
  facts.read_at = in.seconds();
  if (in.flag()) facts.app = read_app(in);
  if (in.flag()) {
    const double time = in.seconds();
    facts.progress = model::ProgressReport{.time = time, .fraction = in.seconds()};
  }
  facts.problems.resize(in.count(sizeof(std::string), DriverFacts::kMostProblems));
  for (std::string& problem : facts.problems) {
    // Twice: a cut text has a sign of three bytes in its middle, and what a name cannot hold becomes "?".
    problem = model::shortened(model::to_name(in.text(2 * DriverFacts::kMostProblemBytes)),
                               DriverFacts::kMostProblemBytes);
  }
  const bool named = facts.app_id.empty() ? !facts.app && !facts.progress : is_name(facts.app_id);
  const bool shared = !facts.progress || facts.progress->fraction <= 1;
  if (!in.is_whole() || !named || !shared) return no_message("facts");
  if (facts.app) {
    if (auto possible = model::check_spark_app(*facts.app); !possible)
      return model::fail(possible.error().context("facts"));
  }
  most_bytes = in.memory();
  return facts;
}

model::Result<bool> decode_done(std::string_view bytes) {
  Reader in(bytes, bytes.size());
  const bool goes_on = in.flag();
  if (!in.is_whole()) return no_message("done");
  return goes_on;
}

}  // namespace berth::spark::wire
