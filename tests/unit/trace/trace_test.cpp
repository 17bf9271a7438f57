// SPDX-License-Identifier: Apache-2.0
// A recorded trace is read back tick by tick. A cut, damaged or hostile one is read up to its fault.
#include "tests/unit/trace/recorded.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zstd.h>

namespace berth::trace {
namespace {

using testing::HasSubstr;

std::string compressed(const std::string& text, int window_log = 0) {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  if (window_log > 0) ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, window_log);
  std::string bytes(ZSTD_compressBound(text.size()), '\0');
  bytes.resize(ZSTD_compress2(context, bytes.data(), bytes.size(), text.data(), text.size()));
  ZSTD_freeCCtx(context);
  return bytes;
}

const std::string kHeader = R"({"schema":"berth.trace/1","begun":1,"history":10})";

// The fault of a trace with these bytes.
std::string fault_of(const std::string& bytes, const Limits& limits = {}) {
  auto reader = Reader::open(test::source_of(bytes), limits);
  if (!reader) return reader.error().message();
  while (reader->next()) {
  }
  return reader->cut().value_or("");
}

TEST(Trace, IsReadBackTickByTick) {
  const int ticks = 150;
  const std::string bytes = test::record(ticks);
  auto reader = Reader::open(test::source_of(bytes));
  ASSERT_TRUE(reader) << reader.error().message();
  EXPECT_EQ(reader->header().host, "node-a");
  for (int tick = 0; tick < ticks; ++tick) {
    ASSERT_TRUE(reader->next()) << tick << ": " << reader->cut().value_or("");
    EXPECT_EQ(model::to_json(reader->snapshot()), model::to_json(test::host_at(tick))) << tick;
  }
  EXPECT_FALSE(reader->next());
  EXPECT_EQ(reader->cut(), std::nullopt);
  EXPECT_EQ(reader->bytes_read(), bytes.size());
  EXPECT_FALSE(reader->next());
}

TEST(Trace, ComesByteByByte) {
  const std::string bytes = test::record(5);
  auto reader = Reader::open(test::source_of(bytes, 1));
  ASSERT_TRUE(reader);
  for (int tick = 0; tick < 5; ++tick) ASSERT_TRUE(reader->next());
  EXPECT_FALSE(reader->next());
  EXPECT_EQ(reader->cut(), std::nullopt);
}

TEST(Trace, OfARecorderThatWasKilledIsReadToItsEnd) {
  const std::string bytes = test::record(70, false);
  auto reader = Reader::open(test::source_of(bytes));
  ASSERT_TRUE(reader);
  while (reader->next()) {
  }
  EXPECT_EQ(reader->ticks(), 70U);
  EXPECT_THAT(reader->cut().value_or(""), HasSubstr("after 70 ticks, at 2026-09-21"));
}

TEST(Trace, CutAnywhereIsReadUpToThere) {
  const std::string bytes = test::record(70);
  std::uint64_t before = 0;
  for (std::size_t size = 0; size < bytes.size(); size += 7) {
    const std::string part = bytes.substr(0, size);
    auto reader = Reader::open(test::source_of(part));
    if (!reader) continue;
    while (reader->next())
      ASSERT_EQ(model::to_json(reader->snapshot()),
                model::to_json(test::host_at(static_cast<int>(reader->ticks()) - 1)));
    EXPECT_TRUE(reader->cut()) << size;
    EXPECT_GE(reader->ticks(), before);
    before = reader->ticks();
  }
  EXPECT_GE(before, 69U);
}

TEST(Trace, WhoseTextFillsTheReadersBufferIsComplete) {
  constexpr std::size_t kBuffer = 131072;  // of Reader::Lines
  const std::string begin = R"({"schema":"berth.trace/1","begun":1,)";
  const std::string rest = "\"history\":10}\n{\"schema\":\"berth.trace-end/1\",\"ticks\":0}\n";
  const std::string blanks(kBuffer - begin.size() - rest.size(), ' ');
  EXPECT_EQ(fault_of(compressed(begin + blanks + rest)), "");
}

TEST(Trace, WithAWrongByteEndsThere) {
  const std::string bytes = test::record(70);
  for (std::size_t at = 0; at < bytes.size(); at += 11) {
    std::string wrong = bytes;
    wrong[at] = static_cast<char>(wrong[at] ^ 0x55);
    auto reader = Reader::open(test::source_of(wrong));
    if (!reader) continue;
    while (reader->next()) {
    }
    EXPECT_LE(reader->ticks(), 70U);
    EXPECT_TRUE(reader->cut()) << at;
  }
}

TEST(Trace, ThatIsNoneIsRefused) {
  EXPECT_THAT(fault_of(""), HasSubstr("no trace: the file is empty"));
  EXPECT_THAT(fault_of("{}"), HasSubstr("cannot decompress"));
  EXPECT_THAT(fault_of(compressed("{}\n")), HasSubstr("no trace of this version"));
  EXPECT_THAT(fault_of(compressed("\n")), HasSubstr("no trace of this version"));
}

TEST(Trace, WithLinesThatDoNotFitEndsThere) {
  EXPECT_THAT(fault_of(compressed(kHeader + "\n")), HasSubstr("no last line"));
  EXPECT_THAT(fault_of(compressed(kHeader)), HasSubstr("not complete"));
  EXPECT_THAT(fault_of(compressed(kHeader + "\n" + kHeader + "\n")), HasSubstr("no part of a trace"));
  EXPECT_THAT(fault_of(compressed(kHeader + "\n{\"schema\":\"berth.change/1\"}\n")),
              HasSubstr("before any snapshot"));
  EXPECT_THAT(fault_of(compressed(kHeader + "\n{\"schema\":\"berth.trace-end/1\",\"ticks\":3}\n")),
              HasSubstr("tells 3 ticks"));
  EXPECT_THAT(fault_of(compressed(kHeader + "\n{\"schema\":\"berth.trace-end/1\",\"ticks\":0}\n{}\n")),
              HasSubstr("more follows"));
  const std::string snapshot = model::to_json(test::host_at(3));
  EXPECT_THAT(fault_of(compressed(kHeader + "\n" + snapshot + "\n" + snapshot + "\n")),
              HasSubstr("not later than the tick before"));
}

TEST(Trace, IsLimitedBeforeItTakesMemory) {
  Limits limits;
  limits.line_bytes = 100'000;
  // A thousand times as long as its compressed form.
  const std::string bomb = compressed(kHeader + "\n" + std::string(std::size_t{50} << 20, ' ') + "\n");
  ASSERT_LT(bomb.size(), 100'000U);
  EXPECT_THAT(fault_of(bomb, limits), HasSubstr("a line has more than 100000 bytes"));

  limits.text_bytes = 1'000'000;
  std::string lines = kHeader + "\n";
  for (int i = 0; i < 2000; ++i) lines += std::string(1000, ' ') + "\n";
  EXPECT_FALSE(fault_of(compressed(lines), limits).empty());

  limits = {};
  limits.text_bytes = 100;
  EXPECT_THAT(fault_of(test::record(30), limits), HasSubstr("more than 100 bytes, decompressed"));
  limits = {};
  limits.workloads = 1;
  EXPECT_THAT(fault_of(test::record(30), limits), HasSubstr("more than 1 workloads"));
  limits = {};
  limits.samples = 5;
  EXPECT_THAT(fault_of(test::record(30), limits), HasSubstr("more than 5 samples"));
  limits = {};
  limits.ticks = 20;
  EXPECT_THAT(fault_of(test::record(30), limits), HasSubstr("too many ticks"));
}

TEST(Trace, MayNotAskForALargeWindow) {
  // A frame of unknown size tells its window; zstd would take 128 MiB for this one.
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, 27);
  std::string bytes(4096, '\0');
  const std::string text = kHeader + "\n";
  ZSTD_inBuffer in{text.data(), text.size(), 0};
  ZSTD_outBuffer out{bytes.data(), bytes.size(), 0};
  ZSTD_compressStream2(context, &out, &in, ZSTD_e_flush);
  ZSTD_compressStream2(context, &out, &in, ZSTD_e_end);
  ZSTD_freeCCtx(context);
  bytes.resize(out.pos);
  EXPECT_THAT(fault_of(bytes), HasSubstr("cannot decompress"));
}

TEST(Recorder, WritesNothingForATickThatItHas) {
  std::string bytes;
  Writer writer([&bytes](std::string_view more) {
    bytes += more;
    return model::Result<void>();
  });
  auto recorder = Recorder::begin(writer.lines(), {"0.1.0", "node-a", 1, test::kHistory});
  ASSERT_TRUE(recorder);
  EXPECT_TRUE(recorder->wants_whole(0));
  const auto add = [&](int tick, bool whole) {
    const auto snapshot = test::host_at(tick);
    return *recorder->add(snapshot, model::to_json(snapshot), whole);
  };
  EXPECT_EQ(add(20, false), Recorder::Added::odd);
  EXPECT_EQ(add(20, true), Recorder::Added::tick);
  const std::size_t size = bytes.size();
  EXPECT_EQ(add(20, false), Recorder::Added::old);
  EXPECT_EQ(add(19, false), Recorder::Added::odd);
  EXPECT_EQ(add(19, true), Recorder::Added::odd);
  EXPECT_EQ(bytes.size(), size);
  EXPECT_EQ(recorder->ticks(), 1U);
  const double at = recorder->last_time();
  EXPECT_FALSE(recorder->wants_whole(at + kWholeEvery_s - 1));
  EXPECT_TRUE(recorder->wants_whole(at + kWholeEvery_s));
}

TEST(Recorder, WritesNoLineThatItsReaderRefuses) {
  Writer writer([](std::string_view) { return model::Result<void>(); });
  auto recorder = Recorder::begin(writer.lines(), {"0.1.0", "node-a", 1, test::kHistory});
  ASSERT_TRUE(recorder);
  const auto added = recorder->add(test::host_at(1), std::string(Limits().line_bytes + 1, ' '), true);
  ASSERT_FALSE(added);
  EXPECT_THAT(added.error().message(), HasSubstr("a trace may have 67108864"));
  EXPECT_EQ(recorder->ticks(), 0U);
}

TEST(Writer, TellsThatTheFileCannotBeWritten) {
  Writer writer([](std::string_view) { return model::fail(model::ErrorKind::io, "the disk is full"); });
  auto recorder = Recorder::begin(writer.lines(), {"0.1.0", "node-a", 1, test::kHistory});
  ASSERT_FALSE(recorder);
  EXPECT_EQ(recorder.error().message(), "the disk is full");
}

}  // namespace
}  // namespace berth::trace
