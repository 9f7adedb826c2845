//! Tools that go by the machine that they build for: `aarch64-linux-gnu-gcc`, `llvm-objdump`.

/// Processors that such names begin with. What follows says the maker, the system and how calls are
/// made there (gcc.gnu.org, "Host/Target specific installation notes").
const PROCESSORS: &str = "aarch64 alpha arc arm armeb armv6 armv7 armv7a armv7l avr bpf csky hppa i386 \
    i486 i586 i686 loongarch64 m68k microblaze mips mips64 mips64el mipsel msp430 nios2 or1k powerpc \
    powerpc64 powerpc64le riscv32 riscv64 rx s390x sh4 sparc sparc64 tricore x86_64 xtensa";

/// The tools of the GNU toolchain that are built once for each machine.
const TOOLS: &str = "addr2line ar as c++ c++filt cc cpp elfedit g++ gcc gcc-ar gcov gdb \
    gprof ld nm objcopy objdump ranlib readelf size strings strip";

/// Those of them that LLVM has under the same options and a name of its own.
const OF_LLVM: &str = "addr2line ar nm objcopy objdump ranlib readelf size strings strip";

/// The tool that a name is, without the machine that it builds for.
pub(super) fn strip_target(name: &str) -> Option<&'static str> {
    if let Some(text) = name.strip_prefix("llvm-") {
        return OF_LLVM.split(' ').find(|tool| *tool == text);
    }
    let (processor, _) = name.split_once('-')?;
    if !PROCESSORS.split(' ').any(|part| part == processor) {
        return None;
    }
    // The longest one: `gcc-ar` is not `ar`.
    let ends = |tool: &&str| name.strip_suffix(*tool).is_some_and(|target| target.ends_with('-'));
    TOOLS.split(' ').filter(ends).max_by_key(|tool| tool.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_known_without_its_machine() {
        for (name, expected) in [
            ("aarch64-linux-gnu-gcc", Some("gcc")),
            ("arm-none-eabi-objdump", Some("objdump")),
            ("x86_64-w64-mingw32-g++", Some("g++")),
            ("riscv64-unknown-elf-gcc-ar", Some("gcc-ar")),
            ("avr-size", Some("size")),
            ("llvm-nm", Some("nm")),
            ("llvm-symbolizer", None),
            ("evil-gcc", None),
            ("arm-none-eabi-sh", None),
            ("arm-none-eabi-", None),
            ("avrgcc", None),
            ("gcc-ar", None),
        ] {
            assert_eq!(strip_target(name), expected, "{name}");
        }
    }

    #[test]
    fn every_tool_is_one_that_is_known() {
        for tool in TOOLS.split(' ').chain(OF_LLVM.split(' ')) {
            assert!(crate::specs::find_spec(tool).is_some(), "{tool}");
        }
    }
}
