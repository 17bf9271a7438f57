// SPDX-License-Identifier: Apache-2.0
// Borrowing as JSON, for snapshots, plans and explanations.
#pragma once

#include "model/borrowing.h"
#include "model/json_reader.h"
#include "model/json_writer.h"

namespace berth::model {

LendingState read_lending_state(const JsonValue& value);
void write_lending_state(JsonWriter& out, const LendingState& state);

BorrowingFindings read_borrowing(const JsonValue& value);
void write_borrowing(JsonWriter& out, const BorrowingFindings& findings);
void write_lender(JsonWriter& out, const Lender& lender);
void write_borrower(JsonWriter& out, const Borrower& borrower);

}  // namespace berth::model
