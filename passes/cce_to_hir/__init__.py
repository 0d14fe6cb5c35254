"""From operations of cce to those of AscendNPU-IR: what leaves kernels of vector cores as text that
the vendor's open compilers take."""
