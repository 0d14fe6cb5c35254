func.func @main(%x: tensor<16x64xf32>, %y: tensor<16x64xf32>) -> tensor<16x64xf32> {
  %0 = stablehlo.add %x, %y : tensor<16x64xf32>
  return %0 : tensor<16x64xf32>
}
