"""Small texts of the kind that is compared, and folders of them."""

from pathlib import Path

PTX = """\
.version 8.7
.target sm_80
.address_size 64

.visible .entry scale(.param .u64 scale_param_0)
{
\t.reg .b32 \t%r<3>;
\t.reg .b64 \t%rd<3>;
\tld.param.b64 \t%rd1, [scale_param_0];
\tcvta.to.global.u64 \t%rd2, %rd1;
\tld.global.b32 \t%r1, [%rd2];
\tadd.s32 \t%r2, %r1, 1;
\tst.global.b32 \t[%rd2], %r2;
\tret;
}
"""
AMDGCN = """\
\t.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
\t.text
\t.globl\tscale
\t.p2align\t8
\t.type\tscale,@function
scale:
\ts_load_dwordx2 s[0:1], s[4:5], 0x0
\tv_mov_b32_e32 v0, 0
\ts_waitcnt lgkmcnt(0)
\tglobal_store_dword v0, v0, s[0:1]
\ts_endpgm
"""
TTIR = """\
#loc = loc("{folder}release/check/kernels/ours/scale.py":10:0)
module {{
  tt.func public @scale(%x_ptr: !tt.ptr<f32> loc("x_ptr"(#loc))) {{
    %one = arith.constant 1.000000e+00 : f32 loc(#loc1)
    %size = arith.constant 8 : i64 loc(#loc1)
    tt.return loc(#loc2)
  }} loc(#loc)
}} loc(#loc)
#loc1 = loc("{site}triton/language/standard.py":{line}:11)
#loc2 = loc("{folder}release/check/kernels/ours/scale.py":12:4)
"""


def ttir(*, folder: str = "/case/", site: str = "/lib/python3.15/site-packages/", line: int = 11) -> str:
    """Return TTIR that names files in some folders."""
    return TTIR.format(folder=folder, site=site, line=line)


def write(folder: Path, texts: dict[str, str]) -> Path:
    """Write texts under their names below ``folder``, and return it."""
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder
