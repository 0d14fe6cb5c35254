"""Conversions of half precision that native code may call, as text in the LLVM dialect.

A processor without instructions for them leaves them to functions of the compiler's run-time
library, which a Python process does not carry. Conversion from double is a call on every x86.
"""

from __future__ import annotations

EXTEND = """
llvm.func @__extendhfsf2(%half: f16) -> f32 {
  %bits16 = llvm.bitcast %half : f16 to i16
  %bits = arith.extui %bits16 : i16 to i32
  %magnitude_mask = arith.constant 0x7fff : i32
  %sign_mask = arith.constant 0x8000 : i32
  %special = arith.constant 0x7c00 : i32
  %c13 = arith.constant 13 : i32
  %c16 = arith.constant 16 : i32
  %magnitude = arith.andi %bits, %magnitude_mask : i32
  %shifted = arith.shli %magnitude, %c13 : i32
  // The exponents differ by 112; the product also normalises what is subnormal as a half.
  %raw = llvm.bitcast %shifted : i32 to f32
  %scale = arith.constant 0x77800000 : f32
  %scaled = arith.mulf %raw, %scale : f32
  %finite = llvm.bitcast %scaled : f32 to i32
  %exponent = arith.constant 0x7f800000 : i32
  %infinite = arith.ori %shifted, %exponent : i32
  %is_special = arith.cmpi uge, %magnitude, %special : i32
  %result = arith.select %is_special, %infinite, %finite : i32
  %sign16 = arith.andi %bits, %sign_mask : i32
  %sign = arith.shli %sign16, %c16 : i32
  %signed = arith.ori %result, %sign : i32
  %value = llvm.bitcast %signed : i32 to f32
  llvm.return %value : f32
}
"""

TRUNCATE = """
llvm.func @__truncsfhf2(%value: f32) -> f16 {
  %bits = llvm.bitcast %value : f32 to i32
  %magnitude_mask = arith.constant 0x7fffffff : i32
  %sign_mask = arith.constant 0x8000 : i32
  %one = arith.constant 1 : i32
  %c13 = arith.constant 13 : i32
  %c16 = arith.constant 16 : i32
  %magnitude = arith.andi %bits, %magnitude_mask : i32
  %high = arith.shrui %bits, %c16 : i32
  %sign = arith.andi %high, %sign_mask : i32
  // 65536 and more: infinity, or a quiet NaN.
  %inf32 = arith.constant 0x7f800000 : i32
  %inf16 = arith.constant 0x7c00 : i32
  %nan16 = arith.constant 0x7e00 : i32
  %is_nan = arith.cmpi ugt, %magnitude, %inf32 : i32
  %large = arith.select %is_nan, %nan16, %inf16 : i32
  // Below the smallest normal half: adding 0.5 leaves the rounded mantissa in the lowest bits.
  %half = arith.constant 0.5 : f32
  %half_bits = arith.constant 0x3f000000 : i32
  %absolute = llvm.bitcast %magnitude : i32 to f32
  %sum = arith.addf %absolute, %half : f32
  %sum_bits = llvm.bitcast %sum : f32 to i32
  %small = arith.subi %sum_bits, %half_bits : i32
  // Otherwise: move the exponent by 112 and round halves to even.
  %kept = arith.shrui %magnitude, %c13 : i32
  %odd = arith.andi %kept, %one : i32
  %bias = arith.constant 0xc8000fff : i32
  %biased = arith.addi %magnitude, %bias : i32
  %rounded = arith.addi %biased, %odd : i32
  %normal = arith.shrui %rounded, %c13 : i32
  %limit = arith.constant 0x47800000 : i32
  %least = arith.constant 0x38800000 : i32
  %is_large = arith.cmpi uge, %magnitude, %limit : i32
  %is_small = arith.cmpi ult, %magnitude, %least : i32
  %finite = arith.select %is_small, %small, %normal : i32
  %result = arith.select %is_large, %large, %finite : i32
  %signed = arith.ori %result, %sign : i32
  %bits16 = arith.trunci %signed : i32 to i16
  %found = llvm.bitcast %bits16 : i16 to f16
  llvm.return %found : f16
}
"""

# Rounding twice is exact if the first rounding goes to odd: an inexact value keeps a last bit of 1.
TRUNCATE_DOUBLE = """
llvm.func @__truncdfhf2(%value: f64) -> f16 {
  %single = llvm.fptrunc %value : f64 to f32
  %back = llvm.fpext %single : f32 to f64
  %bits = llvm.bitcast %single : f32 to i32
  %one = arith.constant 1 : i32
  %value_size = llvm.intr.fabs(%value) : (f64) -> f64
  %back_size = llvm.intr.fabs(%back) : (f64) -> f64
  %too_large = arith.cmpf ogt, %back_size, %value_size : f64
  %too_small = arith.cmpf olt, %back_size, %value_size : f64
  %inexact = arith.ori %too_large, %too_small : i1
  %less = arith.subi %bits, %one : i32
  %toward_zero = arith.select %too_large, %less, %bits : i32
  %odd = arith.ori %toward_zero, %one : i32
  %rounded = arith.select %inexact, %odd, %bits : i32
  %to_odd = llvm.bitcast %rounded : i32 to f32
  %found = llvm.call @__truncsfhf2(%to_odd) : (f32) -> f16
  llvm.return %found : f16
}
"""

DEFINITIONS = EXTEND + TRUNCATE + TRUNCATE_DOUBLE
NAMES = ("__extendhfsf2", "__truncsfhf2", "__truncdfhf2")
