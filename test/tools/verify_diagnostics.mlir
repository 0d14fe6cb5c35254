// RUN: npu-opt %s --split-input-file --verify-diagnostics

func.func @unknown_operation(%x: i32) -> i32 {
  // expected-error@+1 {{tried 'func.retrn'}}
  retrn %x : i32
}

// -----

func.func @wrong_type(%x: i32) -> i64 {
  // expected-error@below {{type of return operand 0 ('i32') doesn't match}}
  // expected-note@below {{see current operation}}
  return %x : i32
}

// -----

func.func @regular_expression(%x: i32) -> i64 {
  // expected-error-re@+1 {{type of return operand [[[0-9]+]] ('i32')}}
  return %x : i32
}
