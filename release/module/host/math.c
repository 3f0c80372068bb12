// The mathematical functions that LLVM and MLIR fold constants with, as hosts of 64 bits have them.
//
// LLVM leaves a call alone whose result overflows, underflows or is invalid, and learns of that from errno or from
// floating-point exceptions. Emscripten's library reports neither, so that LLVM would fold what it must not; and its
// sin and cos are rounded otherwise than glibc's. So the module has functions of these names of its own.
//
// Those of double reach the library through those of long double, which has 113 bits of mantissa here: there the library
// computes with all of them (sinl, cosl) or calls its function of double (expl, powl, erfl), which is as good as glibc's.
// Those of float are rounded from double: glibc rounds these functions correctly, and so does that but once in a billion
// arguments. Emscripten's expf, exp2f, logf, log2f and sqrtf give what glibc's give. Its sinf and cosf do not in one or
// two of a hundred arguments, and rounding from double would be no nearer: glibc's are not rounded correctly.
#include <errno.h>
#include <float.h>
#include <math.h>

// Sets errno as C11 (7.12.1) says and glibc does; a result below the normal numbers may have underflowed.
static double judged(double result, int finite, int number,
                     int may_underflow) {
  if (isnan(result) && number)
    errno = EDOM;
  else if (isinf(result) && finite)
    errno = ERANGE;
  else if (may_underflow && fabs(result) < DBL_MIN)
    errno = ERANGE;
  return result;
}

#define HOST(name, may_underflow)                                              \
  double name(double x) {                                                      \
    return judged((double)name##l((long double)x), isfinite(x), !isnan(x),     \
                  may_underflow);                                              \
  }

HOST(exp, isfinite(x))
HOST(log, 0)
HOST(log2, 0)
HOST(log10, 0)
HOST(sqrt, 0)
HOST(sinh, x != 0)
HOST(cosh, 0)
HOST(asin, x != 0)
HOST(acos, 0)
HOST(atan, x != 0)
HOST(tan, x != 0)
HOST(tanh, x != 0)
HOST(log1p, x != 0)
HOST(erf, x != 0)
HOST(sin, x != 0)
HOST(cos, 0)

double pow(double x, double y) {
  int finite = isfinite(x) && isfinite(y);
  return judged((double)powl((long double)x, (long double)y), finite,
                !isnan(x) && !isnan(y), finite && x != 0);
}

#define HOST_FLOAT(name)                                                       \
  float name##f(float x) { return (float)name##l((long double)x); }

HOST_FLOAT(acos)
HOST_FLOAT(asin)
HOST_FLOAT(atan)
HOST_FLOAT(cosh)
HOST_FLOAT(erf)
HOST_FLOAT(expm1)
HOST_FLOAT(log10)
HOST_FLOAT(log1p)
HOST_FLOAT(sinh)
HOST_FLOAT(tan)
HOST_FLOAT(tanh)
