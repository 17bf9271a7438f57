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
  static constexpr bool kReads = false;

  template <typename Number>
  void number(Number value) {
    static_assert(std::is_arithmetic_v<Number> && !std::is_same_v<Number, bool>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  void flag(bool value) { number<std::uint8_t>(value ? 1 : 0); }
  void seconds(double value, double /*lowest*/ = 0) { number(value); }
  void integer(std::int32_t value, int /*lowest*/) { number(value); }
  void text(std::string_view value, std::size_t /*longest*/) {
    count(value.size());
    bytes_ += value;
  }
  void name(std::string_view value) { text(value, kMostNameBytes); }
  template <typename T, typename Each>
  void list(const std::vector<T>& values, Each each, std::size_t /*most*/ = 0) {
    count(values.size());
    for (const T& value : values) each(value);
  }
  template <typename T, typename One>
  void maybe(const std::optional<T>& value, One one) {
    flag(value.has_value());
    if (value) one(*value);
  }
  std::string take() { return std::move(bytes_); }

 private:
  void count(std::size_t value) { number(static_cast<std::uint32_t>(value)); }

  std::string bytes_;
};

// Reads straight down. After the first fault every value is its type's default, and every list is empty.
class Reader {
 public:
  static constexpr bool kReads = true;

  Reader(std::string_view bytes, std::size_t memory) : bytes_(bytes), memory_(memory) {}

  template <typename Number>
  void number(Number& value) {
    static_assert(std::is_arithmetic_v<Number> && !std::is_same_v<Number, bool>);
    value = {};
    if (bytes_.size() < sizeof(value)) return fail();
    std::memcpy(&value, bytes_.data(), sizeof(value));
    bytes_.remove_prefix(sizeof(value));
  }
  void flag(bool& value) {
    std::uint8_t byte = 0;
    number(byte);
    if (byte > 1) fail();
    value = byte == 1;
  }
  // Finite, of a clock or a duration.
  void seconds(double& value, double lowest = 0) {
    number(value);
    if (value >= lowest && value <= kMostSeconds) return;
    fail();
    value = 0;
  }
  void integer(std::int32_t& value, int lowest) {
    number(value);
    if (value >= lowest) return;
    fail();
    value = std::max(lowest, 0);
  }
  void text(std::string& value, std::size_t longest) {
    std::uint32_t size = 0;
    number(size);
    if (size > longest || size > bytes_.size()) return fail();
    value = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    // A short one lies in the std::string itself.
    use(size < sizeof(std::string) / 2 ? 0 : size);
  }
  void name(std::string& value) {
    text(value, kMostNameBytes);
    if (!failed_ && !is_name(value)) fail();
  }
  template <typename T, typename Each>
  void list(std::vector<T>& values, Each each, std::size_t most = std::numeric_limits<std::uint32_t>::max()) {
    values.resize(count(sizeof(T), most));
    for (T& value : values) each(value);
  }
  template <typename T, typename One>
  void maybe(std::optional<T>& value, One one) {
    bool known = false;
    flag(known);
    if (known) one(value.emplace());
  }
  void fail() {
    failed_ = true;
    bytes_ = {};
  }
  bool is_whole() const { return !failed_ && bytes_.empty(); }
  std::size_t memory() const { return memory_; }

 private:
  // Of a list, whose elements take `each` bytes of memory, and at least one byte here.
  std::size_t count(std::size_t each, std::size_t most) {
    std::uint32_t size = 0;
    number(size);
    if (size > most || size > bytes_.size()) {
      fail();
      return 0;
    }
    use(size * each);
    return failed_ ? 0 : size;
  }
  void use(std::size_t bytes) {
    if (bytes > memory_) return fail();
    memory_ -= bytes;
  }

  std::string_view bytes_;
  std::size_t memory_;
  bool failed_ = false;
};

// One list of fields for each struct gives what is written and what is read. A limit is one of reading.
template <typename Io, typename T>
using Of = std::conditional_t<Io::kReads, T, const T>;

template <typename Io>
void fields(Io& io, Of<Io, ProcessId>& process) {
  io.number(process.first);
  io.number(process.second);
}

template <typename Io>
void fields(Io& io, Of<Io, model::SparkTask>& task) {
  io.name(task.executor);
  io.number(task.input_bytes);
  io.seconds(task.duration_s);
  io.list(task.kept_by, [&io](auto& executor) { io.name(executor); });
}

template <typename Io>
void fields(Io& io, Of<Io, model::SparkStage>& stage) {
  io.integer(stage.id, 0);
  io.integer(stage.partitions, 0);
  io.number(stage.shuffle_write_bytes);
  io.flag(stage.cached);
  io.integer(stage.job, -1);
  io.list(stage.parents, [&io](auto& parent) { io.integer(parent, 0); });
  io.list(stage.tasks, [&io](auto& task) { fields(io, task); });
}

template <typename Io>
void fields(Io& io, Of<Io, model::SparkRunningTask>& task) {
  io.name(task.executor);
  io.seconds(task.elapsed_s);
}

template <typename Io>
void fields(Io& io, Of<Io, model::SparkApp>& app) {
  io.name(app.id);
  io.seconds(app.calculated_time_s);
  io.flag(app.shuffle_service);
  io.flag(app.migration);
  io.list(app.stages, [&io](auto& stage) { fields(io, stage); });
  io.list(app.running, [&io](auto& task) { fields(io, task); });
}

template <typename Io>
void fields(Io& io, Of<Io, model::ProgressReport>& report) {
  io.seconds(report.time);
  io.seconds(report.fraction);
}

template <typename Io>
void fields(Io& io, Of<Io, DriverPlace>& driver) {
  fields(io, driver.process);
  bool known = driver.user.has_value();
  std::uint32_t user = driver.user.value_or(0);
  io.flag(known);
  io.number(user);
  if constexpr (Io::kReads) {
    if (known) driver.user = user;
  }
  io.flag(driver.guessed);
  io.list(
      driver.endpoints, [&io](auto& endpoint) { io.text(endpoint, kMostEndpointBytes); },
      DriverPlace::kMostEndpoints);
}

template <typename Io>
void fields(Io& io, Of<Io, Question>& question) {
  io.seconds(question.now);
  io.seconds(question.wall_ahead_s, -kMostSeconds);
  io.list(
      question.drivers, [&io](auto& driver) { fields(io, driver); }, kMostDrivers);
}

template <typename Io>
void fields(Io& io, Of<Io, Open>& open) {
  fields(io, open.process);
  io.text(open.path, Open::kMostPathBytes);
}

template <typename Io>
void fields(Io& io, Of<Io, Opened>& opened) {
  io.flag(opened.done);
  auto kind = static_cast<std::uint8_t>(opened.kind);
  io.number(kind);
  if constexpr (Io::kReads) {
    if (kind > static_cast<std::uint8_t>(ErrorKind::refused)) io.fail();
    opened.kind = static_cast<ErrorKind>(kind);
  }
  io.text(opened.message, 2 * kMostMessageBytes);
  io.maybe(opened.parts, [&io](auto& parts) {
    io.list(
        parts, [&io](auto& part) { io.text(part, kMostPartBytes); }, kMostParts);
  });
}

template <typename Io>
void fields(Io& io, Of<Io, DriverFacts>& facts) {
  fields(io, facts.process);
  io.text(facts.app_id, kMostNameBytes);
  io.seconds(facts.read_at);
  io.maybe(facts.app, [&io](auto& app) { fields(io, app); });
  io.maybe(facts.progress, [&io](auto& report) { fields(io, report); });
  // Twice the length: a cut text has a sign of three bytes in its middle.
  io.list(
      facts.problems, [&io](auto& problem) { io.text(problem, 2 * DriverFacts::kMostProblemBytes); },
      DriverFacts::kMostProblems);
}

template <typename T>
std::string bytes_of(const T& message) {
  Writer out;
  fields(out, message);
  return out.take();
}

auto no_message(const char* kind) {
  return model::fail(ErrorKind::invalid_input, std::string(kind) + ": the bytes are no such message");
}

}  // namespace

std::string encode(const Question& question) { return bytes_of(question); }

std::string encode(const Open& open) { return bytes_of(open); }

std::string encode(const Opened& opened) {
  Opened sent = opened;
  sent.message = model::shortened(opened.message, kMostMessageBytes);
  return bytes_of(sent);
}

std::string encode(const DriverFacts& facts) { return bytes_of(facts); }

std::string encode_done(bool goes_on) {
  Writer out;
  out.flag(goes_on);
  return out.take();
}

model::Result<Question> decode_question(std::string_view bytes) {
  Reader in(bytes, kMostQuestionBytes);
  Question question;
  fields(in, question);
  if (!in.is_whole()) return no_message("question");
  return question;
}

model::Result<Open> decode_open(std::string_view bytes) {
  Reader in(bytes, bytes.size());
  Open open;
  fields(in, open);
  if (!in.is_whole() || !open.path.starts_with('/') || open.path.find('\0') != std::string::npos)
    return no_message("open");
  return open;
}

model::Result<Opened> decode_opened(std::string_view bytes) {
  Reader in(bytes, kMostPartsBytes);
  Opened opened;
  fields(in, opened);
  if (!in.is_whole()) return no_message("opened");
  return opened;
}

model::Result<DriverFacts> decode_facts(std::string_view bytes, std::size_t& most_bytes) {
  Reader in(bytes, most_bytes);
  DriverFacts facts;
  fields(in, facts);
  // What a name cannot hold becomes "?".
  for (std::string& problem : facts.problems)
    problem = model::shortened(model::to_name(problem), DriverFacts::kMostProblemBytes);
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
  bool goes_on = false;
  in.flag(goes_on);
  if (!in.is_whole()) return no_message("done");
  return goes_on;
}

}  // namespace berth::spark::wire
