"""From hivm to the LLVM dialect: configuration words packed, calls of intrinsics."""
